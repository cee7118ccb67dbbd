"""Dots with 95 % intervals."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from cascaded.figures import base
from cascaded.figures.style import INK, MUTED, PAPER
from cascaded.results.metrics import METRICS


def dots(df: pd.DataFrame, rows: str, open_marks: tuple[str, str] | None = None, zero: bool = False) -> base.Figure:
    """Estimates with their 95 % intervals: a row per value of a column, a color per method, a panel per setting.

    Args:
        df: Estimates, from `results.estimates`, of one metric.
        rows: The column whose values are the rows.
        open_marks: A column and the value of it whose marks are open.
        zero: Whether to draw a line at zero.
    """
    df, metric = base.named(df), METRICS[df["metric"].iloc[0]]
    column, value = open_marks or ("metric", "")
    parts = base.panels(df, (), ["name", rows, column], base.PANELS[:-1])
    groups, names = list(df[rows].unique()), list(df["name"].unique())
    height = 0.3 + len(groups) * (0.14 + 0.1 * len(names))
    fig, axes = base.grid([title for title, _ in parts], height, "x", sharex=True, sharey=True)
    for ax, (_, part) in zip(axes, parts, strict=True):
        for (name, kind), own in part.groupby(["name", column], sort=False):
            offset = (names.index(name) - (len(names) - 1) / 2) * min(0.18, 0.8 / len(names))
            _draw_dots(ax, own, [groups.index(group) + offset for group in own[rows]], kind == value)
        base.set_format(ax, "x", metric)
        if zero:
            ax.axvline(0, color=MUTED, ls=":", lw=1)
    axes[0].set_yticks(range(len(groups)), [textwrap.fill(str(group), 16) for group in groups])
    axes[0].set_ylim(len(groups) - 0.5, -0.5)
    kinds = df[column].unique() if open_marks else ()
    marks = [base.line_handle(f"{column} {kind}", INK, "", "o", PAPER if kind == value else INK) for kind in kinds]
    base.legend(fig, base.name_handles(df, "", "o"), marks)
    base.label_axes(fig, axes, base.axis_label(metric), "")
    fig.data = df
    return fig


def _draw_dots(ax: Axes, df: pd.DataFrame, y: Sequence[float], is_open: bool) -> None:
    own = df["color"].iloc[0]
    error = np.abs(df[["low", "high"]].to_numpy().T - df["value"].to_numpy())
    face = PAPER if is_open else own
    ax.errorbar(df["value"], y, xerr=error, fmt="o", color=own, markerfacecolor=face, elinewidth=1.2)
