"""Dots with whiskers in rows, one group below the other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure as Sheet

from cascaded.exhibits.kinds import Dot, Dots
from cascaded.report.draw_axes import (
    EDGE,
    Plot,
    Scale,
    axes_on,
    foot_height,
    new_sheet,
    put_below,
    say_empty,
    scale,
    set_scales,
)
from cascaded.report.draw_dots import dots_of, extents, groups_of, model_sample, whisker
from cascaded.report.draw_key import Sample, key_height, marked, put_key
from cascaded.report.draw_labels import spread
from cascaded.report.draw_lines import DOTTED, way_key
from cascaded.report.draw_text import pitch, put, shortened, width, wrapped
from cascaded.report.look import FILLS, GRID, INK, SMALL, TEXT, WIDE, colour_of, deep, mark_of

SLOT, BESIDE, BETWEEN = 0.145, 0.085, 0.19  # inches: a model, another way of it, between groups
ROOM = 1.55  # inches: the widest the name of a row can be


@dataclass(frozen=True)
class Row:
    """One row: its name, and its dots with how far each is below the row's top, in inches."""

    name: list[str]
    colour: str
    dots: list[tuple[float, Dot]]
    height: float


def draw_rows(body: Dots, colours: Mapping[str, str]) -> Sheet:
    """Dots with whiskers from left to right. Where there is one group alone, its models are the rows."""
    dots = dots_of(body)
    models = list(dict.fromkeys(dot.model for dot in dots))
    one = len(groups_of(body)) == 1 and len(models) > 1
    split = [[dot for dot in dots if dot.model == model] for model in models] if one else _by_group(body, dots)
    names = models if one else groups_of(body)
    inks = [deep(colour_of(model, colours)) for model in models] if one else [INK] * len(names)
    rows = [_row(*each) for each in zip(names, inks, split, strict=True)]
    key = [] if one or models == [""] else [model_sample(model, colour_of(model, colours)) for model in models]
    keys = (key, way_key((dot.way for dot in dots), FILLS))
    plot = _framed_rows(body, rows, keys, groups_of(body)[0] if one else "")
    _put_references(plot, body, colours)
    top = plot.bottom + plot.height
    for row in rows:
        _put_row(plot, row, top, colours)
        top -= row.height
    if not dots:
        say_empty(plot)
    return plot.sheet


def _by_group(body: Dots, dots: Sequence[Dot]) -> list[list[Dot]]:
    return [[dot for dot in dots if dot.group == group] for group in groups_of(body)]


def _row(name: str, colour: str, dots: Sequence[Dot]) -> Row:
    """Models below one another, the ways of one nearer to each other than to the next."""
    by_model: dict[str, list[Dot]] = {}
    for dot in dots:
        by_model.setdefault(dot.model, []).append(dot)
    placed, down = [], BETWEEN / 2 + SLOT / 2
    for found in by_model.values():
        placed += [(down + place * BESIDE, dot) for place, dot in enumerate(found)]
        down += (len(found) - 1) * BESIDE + SLOT
    lines = wrapped(name, ROOM, TEXT, lines=3)
    needed, taken = len(lines) * pitch() + 0.1, down - SLOT / 2 + BETWEEN / 2
    middle = max(0.0, needed - taken) / 2
    return Row(lines, colour, [(at + middle, dot) for at, dot in placed], max(needed, taken))


def _framed_rows(body: Dots, rows: Sequence[Row], keys: Sequence[Sequence[Sample]], head: str) -> Plot:
    """The frame: names at the left, what is measured below, keys and names of levels above."""
    across = WIDE - 2 * EDGE
    x = scale(extents(body, dots_of(body)), shares=body.shares, pad=0.04)
    left = EDGE + max((width(line) for row in rows for line in row.name), default=0.0) + 0.12
    right = EDGE + max((width(name, SMALL) / 2 for name in x.names[-1:]), default=0.0)
    foot, heads = wrapped(body.label, across), wrapped(head, across) if head else []
    bottom = EDGE + foot_height(foot)
    height = sum(row.height for row in rows) or 1.0
    levels = 1.3 * pitch(SMALL) if body.levels else 0.0
    above = sum(key_height(key, across) for key in keys) + (0.08 if any(keys) else 0.0) + len(heads) * 1.2 * pitch()
    sheet = new_sheet(bottom + height + levels + above + EDGE)
    axes = axes_on(sheet, left, bottom, WIDE - left - right, height)
    y = Scale(0.0, height, (), ())
    set_scales(axes, x, y)
    axes.grid(axis="x")
    upper = bottom + height + levels + above
    put(sheet, EDGE, upper - len(heads) / 2 * 1.2 * pitch(), heads, TEXT, INK)
    upper -= len(heads) * 1.2 * pitch()
    for key in keys:
        put_key(sheet, key, EDGE, upper, across)
        upper -= key_height(key, across)
    plot = Plot(sheet, axes, left, bottom, WIDE - left - right, height, x, y)
    put_below(plot, foot, EDGE + 0.04)
    return plot


def _put_references(plot: Plot, body: Dots, colours: Mapping[str, str]) -> None:
    """Levels from top to bottom, named above the plot."""
    levels = [level for level in body.levels if math.isfinite(level.y)]
    names = [shortened(level.name, 0.9 * WIDE / len(levels) - 0.1, SMALL) for level in levels]
    sizes = [width(name, SMALL) + 0.1 for name in names]
    places = spread([plot.x_of(level.y) for level in levels], sizes, 0.0, WIDE)
    y = plot.bottom + plot.height + 0.65 * pitch(SMALL)
    for level, name, place in zip(levels, names, places, strict=True):
        colour = colour_of(level.model, colours)
        plot.axes.axvline(level.y, color=colour, lw=1.0, ls=DOTTED, zorder=1.5)
        put(plot.sheet, place, y, name, SMALL, deep(colour), "center")


def _put_row(plot: Plot, row: Row, top: float, colours: Mapping[str, str]) -> None:
    """One row below a height on the sheet: its name, its dots, and a line between it and the row above."""
    put(plot.sheet, plot.left - 0.1, top - row.height / 2, row.name, TEXT, row.colour, "right")
    if top < plot.bottom + plot.height - 1e-6:
        plot.axes.axhline(top - plot.bottom, color=GRID, lw=0.6, zorder=0.5)
    for down, dot in row.dots:
        y, colour = top - plot.bottom - down, colour_of(dot.model, colours)
        if ends := whisker(dot):
            plot.axes.plot(ends, [y, y], color=colour, lw=1.2, zorder=3, solid_capstyle="butt", clip_on=False)
        mark = marked(colour, mark_of(colour), FILLS[dot.way])
        plot.axes.plot([dot.value], [y], ls="", zorder=4, clip_on=False, **mark)
