"""Networks beside people: curves over milliseconds, the difference between them, and accuracy per category."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from cascaded.figures import base
from cascaded.figures.base import Figure, select, styled
from cascaded.figures.dots import dots
from cascaded.figures.style import GRID, INK, MUTED, SMALL
from cascaded.results.compare import bands, estimates
from cascaded.results.human import is_likely, whole_set
from cascaded.results.metrics import METRICS

COLUMNS = 3
AXES = {
    ("deadline", "steps"): "steps",
    ("deadline", "operations"): "operations",
    ("threshold", "steps"): "mean stopping step",
}
"""What the time of a network is measured in, by rule and unit."""
PEOPLE = "people"


@styled()
def human_curves(df: pd.DataFrame) -> Figure:
    """Accuracy of people at deadlines (dots) and of networks over the same milliseconds (lines).

    A row of panels per manipulation, a panel per level; whiskers are 95 % intervals over observers.

    Args:
        df: From `cascaded.results.load`.
    """
    networks = select(df, "human", "network_accuracy_at_ms")
    networks = base.named(bands(_one_set(networks[is_likely(networks)])))
    people = _people(_one_set(select(df, "human", "human_accuracy")))
    conditions = people[["manipulation", "level"]].drop_duplicates().to_numpy().tolist()
    titles = [f"{name} {level:g}" for name, level in conditions]
    fig, axes = base.grid(titles, 1.35, "y", COLUMNS, sharex=True, sharey=True)
    for ax, (name, level) in zip(axes, conditions, strict=True):
        base.set_format(ax, "y", METRICS["human_accuracy"])
        base.set_format(ax, "x", None, whole=True, ticks=4)
        _draw_networks(ax, networks[(networks["manipulation"] == name) & (networks["level"] == level)])
        _draw_people(ax, people[(people["manipulation"] == name) & (people["level"] == level)])
    handles = [base.line_handle(PEOPLE, INK, "", "o"), *base.name_handles(networks, "-")]
    base.legend(fig, handles)
    base.label_axes(fig, axes, "deadline (ms)", "accuracy")
    fig.data = pd.concat([people.assign(name=PEOPLE, color=INK), networks], ignore_index=True)
    return fig


def _one_set(df: pd.DataFrame) -> pd.DataFrame:
    """The rows of one set of answers, the first: curves of different people do not belong into one panel."""
    return df[df["human"] == df["human"].iloc[0]]


def _people(df: pd.DataFrame) -> pd.DataFrame:
    """The accuracy of people once, with intervals; every run has the same rows."""
    people = df.drop_duplicates(["manipulation", "level", "x"])
    low, high = np.transpose([np.quantile(draws, [0.025, 0.975]) for draws in people["draws"]])
    columns = ["metric", "manipulation", "level", "x", "value"]
    return people[columns].assign(low=low, high=high, interval_over="observers")


def _draw_networks(ax: Axes, df: pd.DataFrame) -> None:
    for _, line in df.sort_values("x").groupby("name", sort=False):
        own = line["color"].iloc[0]
        ax.plot(line["x"], line["value"], color=own, lw=1.2)
        ax.fill_between(
            line["x"], line["value"] - line["sem"], line["value"] + line["sem"], color=own, alpha=0.15, lw=0
        )


def _draw_people(ax: Axes, df: pd.DataFrame) -> None:
    error = np.abs(df[["low", "high"]].to_numpy().T - df["value"].to_numpy())
    ax.errorbar(df["x"], df["value"], yerr=error, fmt="o", color=INK, markersize=3.5, elinewidth=1, zorder=3)


@styled()
def human_fit(df: pd.DataFrame) -> Figure:
    """Difference of networks from people, by what their time is measured in; dotted: that of a perfect model.

    Args:
        df: From `cascaded.results.load`.
    """
    rows = _one_set(select(df, "human", "fit_error", manipulation=whole_set(df)))
    texts = [AXES[key] for key in zip(rows["rule"], rows["unit"], strict=True)]
    fig = dots(estimates(rows.assign(rule=texts, unit=None)), "rule")
    level = _one_set(select(df, "human", "ceiling_error", manipulation=whole_set(df)))["value"].iloc[0]
    for ax in fig.axes:
        ax.axvline(level, color=MUTED, ls=":", lw=1)
        ax.set_xlim(left=0)
    words: dict[str, Any] = {"color": MUTED, "fontsize": SMALL - 1, "ha": "right", "va": "bottom", "rotation": 90}
    fig.axes[0].text(level, 0.03, "noise ceiling", transform=fig.axes[0].get_xaxis_transform(), **words)
    perfect = {"name": "a perfect model", "value": level, "low": np.nan, "high": np.nan, "interval_over": "none"}
    perfect = fig.data.head(1).assign(**perfect, rule="any")  # in the same setting
    fig.data = pd.concat([fig.data, perfect], ignore_index=True)
    return fig


@styled()
def human_categories(df: pd.DataFrame) -> Figure:
    """Accuracy per category at the first deadline at which people are above chance, and at the last one.

    Images without noise and blur; categories that people recognize best at the first of the two come first.

    Args:
        df: From `cascaded.results.load`.
    """
    networks = bands(_plain(_one_set(select(df, "human", "category_accuracy"))))
    people = _plain(_one_set(select(df, "human", "human_category_accuracy"))).drop_duplicates(["category", "x"])
    networks, times = base.named(networks), sorted(people["x"].unique())
    order = people[people["x"] == times[0]].sort_values("value", ascending=False)["category"].tolist()
    fig, axes = base.grid([f"{ms:g} ms" for ms in times], 0.4 + 0.2 * len(order), "x", sharex=True, sharey=True)
    for ax, ms in zip(axes, times, strict=True):
        for _, own in networks[networks["x"] == ms].groupby("name", sort=False):
            places = own["category"].map(order.index)
            ax.plot(own["value"], places, "o", color=own["color"].iloc[0], markersize=4, alpha=0.8)
        own = people[people["x"] == ms]
        ax.plot(own["value"], own["category"].map(order.index), "d", color=INK, markersize=5)
        base.set_format(ax, "x", METRICS["category_accuracy"])
    axes[0].set_yticks(range(len(order)), order)
    axes[0].set_ylim(len(order) - 0.5, -0.5)
    base.legend(fig, [base.line_handle(PEOPLE, INK, "", "d"), *base.name_handles(networks, "", "o")])
    base.label_axes(fig, axes, METRICS["category_accuracy"].label, "")
    fig.data = pd.concat([people[networks.columns.intersection(people.columns)].assign(name=PEOPLE), networks])
    return fig


@styled()
def human_confusions(df: pd.DataFrame) -> Figure:
    """Confusion matrices of people and of networks, early and late: the fuller a cell, the more frequent the answer.

    A row of matrices for people and for each network, at the two deadlines of `human_categories`; seeds are averaged.
    A row of a matrix is the category of the image; images without noise and blur.

    Args:
        df: From `cascaded.results.load`.
    """
    cells = ["name", "color", "x", "category", "answer"]
    people = _plain(_one_set(select(df, "human", "human_confusion"))).assign(name=PEOPLE, color=INK)
    networks = base.named(_plain(_one_set(select(df, "human", "confusion"))))
    rows = pd.concat([people, networks])[[*cells, "value"]]
    rows = rows.groupby(cells, sort=False, as_index=False)["value"].mean()
    matrices = list(rows.groupby(["name", "color", "x"], sort=False))
    fig, axes = base.grid([f"{name}, {ms:g} ms" for (name, _, ms), _ in matrices], 2.1, "y", sharex=True, sharey=True)
    order = people["category"].unique().tolist()
    for ax, ((_, color, _), own) in zip(axes, matrices, strict=True):
        shades = own.pivot(index="category", columns="answer", values="value").loc[order, order].to_numpy()
        ax.grid(False)  # the cells have edges
        ax.pcolormesh(base.cells(shades, str(color)), edgecolors=GRID, linewidth=0.5)
        ax.set_yticks(np.arange(len(order)) + 0.5, order)
        ax.set_xticks(np.arange(len(order)) + 0.5, order, rotation=90)
        ax.set_ylim(len(order), 0)
        ax.spines[:].set_visible(False)
    base.label_axes(fig, axes, "answer", "category of the image")
    fig.data = rows
    return fig


def _plain(df: pd.DataFrame) -> pd.DataFrame:
    """Rows of images without noise and blur where there are some, otherwise of all images."""
    plain = df["level"] == 0
    return df[plain if plain.any() else df["level"].isna()]
