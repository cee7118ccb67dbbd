"""Dots with 95 % intervals."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from cascaded.figures.base import (
    PANELS,
    Figure,
    axis_label,
    grid,
    label_axes,
    legend,
    line_handle,
    name_handles,
    named,
    panels,
    set_format,
)
from cascaded.figures.style import INK, MUTED, PAPER
from cascaded.results.metrics import METRICS


def dots(
    df: pd.DataFrame,
    rows: str,
    *,
    facets: Sequence[str] = (),
    fill: str | None = None,
    fill_names: Mapping[str, str] | None = None,
    zero: bool = False,
) -> Figure:
    """Estimates with their 95 % intervals: a row per value of a column, a color per method, a panel per setting.

    Args:
        df: Estimates, from `results.estimates`, of one metric.
        rows: The column whose values are the rows.
        facets: Columns with a panel per value.
        fill: A column that decides whether marks are filled.
        fill_names: Its values and how the legend calls them; the first one is filled, all others are open.
        zero: Whether to draw a line at zero.
    """
    metric = METRICS[df["metric"].iloc[0]]
    df = named(df)
    parts = panels(df, facets, ["name", rows, *([fill] if fill else [])], PANELS[:-1])
    filled = next(iter(fill_names or ()), None)
    groups, names = list(df[rows].unique()), list(df["name"].unique())
    height = 0.3 + len(groups) * (0.14 + 0.1 * len(names))
    fig, axes = grid(len(parts), height, share_x=True, share_y=True)
    for ax, (title, part) in zip(axes, parts, strict=True):
        ax.set_title(textwrap.fill(title, 30 if len(parts) > 1 else 60))
        ax.grid(axis="x")
        for (name, *_), own in part.groupby(["name", *([fill] if fill else [])], sort=False):
            offset = (names.index(name) - (len(names) - 1) / 2) * min(0.18, 0.8 / len(names))
            y = [groups.index(group) + offset for group in own[rows]]
            face = PAPER if fill and own[fill].iloc[0] != filled else own["color"].iloc[0]
            _draw_dots(ax, own, y, face)
        set_format(ax, "x", metric)
        if zero:
            ax.axvline(0, color=MUTED, ls=":", lw=1)
    axes[0].set_yticks(range(len(groups)), [textwrap.fill(str(group), 16) for group in groups])
    axes[0].set_ylim(len(groups) - 0.5, -0.5)
    handles = name_handles(df, "", "o")
    for value, words in (fill_names or {}).items():
        handles.append(line_handle(words, INK, "", "o", face=INK if value == filled else PAPER))
    legend(fig, handles)
    label_axes(fig, axes, axis_label(metric), "")
    fig.data = df
    return fig


def _draw_dots(ax: Axes, df: pd.DataFrame, y: Sequence[float], face: str) -> None:
    own = df["color"].iloc[0]
    error = np.abs(df[["low", "high"]].to_numpy().T - df["value"].to_numpy())
    ax.errorbar(df["value"], y, xerr=error, fmt="o", color=own, markerfacecolor=face, elinewidth=1.2)
