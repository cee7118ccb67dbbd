"""Lines over a common axis: means with bands, named where they end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Sheet

from cascaded.exhibits.kinds import Level, Lines, Series, Way
from cascaded.report.draw_axes import Plot, Scale, framed, say_empty, scale, shade
from cascaded.report.draw_key import Sample, marked
from cascaded.report.draw_labels import MOST, Label, put_labels, room_for
from cascaded.report.look import DASHES, MUTED, SMALL, colour_of, mark_of

HEIGHT = 2.55  # inches, of the axes
DOTTED = (0, (1, 2))


def draw_lines(body: Lines, colours: Mapping[str, str]) -> Sheet:
    """Lines with bands, levels and spans. Colour is the model's, dashes tell the way."""
    lines = [numbers(series) for series in body.series]
    x = scale((value for line in lines for value in line[0]), whole=body.whole, pad=0.02, most=6)
    y = scale(_heights(lines, body), shares=body.shares)
    if body.spans:  # their names stand above the lines
        y = Scale(y.low, y.high + 0.09 * (y.high - y.low), y.ticks, y.names)
    ends = {series.model: (line[0][-1], line[1][-1]) for series, line in _drawn_last_first(body.series, lines)}
    labels = [
        Label(model, colour_of(model, colours), *ends[model]) for model in _in_order(body.series) if model in ends
    ]
    labels += level_labels(body.levels, colours, x)
    crowded = len(labels) > MOST
    plot = framed(
        x,
        y,
        body.x_label,
        body.y_label,
        max(HEIGHT, 0.0 if crowded else sum(label.height for label in labels)),
        right=0.0 if crowded else room_for(labels),
        above=way_key(series.way for series in body.series),
        below=_legend(body, colours) if crowded else (),
    )
    for name, begin, end in body.spans:
        shade(plot, name, begin, end)
    put_levels(plot, body.levels, colours)
    for series, line in zip(body.series, lines, strict=True):
        _put_line(plot, series, line, colour_of(series.model, colours), body.shares, crowded)
    put_labels(plot, () if crowded else labels)
    if not ends:
        say_empty(plot)
    return plot.sheet


def numbers(series: Series) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places, heights and half bands of a line up to its last point; nan where it has a gap."""
    x, y = np.asarray(series.x, float), np.asarray(series.y, float)
    sem = np.asarray(series.sem, float) if series.sem else np.full(len(x), np.nan)
    there = np.isfinite(x) & np.isfinite(y)
    y, sem = np.where(there, y, np.nan), np.where(there & np.isfinite(sem), sem, np.nan)
    last = int(there.nonzero()[0][-1]) + 1 if there.any() else 0
    return x[:last], y[:last], sem[:last]


def _heights(lines: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]], body: Lines) -> list[float]:
    """All that the vertical axis must hold. A band may leave it where shares end."""
    found = [level.y for level in body.levels]
    for _, y, sem in lines:
        for edge in (y, y - np.nan_to_num(sem), y + np.nan_to_num(sem)):
            found += _held(edge, y, body.shares).tolist()
    return found


def _held(edge: np.ndarray, y: np.ndarray, shares: bool) -> np.ndarray:
    """The edge of a band, which ends where shares do."""
    return np.clip(edge, np.minimum(0, y), np.maximum(1, y)) if shares else edge


def _drawn_last_first(series: Sequence[Series], lines: Sequence[tuple]) -> list[tuple[Series, tuple]]:
    """Lines that have a point, backwards: the first of a model has the last word on where its name stands."""
    return [(each, line) for each, line in zip(series, lines, strict=True) if len(line[0])][::-1]


def _in_order(series: Sequence[Series]) -> list[str]:
    return list(dict.fromkeys(each.model for each in series if each.model))


def _legend(body: Lines, colours: Mapping[str, str]) -> list[Sample]:
    models = [(model, colour_of(model, colours)) for model in _in_order(body.series)]
    levels = [Sample(level.name, colour_of(level.model, colours), DOTTED) for level in body.levels]
    return [Sample(model, colour, "-", mark_of(colour)) for model, colour in models] + levels


def way_key(ways: Iterable[Way], marks: Mapping[Way, str] | None = None) -> list[Sample]:
    """What dashes or fillings mean, where there is more than one.

    Args:
        ways: Those that are drawn.
        marks: How marks are filled; None where there are lines.
    """
    found: list[Way] = [way for way in dict.fromkeys(ways) if way]
    if len(found) < 2:
        return []
    return [Sample(way, MUTED, None, "o", marks[way]) if marks else Sample(way, MUTED, DASHES[way]) for way in found]


def level_labels(levels: Sequence[Level], colours: Mapping[str, str], x: Scale) -> list[Label]:
    """Names of levels, at the right end of the axis."""
    return [
        Label(level.name, colour_of(level.model, colours), x.high, level.y, SMALL)
        for level in levels
        if np.isfinite(level.y) and level.name
    ]


def put_levels(plot: Plot, levels: Sequence[Level], colours: Mapping[str, str]) -> None:
    """Draw what a plot is held against."""
    for level in levels:
        if np.isfinite(level.y):
            plot.axes.axhline(level.y, color=colour_of(level.model, colours), lw=1.0, ls=DOTTED, zorder=1.5)


def _put_line(plot: Plot, series: Series, line: tuple, colour: str, shares: bool, crowded: bool) -> None:
    x, y, sem = line
    if not len(x):
        return
    free: dict[str, Any] = {"clip_on": False}  # the axes hold everything: nothing needs to be cut, and files stay lean
    if np.isfinite(sem).any():
        low, high = (_held(edge, y, shares) for edge in (y - sem, y + sem))
        plot.axes.fill_between(x, low, high, color=colour, alpha=0.15, lw=0, zorder=2, **free)
    plot.axes.plot(x, y, color=colour, lw=1.6, ls=DASHES[series.way], zorder=3, solid_joinstyle="round", **free)
    seen = np.isfinite(np.pad(y, 1, constant_values=np.nan))
    alone = seen[1:-1] & ~seen[:-2] & ~seen[2:]
    alone[-1] = True  # where the line ends, and its name begins
    if crowded:
        alone[:: max(1, len(x) // 6)] = True
        alone &= np.isfinite(y)
    mark = marked(colour, mark_of(colour), "full", 4.0 if crowded else 3.4)
    plot.axes.plot(x[alone], y[alone], ls="", zorder=4, **mark, **free)
