"""Accuracy per step and per epoch, and the effect of lambda."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from cascaded.errors import InputError
from cascaded.figures import base
from cascaded.figures.base import Figure, select, styled
from cascaded.figures.lines import label_ends
from cascaded.figures.style import PALETTE
from cascaded.results.compare import estimates
from cascaded.results.metrics import METRICS
from cascaded.results.names import display_name


@styled()
def lambda_effect(df: pd.DataFrame) -> Figure:
    """Accuracy at the last step by lambda, with cross-entropy as a horizontal line.

    Args:
        df: From `cascaded.results.load`.
    """
    found = base.named(estimates(select(df, "speed_accuracy", "accuracy")))
    found = found[found["method"].str.fullmatch("(cascaded|serial)-(td|ce)")]
    if (found["time"] == "coarse").any():  # both kinds of time end at the same output
        found = found[found["time"] == "coarse"]
    found = found[found.groupby("data")["lam"].transform("nunique") > 1]
    if found.empty:
        raise InputError("the table has fewer than two values of lambda: run cascaded sweep --lam 0 0.5 1")
    found["name"] = [display_name(row.method, None, row.schedule) for row in found.itertuples()]
    parts = base.panels(found, (), ["name", "lam"])
    fig, axes = base.grid([title for title, _ in parts], 2.8 if len(parts) == 1 else 1.7, "y")
    for ax, (_, part) in zip(axes, parts, strict=True):
        for _, own in part.groupby("name", sort=False):
            _draw_lambdas(ax, own.sort_values("lam"))
        base.set_format(ax, "y", METRICS["accuracy"])
    levels = found["lam"].isna()
    base.legend(fig, base.name_handles(found[~levels], "-") + base.name_handles(found[levels], ":"))
    base.label_axes(fig, axes, "lambda", "accuracy at the last step")
    fig.data = found
    return fig


def _draw_lambdas(ax: Axes, df: pd.DataFrame) -> None:
    """One method: a point per lambda, or a level where its loss has none."""
    if df["lam"].isna().all():
        ax.axhline(df["value"].iloc[0], color=df["color"].iloc[0], ls=":", lw=1.2)
        return
    ax.plot(df["lam"], df["value"], color=df["color"].iloc[0], alpha=0.5)
    for row in df.itertuples():
        error = [[row.value - row.low], [row.high - row.value]]
        ax.errorbar([row.lam], [row.value], yerr=error, fmt="o", color=row.color)


@styled()
def learning_curve(metrics: pd.DataFrame, steps: Sequence[int] = (1, 2)) -> Figure:
    """Validation accuracy over the epochs of one run, a line for some steps and the last one.

    Args:
        metrics: A run's `metrics.jsonl`: `pandas.read_json(file, lines=True)`.
        steps: Which steps to show before the last one, from 1.
    """
    accuracy = np.stack(metrics["accuracy"].tolist())
    shown = [*(step for step in steps if step < accuracy.shape[1]), accuracy.shape[1]]
    fig, (ax,) = base.grid([""], 2.8, "y")
    for step, color in zip(shown, PALETTE, strict=False):
        ax.plot(metrics["epoch"], accuracy[:, step - 1], color=color, label=f"step {step}")
    base.set_format(ax, "y", METRICS["accuracy"])
    base.set_format(ax, "x", None, whole=True)
    ax.set(xlabel="epoch", ylabel="validation accuracy")
    label_ends(fig, ax)
    fig.data = pd.DataFrame({"epoch": metrics["epoch"], **{f"step {step}": accuracy[:, step - 1] for step in shown}})
    return fig
