"""Names beside the lines that they name, pushed apart so that none covers another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.lines import Line2D

from cascaded.report.draw_axes import Plot
from cascaded.report.draw_text import pitch, put, width, wrapped
from cascaded.report.look import TEXT, deep

MOST = 8  # labels: more have no room beside a plot
ROOM = 1.3  # inches: the widest a label can be
GAP = 0.16  # inches between the plot and its labels


@dataclass(frozen=True)
class Label:
    """A name and the point that it belongs to, in the units of the plot."""

    text: str
    colour: str
    x: float
    y: float
    size: float = TEXT

    @property
    def lines(self) -> list[str]:
        """The name as it is written."""
        return wrapped(self.text, ROOM, self.size)

    @property
    def height(self) -> float:
        """Inches that it takes up."""
        return (len(self.lines) + 0.1) * pitch(self.size)


def spread(wanted: Sequence[float], sizes: Sequence[float], low: float, high: float) -> list[float]:
    """Where to put things that want to be at certain places and must not overlap: as near as can be, in squares.

    Things keep their order. Side by side they are `offset_i` apart, so `place_i - offset_i` must not fall, which is
    isotonic regression: neighbours that would cross are pooled at their mean.

    Args:
        wanted: Where the middle of each should be.
        sizes: How long each is.
        low: Where the first may begin.
        high: Where the last may end. Where there is not enough room, both ends are passed alike.
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    lack = max(0.0, sum(sizes) - (high - low)) / 2
    begins, before = {}, 0.0
    for i in order:
        begins[i] = before + sizes[i] / 2
        before += sizes[i]
    pools: list[tuple[float, int]] = []
    for i in order:
        mean, count = wanted[i] - begins[i], 1
        while pools and pools[-1][0] > mean:
            other, more = pools.pop()
            mean, count = (mean * count + other * more) / (count + more), count + more
        pools.append((mean, count))
    shifts = [mean for mean, count in pools for _ in range(count)]
    least, most = low - lack, high + lack - before
    places = {i: begins[i] + min(max(shift, least), most) for i, shift in zip(order, shifts, strict=True)}
    return [places[i] for i in range(len(wanted))]


def room_for(labels: Sequence[Label]) -> float:
    """Inches to leave beside a plot."""
    return max((width(line, label.size) for label in labels for line in label.lines), default=-GAP) + GAP + 0.04


def put_labels(plot: Plot, labels: Sequence[Label]) -> None:
    """Write names to the right of a plot, each at the height of its point or near it, with a thin leader."""
    ends = [plot.y_of(label.y) for label in labels]
    places = spread(ends, [label.height for label in labels], plot.bottom - 0.05, plot.bottom + plot.height + 0.05)
    right = plot.left + plot.width
    for label, end, place in zip(labels, ends, places, strict=True):
        put(plot.sheet, right + GAP, place, label.lines, label.size, deep(label.colour))
        near = plot.x_of(label.x)
        thin: dict[str, Any] = {"color": label.colour, "transform": plot.sheet.dpi_scale_trans, "lw": 0.6, "alpha": 0.7}
        if right - near > 0.1:  # so sparse that nobody takes it for a part of the line
            plot.sheet.add_artist(Line2D([near + 0.06, right], [end, end], ls=(0, (1, 5)), **thin))
        if abs(place - end) > 0.035:
            plot.sheet.add_artist(Line2D([right + 0.04, right + GAP - 0.03], [end, place], **thin))
