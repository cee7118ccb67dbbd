"""Dots with whiskers, joined along an axis such as lambda."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from matplotlib.figure import Figure as Sheet

from cascaded.exhibits.kinds import Dot, Dots, Way
from cascaded.report.draw_axes import EDGE, Plot, Scale, framed, say_empty, scale
from cascaded.report.draw_key import Sample, marked
from cascaded.report.draw_labels import MOST, Label, put_labels, room_for
from cascaded.report.draw_lines import HEIGHT, level_labels, put_levels, way_key
from cascaded.report.draw_text import shortened, width
from cascaded.report.look import DASHES, FILLS, SMALL, WIDE, colour_of, mark_of

DODGE = 0.05  # inches between the dots of one group


def draw_joined(body: Dots, colours: Mapping[str, str]) -> Sheet:
    """Dots of a model joined from group to group, its name at the end."""
    groups, dots = groups_of(body), dots_of(body)
    places = _places(groups)
    runs = {
        pair: sorted(((places[dot.group], dot) for dot in found), key=lambda placed: placed[0])
        for pair, found in _by_line(dots).items()
    }
    models = list(dict.fromkeys(model for model, _ in runs if model))
    ends = {model: run[-1] for (model, _), run in reversed(runs.items())}
    last = {model: (place, dot.value) for model, (place, dot) in ends.items()}
    labels = [Label(model, colour_of(model, colours), *last[model]) for model in models]
    x = _group_scale(groups, places, room_for(labels))
    labels += level_labels(body.levels, colours, x)
    crowded = len(labels) > MOST
    plot = framed(
        x,
        scale(extents(body, dots), shares=body.shares),
        body.group_label,
        body.label,
        max(HEIGHT, 0.0 if crowded else sum(label.height for label in labels)),
        right=0.0 if crowded else room_for(labels),
        above=way_key(dot.way for dot in dots),
        below=[model_sample(label.text, label.colour, "-") for label in labels] if crowded else (),
    )
    put_levels(plot, body.levels, colours)
    for number, ((model, way), run) in enumerate(runs.items()):
        shift = (number - (len(runs) - 1) / 2) * min(DODGE, 0.3 / len(runs))
        _put_run(plot, [dot for _, dot in run], [place for place, _ in run], shift, colour_of(model, colours), way)
    put_labels(plot, () if crowded else labels)
    if not dots:
        say_empty(plot)
    return plot.sheet


def groups_of(body: Dots) -> list[str]:
    """Groups in their order; those of dots that were not announced come last."""
    return list(dict.fromkeys([*body.groups, *(dot.group for dot in body.dots)]))


def dots_of(body: Dots) -> list[Dot]:
    """Dots that can be drawn."""
    return [dot for dot in body.dots if math.isfinite(dot.value)]


def whisker(dot: Dot) -> tuple[float, float] | None:
    """Both ends of an interval, where it has both."""
    if dot.low is None or dot.high is None or not math.isfinite(dot.low + dot.high):
        return None
    return dot.low, dot.high


def extents(body: Dots, dots: Sequence[Dot]) -> list[float]:
    """All that the axis of figures must hold."""
    return [
        *(dot.value for dot in dots),
        *(end for dot in dots for end in whisker(dot) or ()),
        *(level.y for level in body.levels),
    ]


def model_sample(model: str, colour: str, dash: str | None = None) -> Sample:
    """A model's entry in a key."""
    return Sample(model, colour, dash, mark_of(colour))


def _by_line(dots: Sequence[Dot]) -> dict[tuple[str, Way], list[Dot]]:
    found: dict[tuple[str, Way], list[Dot]] = {}
    for dot in dots:
        found.setdefault((dot.model, dot.way), []).append(dot)
    return found


def _places(groups: Sequence[str]) -> dict[str, float]:
    """Where groups stand: as far apart as their numbers, where they are numbers that leave room; else evenly."""
    evenly = {group: float(place) for place, group in enumerate(groups)}
    try:
        places = {group: float(group) for group in groups}
    except ValueError:
        return evenly
    values = list(places.values())
    gaps = [after - before for before, after in pairwise(values)]
    roomy = all(map(math.isfinite, values)) and bool(gaps) and min(gaps) >= 0.06 * sum(gaps) > 0
    return places if roomy else evenly


def _group_scale(groups: Sequence[str], places: Mapping[str, float], right: float) -> Scale:
    """An axis of groups, each named where there is room."""
    low, high = min(places.values(), default=0.0), max(places.values(), default=1.0)
    pad = 0.06 * (high - low) or 0.5
    inch = (WIDE - 0.6 - right - EDGE) / (high - low + 2 * pad)
    ticks, names, free = [], [], -math.inf
    for group in groups:
        name = shortened(group, 0.8, SMALL)
        half = width(name, SMALL) / 2 / inch
        if places[group] - half >= free:
            ticks, names = [*ticks, places[group]], [*names, name]
            free = places[group] + half + 0.06 / inch
    return Scale(low - pad, high + pad, tuple(ticks), tuple(names))


def _put_run(plot: Plot, dots: Sequence[Dot], places: Sequence[float], shift: float, colour: str, way: Way) -> None:
    """One line: its whiskers, what joins its dots, and the dots."""
    by = shift * (plot.x.high - plot.x.low) / plot.width
    x, y = [place + by for place in places], [dot.value for dot in dots]
    free: dict[str, Any] = {"clip_on": False}
    for place, dot in zip(x, dots, strict=True):
        if ends := whisker(dot):
            plot.axes.plot([place, place], ends, color=colour, lw=1.1, zorder=3, solid_capstyle="butt", **free)
    plot.axes.plot(x, y, color=colour, lw=1.3, ls=DASHES[way], zorder=2.5, alpha=0.75, **free)
    plot.axes.plot(x, y, ls="", zorder=4, **marked(colour, mark_of(colour), FILLS[way]), **free)
