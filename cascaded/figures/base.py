"""What all figures are made of: rows of the table, panels, axes and legends."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import matplotlib as mpl
import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from cascaded.errors import InputError
from cascaded.figures.style import INK, SMALL, STYLE, WIDTH, color
from cascaded.results.metrics import Metric
from cascaded.results.names import NAMES, display_name

PANELS = ("data", "split", "arch", "width", "time")


class Figure(matplotlib.figure.Figure):
    """A matplotlib figure that carries the numbers it shows as `data`."""

    data: pd.DataFrame = pd.DataFrame()


@contextmanager
def styled() -> Iterator[None]:
    """Our matplotlib settings, whatever the caller's are: for a block, or as the decorator of a function."""
    with mpl.rc_context(STYLE), warnings.catch_warnings():
        # letters that the font lacks are boxes in a picture; in a page the reader's own fonts draw them
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def select(df: pd.DataFrame, analysis: str, metric: str, **variants: Any) -> pd.DataFrame:
    """The rows of one metric; an error where the table has none."""
    chosen = df[(df["analysis"] == analysis) & (df["metric"] == metric)]
    for column, value in variants.items():
        chosen = chosen[chosen[column] == value]
    if chosen.empty:
        words = "".join(f", {column} {value}" for column, value in variants.items())
        raise InputError(f"the table has no {metric} of {analysis}{words}: run cascaded analyze --only {analysis}")
    return chosen


def named(df: pd.DataFrame) -> pd.DataFrame:
    """The rows in the order of the methods, with two more columns: the name of each method and its color."""
    df = df.assign(order=df["method"].map({method: place for place, method in enumerate(NAMES)}))
    df = df.sort_values(["order", "lam", "schedule"], kind="stable").drop(columns="order")
    keys = list(zip(df["method"], df["lam"], df["schedule"], df["noise"], strict=True))
    return df.assign(name=[display_name(*key) for key in keys], color=[color(*key[:3]) for key in keys])


def panels(
    df: pd.DataFrame, facets: Sequence[str], within: Sequence[str], base: Sequence[str] = PANELS
) -> list[tuple[str, pd.DataFrame]]:
    """Parts of a table that are drawn in axes of their own, each with a title of what sets it apart.

    Args:
        df: Estimates or bands.
        facets: Columns that always have axes of their own.
        within: Columns that tell the marks of one panel apart. Where they do not, panels are split further.
        base: Other columns that always have axes of their own.
    """
    columns = [*facets, *(column for column in base if column not in (*facets, *within))]
    last = ("config", "protocol_version", "analysis_version")
    for column in ("time", "kernel", "steps", "train_noise", "noise", "items", *last):
        if column not in (*columns, *within) and df.duplicated([*columns, *within]).any():
            columns.append(column)
    varying = [column for column in columns if column == "name" or df[column].nunique(dropna=False) > 1]
    if not varying:
        return [("", df)]
    order = [column for column in varying if column != "name"]  # names have the order of the methods
    groups = (df.sort_values(order, kind="stable") if order else df).groupby(varying, dropna=False, sort=False)
    return [(", ".join(_words(group, varying)), group) for _, group in groups]


def _words(group: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """What sets a panel apart: `cifar10`, `70 steps, fine time`."""
    texts = {
        "width": "width {}",
        "steps": "{:g} steps",
        "items": "images {:.6}",
        "train_noise": "trained with {}",
        "noise_frames": "{:g} noisy frames",
        "config": "config {:.6}",
        "protocol_version": "protocol {}",
        "analysis_version": "analysis version {:g}",
    }
    missing = {"train_noise": "trained without noise", "noise": "no noise"}
    row = group.iloc[0]
    if "time" in columns and "steps" not in columns:
        lengths = group["steps"].dropna().unique()
        time = f"{row['time']} time" if len(lengths) != 1 else f"{lengths[0]:g} steps"
        texts |= {"time": time if row["time"] == "coarse" or len(lengths) != 1 else f"{time}, fine time"}
    values = ((column, row[column]) for column in columns)
    return [
        missing.get(column, f"no {column}") if pd.isna(value) else texts.get(column, "{}").format(value)
        for column, value in values
    ]


def grid(
    titles: Sequence[str], height: float, lines: Literal["x", "y"], columns: int = 2, **share: Any
) -> tuple[Figure, list[Axes]]:
    """A figure with axes in columns.

    Args:
        titles: One for each axes.
        height: Of the axes, in inches.
        lines: Which axis has grid lines.
        columns: How many axes stand beside each other, at most.
        share: `sharex` and `sharey` of matplotlib.
    """
    count, columns = len(titles), min(columns, len(titles))
    rows = -(-count // columns)
    fig = Figure(figsize=(WIDTH, rows * height + 0.3), layout="constrained")
    axes = fig.subplots(rows, columns, squeeze=False, **share).ravel().tolist()
    for ax in axes[count:]:
        ax.set_axis_off()
    for ax, title in zip(axes, titles, strict=False):
        ax.set_title(textwrap.fill(title, 60 // columns))
        ax.grid(axis=lines)
    for ax in axes[count - columns : count]:  # the last ones of their columns have tick labels
        ax.tick_params(labelbottom=True)
    return fig, axes[:count]


def cells(shades: np.ndarray, color: str) -> np.ndarray:
    """A color per cell of a heat map: more opaque from 0 to 1, so that it fits light and dark pages."""
    alpha = np.nan_to_num(np.clip(shades, 0, 1))
    return np.concatenate([np.broadcast_to(to_rgb(color), (*alpha.shape, 3)), alpha[..., None]], axis=-1)


def set_format(ax: Axes, axis: str, metric: Metric | None, whole: bool = False, ticks: int = 6) -> None:
    """Ticks of an axis: percent, whole numbers, or plain numbers."""
    chosen = ax.xaxis if axis == "x" else ax.yaxis
    chosen.set_major_locator(MaxNLocator(ticks, integer=whole, steps=[1, 2, 5, 10]))
    if metric is not None and metric.unit == "%":
        chosen.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    elif metric is not None and metric.scale != 1:
        scale = metric.scale
        chosen.set_major_formatter(FuncFormatter(lambda value, _: f"{scale * value:g}"))


def axis_label(metric: Metric) -> str:
    """The label of an axis, with the unit where the ticks do not show it."""
    return metric.label if metric.unit in ("", "%") else f"{metric.label} ({metric.unit})"


def label_axes(fig: Figure, axes: Sequence[Axes], xlabel: str, ylabel: str) -> None:
    """Labels beside the axes where there is one, once in the middle of all where there are several."""
    if len(axes) == 1:
        axes[0].set(xlabel=xlabel, ylabel=ylabel)
    else:
        fig.supxlabel(xlabel)
        fig.supylabel(textwrap.fill(ylabel, 24 if len(axes) <= 2 else 48))


def line_handle(label: str, color: str, style: Any = "-", marker: str = "", face: str | None = None) -> Line2D:
    """An entry of a legend."""
    return Line2D([], [], color=color, ls=style, marker=marker, markerfacecolor=face or color, label=label)


def name_handles(df: pd.DataFrame, style: str, marker: str = "") -> list[Line2D]:
    """An entry of a legend per method."""
    names = df.drop_duplicates("name")
    return [line_handle(*key, style, marker) for key in zip(names["name"], names["color"], strict=True)]


def legend(fig: Figure, *groups: Sequence[Line2D]) -> None:
    """A legend above all axes, in as many columns as have room; the figure becomes higher by it.

    Entries are read row by row, and every group begins a row.
    """
    groups = tuple(group for group in groups if group)
    if not groups:
        return
    longest = max(len(str(handle.get_label())) for group in groups for handle in group)
    most, room = max(map(len, groups)), max(1, int(WIDTH * 72 / (longest * SMALL * 0.6 + 40)))
    columns = -(-most // -(-most // room))  # rows of the same length, where they can be
    handles = []
    for group in groups:
        handles += [line_handle("", INK, "")] * (-len(handles) % columns) + list(group)
    fig.set_figheight(fig.get_figheight() + 0.2 * -(-len(handles) // columns))
    handles = [handle for column in range(columns) for handle in handles[column::columns]]  # as matplotlib fills it
    fig.legend(handles=handles, loc="outside upper left", ncols=columns, handlelength=1.5, columnspacing=1.5)
