"""The frame of a plot: scales with ticks that read well, and everything around it laid out in inches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Sheet
from matplotlib.ticker import MaxNLocator

from cascaded.report.draw_key import Sample, key_height, put_key
from cascaded.report.draw_text import pitch, put, width, wrapped
from cascaded.report.look import GRID, INK, MUTED, SMALL, TEXT, WIDE

EDGE = 0.06  # inches left free on all sides


@dataclass(frozen=True)
class Scale:
    """An axis: where it begins and ends, and what is written along it."""

    low: float
    high: float
    ticks: tuple[float, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Plot:
    """Axes on a sheet, and where they are, in inches."""

    sheet: Sheet
    axes: Axes
    left: float
    bottom: float
    width: float
    height: float
    x: Scale
    y: Scale

    def x_of(self, value: float) -> float:
        """Where a value is on the sheet."""
        return self.left + self.width * (value - self.x.low) / (self.x.high - self.x.low)

    def y_of(self, value: float) -> float:
        """Where a value is on the sheet."""
        return self.bottom + self.height * (value - self.y.low) / (self.y.high - self.y.low)


def scale(
    values: Iterable[float], shares: bool = False, whole: bool = False, pad: float = 0.05, most: int = 5
) -> Scale:
    """An axis that holds all values.

    Args:
        values: What is to be drawn; what is not a number is passed over.
        shares: Whether they are shares, written in per cent, and an axis beyond 0 and 1 would be odd.
        whole: Whether they count something.
        pad: Room to leave at both ends, of the whole.
        most: About how many ticks.
    """
    held = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(held), max(held)
    room = pad * (high - low) or (0.5 if whole else 0.05 if shares else 0.5 * abs(high) or 0.5)
    begin, end = low - room, high + room
    if begin < 0 <= low and not whole:
        begin = 0.0
    if shares and low >= 0 and high <= 1:
        wide = end - begin > 0.5  # and might as well show all there can be
        begin, end = 0.0 if wide and begin < 0.15 else begin, 1.0 if end > (0.85 if wide else 1) else end
    ticks = _counts(math.ceil(low), math.floor(high), most) if whole else _ticks(begin, end, most)
    return Scale(begin, end, ticks, _written(ticks, shares))


def _counts(low: int, high: int, most: int) -> tuple[float, ...]:
    """Whole ticks: all of them where they are few, else round ones after the first."""
    if high - low <= 10:
        return tuple(map(float, range(low, high + 1)))
    found = _ticks(low, high, most, whole=True)
    return found if found[0] - low < 0.4 * (found[1] - found[0]) else (float(low), *found)


def _ticks(low: float, high: float, most: int, whole: bool = False) -> tuple[float, ...]:
    found = MaxNLocator(nbins=most, integer=whole, steps=[1, 2, 5, 10]).tick_values(low, high)
    slack = 1e-9 * (high - low)
    return tuple(0.0 if abs(tick) < slack else float(tick) for tick in found if low - slack <= tick <= high + slack)


def _written(ticks: Sequence[float], shares: bool) -> tuple[str, ...]:
    """Numbers with as many places as tell them apart; thousands and millions by their letter."""
    factor, unit = (100.0, " %") if shares else _unit(max(map(abs, ticks), default=0.0))
    gaps = [after - before for before, after in pairwise(ticks)]
    step = factor * min(gaps, default=abs(ticks[0]) if ticks else 1.0)
    places = next((n for n in range(6) if math.isclose(round(step, n), step, rel_tol=1e-6)), 6)
    return tuple(f"{tick * factor:.{places}f}{unit}".replace("-", "\N{MINUS SIGN}") for tick in ticks)


def _unit(largest: float) -> tuple[float, str]:
    units = ((1e-12, " T"), (1e-9, " G"), (1e-6, " M"), (1e-3, " k"))
    return next(((factor, unit) for factor, unit in units if largest * factor >= 10), (1.0, ""))


def new_sheet(height: float) -> Sheet:
    """An empty figure of the usual width."""
    return Sheet(figsize=(WIDE, height), dpi=100)


def axes_on(sheet: Sheet, left: float, bottom: float, wide: float, height: float) -> Axes:
    """Axes at a place in inches."""
    across, up = sheet.get_size_inches()
    axes = sheet.add_axes((left / across, bottom / up, wide / across, height / up))
    axes.patch.set_visible(False)
    return axes


def framed(
    x: Scale,
    y: Scale,
    x_label: str,
    y_label: str,
    height: float,
    right: float = 0.0,
    above: Sequence[Sample] = (),
    below: Sequence[Sample] = (),
) -> Plot:
    """A plot with its scales, what is measured written above it, and keys above and below.

    Args:
        x: What is along it.
        y: What is up.
        x_label: What x is.
        y_label: What y is; level, at the upper left, where it can be read without turning one's head.
        height: Of the axes, in inches.
        right: Inches to leave for labels.
        above: What needs a key at the top.
        below: What needs a key at the bottom.
    """
    across = WIDE - 2 * EDGE
    head, foot = wrapped(y_label, across), wrapped(x_label, across)
    left = EDGE + max((width(name, SMALL) for name in y.names), default=0.0) + 0.1
    right = max(right, max((width(name, SMALL) / 2 for name in x.names[-1:]), default=0.0)) + EDGE
    lower = EDGE + key_height(below, across) + (0.06 if below else 0.0)
    bottom = lower + foot_height(foot)
    top = EDGE + len(head) * pitch() + 0.06 + key_height(above, across) + 0.08
    sheet = new_sheet(bottom + height + top)
    axes = axes_on(sheet, left, bottom, WIDE - left - right, height)
    set_scales(axes, x, y)
    axes.grid(axis="y")
    plot = Plot(sheet, axes, left, bottom, WIDE - left - right, height, x, y)
    upper = bottom + height + top - EDGE
    put(sheet, EDGE, upper - len(head) / 2 * pitch(), head, TEXT, INK)
    put_key(sheet, above, EDGE, upper - len(head) * pitch() - 0.06, across)
    put_below(plot, foot, lower + 0.04)
    put_key(sheet, below, EDGE, lower - 0.06, across)
    return plot


def foot_height(lines: Sequence[str]) -> float:
    """Inches below axes for their ticks and what is along them."""
    return len(lines) * pitch() + 0.08 + pitch(SMALL) + 0.04


def put_below(plot: Plot, lines: Sequence[str], bottom: float) -> None:
    """Write what is along a plot in the middle below it, or as near to that as it fits on the sheet."""
    half = max(map(width, lines)) / 2
    middle = min(max(plot.left + plot.width / 2, EDGE + half), WIDE - EDGE - half)
    put(plot.sheet, middle, bottom + len(lines) / 2 * pitch(), lines, TEXT, INK, "center")


def set_scales(axes: Axes, x: Scale, y: Scale) -> None:
    """Have axes begin, end and be marked as two scales say."""
    axes.set(xlim=(x.low, x.high), ylim=(y.low, y.high))
    axes.set_xticks(x.ticks, x.names)
    axes.set_yticks(y.ticks, y.names)


def say_empty(plot: Plot) -> None:
    """Where there is nothing to draw, say so."""
    middle = (plot.left + plot.width / 2, plot.bottom + plot.height / 2)
    put(plot.sheet, *middle, "no figures to draw", TEXT, MUTED, "center")


def shade(plot: Plot, name: str, begin: float, end: float) -> None:
    """Set a stretch of x off and name it at the top."""
    begin, end = max(begin, plot.x.low), min(end, plot.x.high)
    if begin >= end:
        return
    plot.axes.axvspan(begin, end, color=GRID, alpha=0.55, lw=0, zorder=0)
    room = max(plot.x_of(end) - plot.x_of(begin) - 0.06, 0.5)
    line = wrapped(name, room, SMALL, lines=1)
    half = width(line[0], SMALL) / 2
    middle = (plot.x_of(begin) + plot.x_of(end)) / 2
    middle = min(max(middle, plot.left + half), plot.left + plot.width - half)
    put(plot.sheet, middle, plot.bottom + plot.height - 0.6 * pitch(SMALL), line, SMALL, MUTED, "center")
