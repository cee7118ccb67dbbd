"""Our estimates beside the paper's values, and the paper's claims with our effects."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from cascaded.errors import InputError
from cascaded.figures.base import Figure, axis_label, legend, line_handle, named, set_format, styled
from cascaded.figures.style import INK, MUTED, SMALL, VERDICTS, WIDTH
from cascaded.results.metrics import METRICS

APART = ("data", "noise", "rule", "unit", "measure", "detector", "reads", "ood_data", "arch", "width", "time")
"""Columns that name a row where they vary."""


@styled()
def estimates_beside_paper(df: pd.DataFrame) -> Figure:
    """Our estimates with their 95 % intervals, filled, and the paper's values, open; a panel per metric.

    Args:
        df: Rows of `results.estimates` with one more column, `paper`: the paper's value or NaN.
    """
    if df.empty:
        raise InputError("there are no estimates to draw beside the paper's values: run cascaded reproduce first")
    df = named(df)
    parts = [own for _, own in df.groupby("metric", sort=False)]
    fig, axes = _stacked(parts, 0.27)
    for ax, own in zip(axes, parts, strict=True):
        metric = METRICS[own["metric"].iloc[0]]
        _draw_rows(ax, own, "value", list(own["color"]), [_row_name(row, own) for _, row in own.iterrows()])
        set_format(ax, "x", metric)
        ax.set_xlabel(axis_label(metric))
    legend(fig, [line_handle("this project", INK, "", "o"), line_handle("paper", INK, "", "d", "none")])
    fig.data = df
    return fig


def _row_name(row: pd.Series, among: pd.DataFrame) -> str:
    apart = [str(row[column]) for column in APART if among[column].nunique() > 1 and pd.notna(row[column])]
    return textwrap.shorten(", ".join([row["name"], *apart]), 46, placeholder="…")


@styled()
def claims(df: pd.DataFrame) -> Figure:
    """The effect of each claim with its 95 % interval, a panel per unit; positive agrees with the paper.

    Args:
        df: From `paper.claims.evaluate`: claim, label, noise, data, a, b, effect, low, high, unit, paper and verdict.
    """
    measured = df[df["effect"].notna()]
    if measured.empty:
        raise InputError("no claim has been measured: run cascaded reproduce")
    units = measured["unit"].where(measured["unit"] != "", measured["metric"].map(lambda name: METRICS[name].label))
    parts = dict(list(measured.groupby(units, sort=False)))
    fig, axes = _stacked(list(parts.values()), 0.44)
    with_data = measured["data"].nunique() > 1
    for ax, (unit, own) in zip(axes, parts.items(), strict=True):
        ax.axvline(0, color=MUTED, ls=":", lw=1)
        names = [_claim_name(row, with_data) for _, row in own.iterrows()]
        _draw_rows(ax, own, "effect", [VERDICTS[verdict] for verdict in own["verdict"]], names)
        ax.set_xlabel(textwrap.fill(f"effect ({unit})", 36))
    found = [verdict for verdict in VERDICTS if verdict in set(measured["verdict"])]
    handles = [line_handle(verdict, VERDICTS[verdict], "", "o") for verdict in found]
    legend(fig, [*handles, line_handle("paper", INK, "", "d", "none")])
    fig.data = df
    return fig


def _claim_name(row: pd.Series, with_data: bool) -> str:
    """What is measured, and of which networks."""
    what = ", ".join(filter(None, (f"{row['claim']} {row['label']}", row["noise"])))
    networks = " minus ".join(filter(None, (row["a"], row["b"])))
    return "\n".join(
        textwrap.fill(line, 36) for line in (what, f"{networks}, {row['data']}" if with_data else networks)
    )


def _stacked(parts: Sequence[pd.DataFrame], row: float) -> tuple[Figure, list[Axes]]:
    """Axes one below the other, `row` inches per row of a table."""
    fig = Figure(figsize=(WIDTH, sum(0.6 + row * len(part) for part in parts)), layout="constrained")
    heights = [max(len(part), 1.5) for part in parts]
    return fig, fig.subplots(len(parts), squeeze=False, height_ratios=heights).ravel().tolist()


def _draw_rows(ax: Axes, df: pd.DataFrame, value: str, colors: Sequence[str], names: Sequence[str]) -> None:
    """A row per value: the value with its interval, and the paper's."""
    for y, (x, low, high) in enumerate(df[[value, "low", "high"]].to_numpy(float)):
        error = None if np.isnan(low + high) else [[x - low], [high - x]]
        ax.errorbar([x], [y], xerr=error, fmt="o", color=colors[y], elinewidth=1.2)
    paper = pd.to_numeric(df["paper"])
    ax.plot(paper, range(len(df)), "d", color=INK, markerfacecolor="none", markersize=7, zorder=3)
    ax.grid(axis="x")
    ax.set_yticks(range(len(names)), names, fontsize=SMALL - 1)
    ax.set_ylim(len(names) - 0.4, -0.6)
