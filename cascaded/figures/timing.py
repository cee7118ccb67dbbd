"""Accuracy against milliseconds, measured, and predicted for several processors."""

from __future__ import annotations

from itertools import cycle

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter

from cascaded.figures import base
from cascaded.figures.base import Figure, styled
from cascaded.figures.style import CASCADED, INK, PALETTE, SERIAL
from cascaded.results.metrics import METRICS

FULL = "full pass"
COLORS = {FULL: INK, "serial": SERIAL, "cascaded": CASCADED, "cascaded, batched blocks": PALETTE[5]}
COLORS["serial, chosen exits"] = PALETTE[6]
BASELINES = (PALETTE[1], PALETTE[2], PALETTE[4], PALETTE[8])
RUNTIMES = {"torch": ("torch", ":"), "onnx": ("exported", "-")}


@styled()
def measured_time(df: pd.DataFrame) -> Figure:
    """Accuracy against the time to a prediction, one panel per batch size; a full pass is a point, a baseline a square.

    Args:
        df: One row per timing of `cascaded latency`: runtime, rule, threshold, network (empty unless it is a baseline),
            batch_size, accuracy, typical (seconds).
    """
    df = df.assign(milliseconds=1000 * df["typical"])
    sizes = sorted(df["batch_size"].unique())
    fig, axes = base.grid([f"batch size {size}" for size in sizes], 2.4, "y")
    handles = {}
    baselines = dict(zip(sorted(set(df["network"]) - {""}), cycle(BASELINES)))
    for ax, size in zip(axes, sizes, strict=True):
        for key, own in df[df["batch_size"] == size].groupby(["runtime", "rule", "network"], sort=False):
            runtime, rule, network = map(str, key)
            word, style = RUNTIMES[runtime]
            color, face = baselines.get(network) or COLORS[rule], None if runtime == "onnx" else "none"
            marker = "s" if network else "D" if rule == FULL else "o"
            _draw(ax, own.sort_values("milliseconds"), style, marker, color, face)
            text = f"{word} full pass" if rule == FULL else f"{word}, {rule} early exit"
            text += f" of {network}" if network else ""
            handles[text] = base.line_handle(text, color, "" if rule == FULL else style, marker, face)
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.xaxis.set_minor_formatter(NullFormatter())
        base.set_format(ax, "y", METRICS["accuracy"])
    base.legend(fig, list(handles.values()))
    base.label_axes(fig, axes, "time to a prediction (ms)", "accuracy")
    fig.data = df
    return fig


def _draw(ax: Axes, df: pd.DataFrame, style: str, marker: str, color: str, face: str | None) -> None:
    ax.plot(df["milliseconds"], df["accuracy"], color=color, ls=style, marker=marker, ms=4, mfc=face or color)


@styled()
def predicted_time(df: pd.DataFrame) -> Figure:
    """Accuracy per step against the predicted time, for several numbers of processors, beside the serial schedule.

    Args:
        df: One row per step: rule, processors (NaN: unlimited), step, milliseconds, accuracy.
    """
    fig, (ax,) = base.grid([""], 3.0, "y")
    handles, shades = [], iter((PALETTE[6], PALETTE[7], PALETTE[1], PALETTE[5], CASCADED))
    for (rule, processors), own in df.groupby(["rule", "processors"], sort=False, dropna=False):
        if rule == "cascaded":
            count = "unlimited" if pd.isna(processors) else f"{processors:g}"
            text, color, marker = f"cascaded, {count} processor{'' if count == '1' else 's'}", next(shades), "o"
        else:
            text = "full pass" if rule == FULL else "serial, one block per step"
            color, marker = COLORS[str(rule)], "D" if rule == FULL else "s"
        style = "" if rule == FULL else "-"
        ax.plot(own["milliseconds"], own["accuracy"], color=color, ls=style, marker=marker, ms=4)
        handles.append(base.line_handle(text, color, style, marker))
    ax.set_xlim(left=0)
    base.set_format(ax, "y", METRICS["accuracy"])
    base.legend(fig, handles)
    base.label_axes(fig, [ax], "predicted time to the output of each step (ms)", "accuracy")
    fig.data = df
    return fig
