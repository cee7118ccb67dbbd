"""An answer over time as a drawing: the picture, what the network sees of it, and how likely it found each class."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cascaded.files import write_whole
from cascaded.report.files import DPI
from cascaded.report.look import AGAIN, FIRST, GRID, INK, MORE, MUTED, SMALL, STYLE, TEXT, WIDE
from cascaded.runtime.images import MAKER, Picture
from cascaded.runtime.predict import Answer

if TYPE_CHECKING:  # Pillow and matplotlib are imported when something is drawn
    from matplotlib.figure import Figure as Sheet
    from PIL.Image import Image

    from cascaded.report.draw_axes import Plot
    from cascaded.report.draw_key import Sample
    from cascaded.report.draw_labels import Label

EDGE, GAP = 0.14, 0.24  # inches: around everything, between the picture and the plot
COLUMN, VIEW, LARGEST = 2.3, 0.86, 1.15  # inches: width of the picture; of what the network sees, least and most
BETWEEN = 0.14  # inches between the two
TITLE = TEXT + 1.5
HEAD = 0.42  # inches for the title
HEIGHT = 2.45  # inches of the plot
SINGLE = 20  # steps: of so many each has its own dot
LATER = 0.3  # how much of a line is left after the answer


def draw_answer(file: Path, picture: Picture, answer: Answer, model: str, shape: Sequence[int], top: int = 3) -> None:
    """Write a PNG, whole or not at all: the picture on the left, the probabilities of some classes on the right.

    Args:
        file: The PNG to be.
        picture: What was shown.
        answer: What was said.
        model: By whom.
        shape: Channels, height and width at which the network sees it.
        top: How many classes are drawn at least; one that leads at any step always is.
    """
    import matplotlib as mpl
    from PIL.PngImagePlugin import PngInfo

    with mpl.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # letters that no font has are boxes
        plot = raster(draw_lines(answer, top).sheet)
        layout = Layout.of(picture.size, shape, plot.height)
        drawing = raster(draw_words(picture, answer, model, shape, layout))
    drawing.paste(plot, (pixels(EDGE + COLUMN + GAP), pixels(HEAD)))
    _put_pictures(drawing, picture, shape, layout)
    about, saved = PngInfo(), io.BytesIO()
    about.add_text("Software", MAKER)
    drawing.save(saved, "PNG", optimize=True, pnginfo=about)
    write_whole(file, lambda part: part.write_bytes(saved.getvalue()))


def class_colours(shown: Sequence[int]) -> dict[int, str]:
    """A colour for every class that is drawn: its own wherever it is drawn, unless two would have the same."""
    every, chosen = (*FIRST, *MORE, *AGAIN), {}
    for place in sorted(shown):
        colour = place % len(every)
        while every[colour] in chosen.values() and len(chosen) < len(every):
            colour = (colour + 1) % len(every)
        chosen[place] = every[colour]
    return chosen


# --- the plot


def draw_lines(answer: Answer, top: int) -> Plot:
    """How likely each class was at each step; what comes after the answer is faint."""
    from cascaded.report.draw_axes import Scale, framed, scale, shade
    from cascaded.report.draw_labels import put_labels, room_for

    shown = answer.shown(top)
    colours = class_colours(shown)
    ticks = tuple(each / 5 for each in range(6))
    x = scale([1.0, float(answer.steps)], whole=True, pad=0.02, most=6)
    y = Scale(0.0, 1.02 if answer.stop is None else 1.1, ticks, tuple(f"{each:.1f}" for each in ticks))
    labels, below = _names(answer, colours, x.high)
    plot = framed(x, y, "step", "probability", HEIGHT, right=room_for(labels), below=below)
    if answer.step < answer.steps:
        shade(plot, "after the answer", answer.step, x.high)
    for each in reversed(shown):
        _put_line(plot, answer, each, colours[each])
    _put_stop(plot, answer, colours)
    put_labels(plot, labels)
    return plot


def _names(answer: Answer, colours: dict[int, str], right: float) -> tuple[list[Label], list[Sample]]:
    """Names of the lines, at their ends or, where they are many, below; and of the threshold."""
    from cascaded.report.draw_key import Sample
    from cascaded.report.draw_labels import MOST, Label

    ends = answer.probabilities[-1]
    labels = [Label(answer.classes[each], colour, answer.steps, float(ends[each])) for each, colour in colours.items()]
    below = [Sample(label.text, label.colour, "-") for label in labels] if len(labels) >= MOST else []
    beside = [] if below else labels
    if answer.stop is not None:
        beside = [*beside, Label(f"stop above {answer.stop:g}", MUTED, right, answer.stop, SMALL)]
    return beside, below


def _put_line(plot: Plot, answer: Answer, place: int, colour: str) -> None:
    steps, shares = range(1, answer.steps + 1), answer.probabilities[:, place]
    mark = {"marker": "o", "markersize": 3.4, "markeredgewidth": 0} if answer.steps <= SINGLE else {}
    style: dict[str, Any] = {"color": colour, "lw": 1.6, "solid_joinstyle": "round", "clip_on": False, "zorder": 3}
    upto = answer.step
    plot.axes.plot(steps[:upto], shares[:upto], **style, **mark)
    plot.axes.plot(steps[upto - 1 :], shares[upto - 1 :], alpha=LATER, **style)
    plot.axes.plot(steps[upto:], shares[upto:], ls="", **{**style, "lw": 0}, **mark, alpha=LATER)


def _put_stop(plot: Plot, answer: Answer, colours: dict[int, str]) -> None:
    """The threshold, and a ring where the answer was given."""
    if answer.stop is None:
        return
    plot.axes.axhline(answer.stop, color=MUTED, lw=1.0, ls=(0, (1, 2)), zorder=1.5)
    ring: dict[str, Any] = {"marker": "o", "markersize": 9, "markerfacecolor": "none", "markeredgewidth": 1.4}
    colour = colours[answer.leaders[answer.step - 1]]
    plot.axes.plot([answer.step], [answer.probability], markeredgecolor=colour, clip_on=False, zorder=5, **ring)


# --- around it


@dataclass(frozen=True)
class Layout:
    """Where the pictures stand, in pixels: what the network sees is below the picture, as large as there is room.

    Attributes:
        whole: Width and height of the picture.
        view: Width and height of what the network sees.
        height: Of the drawing.
    """

    whole: tuple[int, int]
    view: tuple[int, int]
    height: int

    @classmethod
    def of(cls, size: tuple[int, int], shape: Sequence[int], height: int) -> Layout:
        """For a picture of some width and height beside a plot of some height."""
        room = height - pixels(EDGE) - pixels(BETWEEN)
        whole = within(size, (pixels(COLUMN), room - pixels(VIEW)))
        side = min(pixels(LARGEST), room - whole[1])
        return cls(whole, within((shape[2], shape[1]), (side, side)), pixels(HEAD) + height)

    @property
    def below(self) -> int:
        """Where what the network sees begins, from the top."""
        return pixels(HEAD) + self.whole[1] + pixels(BETWEEN)


def draw_words(picture: Picture, answer: Answer, model: str, shape: Sequence[int], layout: Layout) -> Sheet:
    """Everything that is written around the plot and the pictures."""
    from matplotlib.figure import Figure as Sheet

    from cascaded.report.draw_text import pitch, put, wrapped

    across, high = EDGE + COLUMN + GAP + WIDE, layout.height / DPI
    sheet = Sheet(figsize=(across, high), dpi=DPI)
    said = answer.sentence()
    # bold letters are about an eighth wider than those that were measured
    title = wrapped(said[:1].upper() + said[1:], (across - 2 * EDGE) / 1.13, TITLE, lines=1)
    put(sheet, EDGE, high - 0.24, title, TITLE, INK, weight="bold")
    left, room = layout.view[0] / DPI + 0.12, COLUMN + GAP - layout.view[0] / DPI - 0.2
    width, height = picture.size
    name = wrapped(picture.file.name, room, SMALL)
    told = [f"{width} x {height} pixels,", *wrapped(f"seen by {model}", room, SMALL), f"as {shape[2]} x {shape[1]}"]
    middle = high - (layout.below + layout.view[1] / 2) / DPI
    put(sheet, EDGE + left, middle + len(told) / 2 * pitch(SMALL), name, SMALL, INK)
    put(sheet, EDGE + left, middle - len(name) / 2 * pitch(SMALL), told, SMALL, MUTED)
    return sheet


def _put_pictures(drawing: Image, picture: Picture, shape: Sequence[int], layout: Layout) -> None:
    """The picture, what is cut off paler, and below it what is left for the network."""
    from PIL import Image, ImageDraw

    whole = resized(Image.fromarray(picture.pixels), layout.whole)
    paled = Image.blend(whole, Image.new("RGB", whole.size, "white"), 0.62)
    box = middle(whole.size, shape[2] / shape[1])
    paled.paste(whole.crop(box), box[:2])
    seen = picture.seen(shape).permute(1, 2, 0).expand(-1, -1, 3).numpy()
    view = resized(Image.fromarray(seen.copy()), layout.view)
    outline = ImageDraw.Draw(drawing)
    for image, top in ((paled, pixels(HEAD)), (view, layout.below)):
        left = pixels(EDGE)
        drawing.paste(image, (left, top))
        outline.rectangle((left - 1, top - 1, left + image.width, top + image.height), outline=GRID)


def resized(image: Image, size: tuple[int, int]) -> Image:
    """An image of another size; the pixels of one that was smaller stay squares."""
    from PIL import Image

    return image.resize(size, Image.Resampling.LANCZOS if image.width > size[0] else Image.Resampling.NEAREST)


def middle(size: tuple[int, int], ratio: float) -> tuple[int, int, int, int]:
    """The middle of an image that is `ratio` times as wide as high: left, top, right, bottom."""
    width, height = size
    wide, high = min(width, max(1, round(height * ratio))), min(height, max(1, round(width / ratio)))
    left, top = (width - wide) // 2, (height - high) // 2
    return left, top, left + wide, top + high


def within(size: tuple[int, int], room: tuple[int, int]) -> tuple[int, int]:
    """The largest size of the same form that there is room for."""
    factor = min(room[0] / size[0], room[1] / size[1])
    return max(1, round(size[0] * factor)), max(1, round(size[1] * factor))


def pixels(inches: float) -> int:
    """Pixels of a drawing."""
    return round(inches * DPI)


def raster(sheet: Sheet) -> Image:
    """A sheet as pixels."""
    from PIL import Image

    file = io.BytesIO()
    sheet.savefig(file, format="png", dpi=DPI)
    return Image.open(file).convert("RGB")
