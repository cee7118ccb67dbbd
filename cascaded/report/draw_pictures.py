"""Rows of small pictures, pixel by pixel."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Sheet
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from cascaded.exhibits.kinds import Pictures, Thumb
from cascaded.report.draw_axes import EDGE, axes_on, new_sheet
from cascaded.report.draw_text import pitch, put, wrapped
from cascaded.report.look import GRID, INK, MUTED, SMALL, TEXT, WIDE

MOST, FEWEST, LARGEST = 10, 6, 5  # pictures side by side; as many would fill a line where there are fewer
GAP, BELOW = 0.06, 0.1  # inches: between pictures, below a line of them
HEAD = 1.5  # lines of text that the label of a row takes up


def draw_pictures(body: Pictures) -> Sheet:
    """Rows of pictures, each with its label above it and a caption below every picture."""
    columns = _columns(body)
    cell = (WIDE - 2 * EDGE + GAP) / max(columns, LARGEST)
    lines = [(label, _lines(thumbs, columns)) for label, thumbs in body.rows]
    height = 2 * EDGE + sum(_row_height(label, found, cell) for label, found in lines)
    sheet = new_sheet(max(height, 0.5))
    axes = axes_on(sheet, 0, 0, WIDE, max(height, 0.5))
    axes.set(xlim=(0, WIDE), ylim=(0, max(height, 0.5)))
    axes.set_axis_off()
    top = height - EDGE
    for label, found in lines:
        _put_row(sheet, axes, label, found, top, cell)
        top -= _row_height(label, found, cell)
    if not lines:
        put(sheet, WIDE / 2, 0.25, "no pictures to show", TEXT, MUTED, "center")
    return sheet


def _columns(body: Pictures) -> int:
    """How many pictures a line has: as many as leave room for their captions on two lines, ten at most."""
    longest = min(MOST, max((len(thumbs) for _, thumbs in body.rows), default=1))
    captions = {thumb.caption for _, thumbs in body.rows for thumb in thumbs}
    for columns in range(longest, min(FEWEST, longest), -1):
        room = (WIDE - 2 * EDGE + GAP) / max(columns, LARGEST) - GAP
        if not any("…" in line for caption in captions for line in wrapped(caption, room, SMALL)):
            break
    else:
        columns = min(FEWEST, longest)
    # lines of one row are equally long: ten pictures are five and five, not six and four
    return max((-(-len(thumbs) // -(-len(thumbs) // columns)) for _, thumbs in body.rows if thumbs), default=1)


def _lines(thumbs: Sequence[Thumb], columns: int) -> list[Sequence[Thumb]]:
    return [thumbs[begin : begin + columns] for begin in range(0, len(thumbs), columns)]


def _captions(thumbs: Sequence[Thumb], cell: float) -> list[list[str]]:
    return [wrapped(thumb.caption, cell - GAP, SMALL) if thumb.caption else [] for thumb in thumbs]


def _tallest(thumbs: Sequence[Thumb], cell: float) -> float:
    """Inches that the pictures of a line are high; none is more than twice as high as wide."""
    return (cell - GAP) * min(2.0, max(thumb.pixels.shape[0] / max(1, thumb.pixels.shape[1]) for thumb in thumbs))


def _line_height(thumbs: Sequence[Thumb], cell: float) -> float:
    said = max(len(lines) for lines in _captions(thumbs, cell))
    return _tallest(thumbs, cell) + said * pitch(SMALL) + (0.04 if said else 0.0) + BELOW


def _row_height(label: str, lines: Sequence[Sequence[Thumb]], cell: float) -> float:
    head = HEAD * pitch() if label.strip() else 0.0
    return head + (sum(_line_height(line, cell) for line in lines) if lines else 1.5 * pitch(SMALL)) + 0.04


def _put_row(sheet: Sheet, axes: Axes, label: str, lines: Sequence[Sequence[Thumb]], top: float, cell: float) -> None:
    """A row below a height on the sheet."""
    if label.strip():
        put(sheet, EDGE, top - 0.55 * pitch(), wrapped(label, WIDE - 2 * EDGE, TEXT, lines=1), TEXT, INK)
        top -= HEAD * pitch()
    if not lines:
        put(sheet, EDGE, top - pitch(SMALL) / 2, "none", SMALL, MUTED)
    for line in lines:
        tall = _tallest(line, cell)
        for place, (thumb, caption) in enumerate(zip(line, _captions(line, cell), strict=True)):
            left = EDGE + place * cell
            _put_thumb(axes, thumb, left, top, cell - GAP, tall)
            y = top - tall - 0.04 - len(caption) / 2 * pitch(SMALL)
            put(sheet, left + (cell - GAP) / 2, y, caption, SMALL, MUTED, "center")
        top -= _line_height(line, cell)


def _put_thumb(axes: Axes, thumb: Thumb, left: float, top: float, wide: float, tall: float) -> None:
    """A picture in its cell, as large as it fits, with a hairline around it: its own edge may be white."""
    height, across = thumb.pixels.shape[:2]
    if not height or not across:
        return
    size = min(wide / across, tall / height)
    left += (wide - size * across) / 2
    box = (left, left + size * across, top - size * height, top)
    image = AxesImage(axes, extent=box, origin="upper", interpolation="none")
    image.set_data(thumb.pixels)
    axes.add_image(image)
    frame = Rectangle((box[0], box[2]), size * across, size * height, facecolor="none", edgecolor=GRID, lw=0.6)
    axes.add_patch(frame)
