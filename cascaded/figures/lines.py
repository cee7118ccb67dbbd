"""Lines with bands of one standard error, labeled where they end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter
from matplotlib.transforms import offset_copy

from cascaded.figures import base
from cascaded.figures.base import Figure
from cascaded.figures.style import DASHES, INK, MUTED, SMALL, text_color
from cascaded.results.metrics import METRICS, Metric

MAX_LABELS = 8
"""Lines that are labeled where they end; more have a legend."""
LARGE = 1e5
"""Larger numbers are written as 10 M."""


def lines(df: pd.DataFrame, xlabel: str, facets: Sequence[str] = (), chance: pd.DataFrame | None = None) -> Figure:
    """A line per method with a band of one standard error, in a panel per setting; a line style per stopping rule.

    Args:
        df: Bands, from `results.bands`, of one metric.
        xlabel: The label of the x axis.
        facets: Columns with a panel per value.
        chance: Rows of the table with the level of chance, which is drawn as a dotted line.
    """
    df, metric = base.named(df), METRICS[df["metric"].iloc[0]]
    parts = base.panels(df, facets, ["name", "rule", "x"])
    one = len(parts) == 1
    fig, axes = base.grid([title for title, _ in parts], 2.8 if one else 1.7, "y", sharey=metric.unit == "%")
    for ax, (_, part) in zip(axes, parts, strict=True):
        base.set_format(ax, "y", metric)
        large = part["x"].max() > LARGE
        base.set_format(ax, "x", None, whole=True, ticks=10 if one and not large else 5)
        if large:
            ax.xaxis.set_major_formatter(EngFormatter())
        _draw_lines(ax, part, metric)
        if chance is not None:
            _draw_chance(ax, chance[chance["data"] == part["data"].iloc[0]])
    rules = [rule for rule in DASHES if df["rule"].nunique() > 1 and rule in set(df["rule"])]
    few = one and not rules and df["name"].nunique() <= MAX_LABELS
    if not few:
        names = [] if "name" in facets else base.name_handles(df, "-")
        base.legend(fig, names, [base.line_handle(rule, INK, DASHES[rule]) for rule in rules])
    base.label_axes(fig, axes, xlabel, base.axis_label(metric))
    if few:
        label_ends(fig, axes[0])
    fig.data = df
    return fig


def _draw_lines(ax: Axes, df: pd.DataFrame, metric: Metric) -> None:
    for (name, rule), line in df.sort_values("x").groupby(["name", "rule"], sort=False, dropna=False):
        own = line["color"].iloc[0]
        marker = "o" if len(line) == 1 else None
        ax.plot(line["x"], line["value"], color=own, ls=DASHES.get(rule, "-"), marker=marker, label=name)
        low, high = line["value"] - line["sem"], line["value"] + line["sem"]
        if metric.unit == "%":
            low, high = low.clip(lower=0), high.clip(upper=1)
        ax.fill_between(line["x"], low, high, color=own, alpha=0.15, lw=0)


def _draw_chance(ax: Axes, rows: pd.DataFrame) -> None:
    if rows.empty:
        return
    level = rows["value"].mean()
    ax.axhline(level, color=MUTED, ls=":", lw=1)
    words: dict[str, Any] = {"ha": "right", "va": "bottom", "color": MUTED, "fontsize": SMALL - 1}
    ax.text(1, level, "chance", transform=ax.get_yaxis_transform(), **words)


def label_ends(fig: Figure, ax: Axes) -> None:
    """Write the name of every line of the axes where it ends, moved apart where names would overlap."""
    ax.set(xlim=ax.get_xlim(), ylim=ax.get_ylim())
    beside: Any = offset_copy(ax.get_yaxis_transform(), fig, x=9, units="points")
    labels = []
    for line in (line for line in ax.lines if not str(line.get_label()).startswith("_")):
        x, y = np.asarray(line.get_xydata())[-1]
        own = str(line.get_color())
        arrow = {"arrowstyle": "-", "color": own, "lw": 0.6, "alpha": 0.6, "ls": ":", "shrinkA": 1, "shrinkB": 3}
        words: dict[str, Any] = {"va": "center", "color": text_color(own), "fontsize": SMALL}
        labels.append(ax.annotate(str(line.get_label()), (x, y), (1, y), textcoords=beside, arrowprops=arrow, **words))
    fig.draw_without_rendering()
    transform = ax.transData
    ends = [transform.transform(label.xy)[1] for label in labels]
    sizes = [1.05 * label.get_window_extent().height for label in labels]
    places = spread(ends, sizes, ax.bbox.y0, ax.bbox.y1)
    for label, place in zip(labels, places, strict=True):
        label.xyann = (1, transform.inverted().transform((0, place))[1])


def spread(wanted: Sequence[float], sizes: Sequence[float], low: float, high: float) -> list[float]:
    """Where to put things that want to be at certain places and must not overlap: as near as can be, in squares.

    Things keep their order. Side by side they are `offset_i` apart, so `place_i - offset_i` must not fall, which is
    isotonic regression: neighbors that would cross are pooled at their mean.

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
