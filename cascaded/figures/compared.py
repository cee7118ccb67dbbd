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


@styled
def estimates_beside_paper(df: pd.DataFrame) -> Figure:
    """Our estimates with their 95 % intervals, filled, and the paper's values, open; a panel per metric.

    Args:
        df: Rows of `results.estimates` with one more column, `paper`: the paper's value or NaN.
    """
    if df.empty:
        raise InputError("there are no estimates to draw beside the paper's values: run cascaded reproduce first")
    df = named(df)
    parts = [own for _, own in df.groupby("metric", sort=False)]
    fig, axes = _stacked([len(own) for own in parts])
    for ax, own in zip(axes, parts, strict=True):
        metric = METRICS[own["metric"].iloc[0]]
        for place, (_, row) in enumerate(own.iterrows()):
            _interval(ax, row["value"], row["low"], row["high"], place, row["color"])
        _paper(ax, own["paper"])
        _rows(ax, [_row_name(row, own) for _, row in own.iterrows()])
        set_format(ax, "x", metric)
        ax.set_xlabel(axis_label(metric))
    legend(fig, [line_handle("this project", INK, "", "o"), line_handle("paper", INK, "", "d", "none")])
    fig.data = df
    return fig


def _row_name(row: pd.Series, among: pd.DataFrame) -> str:
    apart = [str(row[column]) for column in APART if among[column].nunique() > 1 and pd.notna(row[column])]
    return textwrap.shorten(", ".join([row["name"], *apart]), 46, placeholder="…")


@styled
def claims(df: pd.DataFrame) -> Figure:
    """The effect of each claim with its 95 % interval, a panel per unit; positive agrees with the paper.

    Args:
        df: From `paper.claims.evaluate`: claim, label, noise, data, a, b, effect, low, high, unit, paper and verdict.
    """
    measured = df[df["effect"].notna()]
    if measured.empty:
        raise InputError("no claim has been measured: run cascaded reproduce")
    units = measured["unit"].where(measured["unit"] != "", measured["metric"].map(lambda name: METRICS[name].label))
    parts = list(measured.groupby(units, sort=False))
    fig, axes = _stacked([len(own) for _, own in parts], 0.44)
    for ax, (unit, own) in zip(axes, parts, strict=True):
        ax.axvline(0, color=MUTED, ls=":", lw=1)
        for place, (_, row) in enumerate(own.iterrows()):
            _interval(ax, row["effect"], row["low"], row["high"], place, VERDICTS[row["verdict"]])
        _paper(ax, own["paper"])
        _rows(ax, [_claim_name(row, measured["data"].nunique() > 1) for _, row in own.iterrows()])
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


def _stacked(counts: Sequence[int], row: float = 0.27) -> tuple[Figure, list[Axes]]:
    """Axes one below the other, `row` inches per row."""
    fig = Figure(figsize=(WIDTH, sum(0.6 + row * count for count in counts)), layout="constrained")
    axes = fig.subplots(
        len(counts), squeeze=False, gridspec_kw={"height_ratios": [max(count, 1.5) for count in counts]}
    )
    return fig, axes.ravel().tolist()


def _interval(ax: Axes, value: float, low: float, high: float, y: float, color: str) -> None:
    error = np.array([[value - low], [high - value]])
    ax.errorbar([value], [y], xerr=None if np.isnan(error).any() else error, fmt="o", color=color, elinewidth=1.2)


def _paper(ax: Axes, values: pd.Series) -> None:
    ax.plot(pd.to_numeric(values), range(len(values)), "d", color=INK, markerfacecolor="none", markersize=7, zorder=3)


def _rows(ax: Axes, names: Sequence[str]) -> None:
    ax.grid(axis="x")
    ax.set_yticks(range(len(names)), names, fontsize=SMALL - 1)
    ax.set_ylim(len(names) - 0.4, -0.6)
