"""What all figures are made of: panels, lines with bands, dots with intervals, labels and legends."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec

import matplotlib as mpl
import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, MaxNLocator, PercentFormatter
from matplotlib.transforms import offset_copy

from cascaded.errors import InputError
from cascaded.figures.style import DASHES, INK, MUTED, PAPER, SMALL, STYLE, WIDTH, color, text_color
from cascaded.results.metrics import METRICS, Metric
from cascaded.results.names import NAMES, display_name

P = ParamSpec("P")
MAX_LABELS = 8
"""Lines that are labelled where they end; more have a legend."""


class Figure(matplotlib.figure.Figure):
    """A matplotlib figure that carries the numbers it shows as `data`."""

    data: pd.DataFrame = pd.DataFrame()


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Run a figure function with our matplotlib settings, whatever the caller's are."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with mpl.rc_context(STYLE):
            return draw(*args, **kwargs)

    return drawn


def select(df: pd.DataFrame, analysis: str, metric: str, **variants: Any) -> pd.DataFrame:
    """The rows of one metric; an error where the table has none."""
    chosen = df[(df["analysis"] == analysis) & (df["metric"] == metric)]
    for column, value in variants.items():
        chosen = chosen[chosen[column].isin(value) if isinstance(value, tuple) else chosen[column] == value]
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


def panels(df: pd.DataFrame, facets: Sequence[str], within: Sequence[str]) -> list[tuple[str, pd.DataFrame]]:
    """Parts of a table that are drawn in axes of their own, each with a title of what sets it apart.

    Args:
        df: Estimates or bands.
        facets: Columns that always have axes of their own.
        within: Columns that tell the marks of one panel apart. Where they do not, panels are split further.
    """
    columns = [*facets, "data", "split", "arch", "width", "time"]
    for column in ("kernel", "steps", "train_noise", "noise", "items", "config"):
        if column in df and column not in within and df.duplicated([*columns, *within]).any():
            columns.append(column)
    varying = [column for column in columns if df[column].nunique(dropna=False) > 1]
    if not varying:
        return [("", df)]
    groups = df.groupby(varying, dropna=False, sort=False)
    return [(", ".join(_words(group.iloc[0], varying)), group) for _, group in groups]


def _words(row: pd.Series, columns: Sequence[str]) -> list[str]:
    texts = {
        "width": "width {}",
        "steps": "{:g} steps",
        "time": "{} time",
        "items": "images {:.6}",
        "train_noise": "trained with {}",
        "noise_frames": "{:g} noisy frames",
        "config": "config {:.6}",
    }
    missing = {"train_noise": "trained without noise", "noise": "no noise"}
    values = ((column, row[column]) for column in columns)
    return [
        missing.get(column, f"no {column}") if pd.isna(value) else texts.get(column, "{}").format(value)
        for column, value in values
    ]


def grid(count: int, height: float, share_x: bool = False, share_y: bool = False) -> tuple[Figure, list[Axes]]:
    """A figure with `count` axes in at most two columns, each `height` inches high."""
    columns = 1 if count == 1 else 2
    rows = -(-count // columns)
    fig = Figure(figsize=(WIDTH, rows * height), layout="constrained")
    axes = fig.subplots(rows, columns, sharex=share_x, sharey=share_y, squeeze=False).ravel().tolist()
    for ax in axes[count:]:
        ax.set_axis_off()
    return fig, axes[:count]


def set_format(ax: Axes, axis: str, metric: Metric | None, whole: bool = False) -> None:
    """Ticks of an axis: percent, whole numbers, or plain numbers."""
    chosen = getattr(ax, f"{axis}axis")
    chosen.set_major_locator(MaxNLocator(6, integer=whole, steps=[1, 2, 2.5, 5, 10]))
    if metric is not None and metric.unit == "%":
        chosen.set_major_formatter(PercentFormatter(1, symbol=" %"))


def axis_label(metric: Metric) -> str:
    """The label of an axis, with the unit where the ticks do not show it."""
    return metric.label if metric.unit in ("", "%") else f"{metric.label} ({metric.unit})"


def lines(
    df: pd.DataFrame,
    xlabel: str,
    *,
    facets: Sequence[str] = (),
    dashes: str | None = None,
    whole: bool = True,
    share_y: bool = True,
    engineering: bool = False,
) -> Figure:
    """A line per method with a band of one standard error, in a panel per setting.

    Args:
        df: Bands, from `results.bands`, of one metric.
        xlabel: The label of the x axis.
        facets: Columns with a panel per value.
        dashes: A column that decides the line style.
        whole: Whether x are whole numbers.
        share_y: Whether all panels have the same y axis.
        engineering: Whether x are large numbers, written as 100 M.
    """
    metric = METRICS[df["metric"].iloc[0]]
    df = named(df)
    parts = panels(df, facets, ["name", *([dashes] if dashes else []), "x"])
    fig, axes = grid(len(parts), 3.1 if len(parts) == 1 else 1.9, share_y=share_y)
    for ax, (title, part) in zip(axes, parts, strict=True):
        ax.set_title(title)
        ax.grid(axis="y")
        set_format(ax, "y", metric)
        set_format(ax, "x", None, whole)
        if engineering:
            ax.xaxis.set_major_formatter(EngFormatter())
            ax.xaxis.set_major_locator(MaxNLocator(4))
        _draw_lines(ax, part, dashes, metric)
    label_axes(fig, axes, xlabel, axis_label(metric))
    names = df.drop_duplicates("name")
    if len(axes) == 1 and dashes is None and len(names) <= MAX_LABELS:
        label_ends(fig, axes[0])
    else:
        handles = [] if "name" in facets else [line_handle(name, own) for name, own in zip(names["name"], names["color"])]
        rules = list(df[dashes].unique()) if dashes else []
        legend(fig, handles + [line_handle(rule, INK, DASHES[rule]) for rule in DASHES if rule in rules])
    fig.data = df
    return fig


def _draw_lines(ax: Axes, df: pd.DataFrame, dashes: str | None, metric: Metric) -> None:
    for _, line in df.groupby(["name", *([dashes] if dashes else [])], sort=False):
        line = line.sort_values("x")
        first = line.iloc[0]
        style = DASHES[first[dashes]] if dashes else "-"
        marker = "o" if len(line) == 1 else None
        ax.plot(line["x"], line["value"], color=first["color"], ls=style, marker=marker, label=first["name"])
        low, high = line["value"] - line["sem"], line["value"] + line["sem"]
        if line["sem"].notna().any():
            if metric.unit == "%":
                low, high = low.clip(lower=0), high.clip(upper=1)
            ax.fill_between(line["x"], low, high, color=first["color"], alpha=0.15, lw=0)


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
    parts = panels(df, facets, ["name", rows, *([fill] if fill else [])])
    filled = next(iter(fill_names or ()), None)
    groups, names = list(df[rows].unique()), list(df["name"].unique())
    height = 0.45 + len(groups) * (0.18 + 0.14 * len(names)) + (0.3 if len(parts) == 1 else 0.1)
    fig, axes = grid(len(parts), height, share_x=True, share_y=True)
    for ax, (title, part) in zip(axes, parts, strict=True):
        ax.set_title(title)
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
    label_axes(fig, axes, axis_label(metric), "")
    handles = [line_handle(name, df.loc[df["name"] == name, "color"].iloc[0], "", "o") for name in names]
    for value, words in (fill_names or {}).items():
        handles.append(line_handle(words, INK, "", "o", face=INK if value == filled else PAPER))
    legend(fig, handles)
    fig.data = df
    return fig


def _draw_dots(ax: Axes, df: pd.DataFrame, y: Sequence[float], face: str) -> None:
    own = df["color"].iloc[0]
    error = np.abs(df[["low", "high"]].to_numpy().T - df["value"].to_numpy())
    ax.errorbar(df["value"], y, xerr=error, fmt="o", color=own, markerfacecolor=face, elinewidth=1.2)


def label_axes(fig: Figure, axes: Sequence[Axes], xlabel: str, ylabel: str) -> None:
    """Labels beside the axes where there is one, once for all where there are several."""
    if len(axes) == 1:
        axes[0].set(xlabel=xlabel, ylabel=ylabel)
    else:
        fig.supxlabel(xlabel)
        if ylabel:
            fig.supylabel(ylabel)


def line_handle(label: str, color: str, style: Any = "-", marker: str = "", face: str | None = None) -> Line2D:
    """An entry of a legend."""
    return Line2D([], [], color=color, ls=style, marker=marker, markerfacecolor=face or color, label=label)


def legend(fig: Figure, handles: Sequence[Line2D]) -> None:
    """A legend above all axes, in as many columns as have room."""
    if not handles:
        return
    longest = max(len(str(handle.get_label())) for handle in handles)
    columns = int(WIDTH * 72 / (longest * SMALL * 0.6 + 42))
    fig.legend(handles=list(handles), loc="outside upper left", ncols=min(max(1, columns), len(handles)))


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
    isotonic regression: neighbours that would cross are pooled at their mean.

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
