"""Accuracy per step and per epoch, and the effect of lambda."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
import pandas as pd

from cascaded.errors import InputError
from cascaded.figures.base import (
    Figure,
    axis_label,
    grid,
    label_axes,
    legend,
    line_handle,
    named,
    panels,
    select,
    set_format,
    styled,
)
from cascaded.figures.lines import label_ends, lines
from cascaded.figures.style import PALETTE
from cascaded.results.compare import bands, estimates
from cascaded.results.metrics import METRICS
from cascaded.results.names import display_name


@styled
def accuracy_per_step(df: pd.DataFrame) -> Figure:
    """Test accuracy at every step, a line per method; a dotted line is chance.

    Args:
        df: From `cascaded.results.load`.
    """
    return lines(bands(select(df, "speed_accuracy", "accuracy_per_step")), "step", chance=df[df["metric"] == "chance"])


@styled
def lambda_effect(df: pd.DataFrame) -> Figure:
    """Accuracy at the last step by lambda, with cross-entropy as a horizontal line.

    Args:
        df: From `cascaded.results.load`.
    """
    found = named(estimates(select(df, "speed_accuracy", "accuracy")))
    coarse = found[found["time"] == "coarse"]  # both kinds of time end at the same output
    found = (found if coarse.empty else coarse).assign(family=lambda own: own["method"].str.split("-").str[0])
    found = found[found["method"].str.fullmatch("(cascaded|serial)-(td|ce)")]
    if found["lam"].nunique() < 2:
        raise InputError("the table has fewer than two values of lambda: run cascaded sweep --lam 0 0.5 1")
    metric = METRICS["accuracy"]
    parts = panels(found, (), ["name"])
    fig, axes = grid(len(parts), 2.8 if len(parts) == 1 else 1.7)
    for ax, (title, part) in zip(axes, parts, strict=True):
        ax.set_title(textwrap.fill(title, 30 if len(parts) > 1 else 60))
        ax.grid(axis="y")
        for _, own in part.groupby("family", sort=False):
            td, ce = own[own["lam"].notna()].sort_values("lam"), own[own["lam"].isna()]
            if len(td):
                error = np.abs(td[["low", "high"]].to_numpy().T - td["value"].to_numpy())
                ax.plot(td["lam"], td["value"], color=td["color"].iloc[0], alpha=0.5)
                for place, (_, dot) in enumerate(td.iterrows()):
                    ax.errorbar(dot["lam"], dot["value"], yerr=error[:, [place]], fmt="o", color=dot["color"])
            for _, level in ce.iterrows():
                ax.axhline(level["value"], color=level["color"], ls=":", lw=1.2)
        set_format(ax, "y", metric)
    handles = {}
    for _, row in found.iterrows():
        name = display_name(row["method"], None, row["schedule"])
        handles.setdefault(name, line_handle(name, row["color"], ":" if np.isnan(row["lam"]) else "-"))
    legend(fig, list(handles.values()))
    label_axes(fig, axes, "lambda", f"{axis_label(metric)} at the last step")
    fig.data = found
    return fig


@styled
def learning_curve(metrics: pd.DataFrame, steps: Sequence[int] = (1, 2)) -> Figure:
    """Validation accuracy over the epochs of one run, a line for some steps and the last one.

    Args:
        metrics: A run's `metrics.jsonl`: `pandas.read_json(file, lines=True)`.
        steps: Which steps to show before the last one, from 1.
    """
    accuracy = np.stack(metrics["accuracy"].tolist())
    shown = [*(step for step in steps if step < accuracy.shape[1]), accuracy.shape[1]]
    fig, (ax,) = grid(1, 2.8)
    ax.grid(axis="y")
    for step, color in zip(shown, PALETTE, strict=False):
        ax.plot(metrics["epoch"], accuracy[:, step - 1], color=color, label=f"step {step}")
    set_format(ax, "y", METRICS["accuracy"])
    set_format(ax, "x", None, whole=True)
    ax.set(xlabel="epoch", ylabel="validation accuracy")
    label_ends(fig, ax)
    fig.data = pd.DataFrame({"epoch": metrics["epoch"], **{f"step {step}": accuracy[:, step - 1] for step in shown}})
    return fig
