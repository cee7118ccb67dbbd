"""The sections and figures of the page; `sections.json` has their titles and captions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from cascaded import figures
from cascaded.errors import InputError
from cascaded.figures.base import Figure
from cascaded.progress import counted
from cascaded.report.page import PageFigure
from cascaded.results.metrics import METRICS, Metric

MAX_ROWS = 40
"""A longer table of numbers is only in the CSV file."""


@dataclass(frozen=True)
class FigureSpec:
    """A figure, drawn where the table has its numbers.

    Attributes:
        key: Its file name without suffix, and its function in DRAW.
        title: A few words.
        caption: One or two sentences that say what to see.
        more: Figures with further details, folded away below it.
    """

    key: str
    title: str
    caption: str
    more: tuple[FigureSpec, ...] = ()


@dataclass(frozen=True)
class SectionSpec:
    """A section and its figures."""

    key: str
    title: str
    lead: str
    figures: tuple[FigureSpec, ...]


@dataclass(frozen=True)
class Content:
    """Everything in `sections.json`.

    Attributes:
        first: The figure of the first screen.
        gallery: Images, which are not in the table.
        schedules: Activations, which are not in the table.
        terms: Explanations of values, by column; a caption has those of the values that its figure tells apart.
        sections: The other figures.
    """

    first: FigureSpec
    gallery: FigureSpec
    schedules: FigureSpec
    terms: dict[str, dict[str, str]]
    sections: tuple[SectionSpec, ...]


def _stopping_rules(table: pd.DataFrame) -> Figure:
    """All rules at one temporal resolution: that of the learned stopper where there is one."""
    fine = ((table["analysis"] == "learned_stopper") & (table["time"] == "fine")).any()
    serial = table["schedule"] == "serial"
    return figures.stopping_rules(table[(table["time"] == ("fine" if fine else "coarse")) | serial])


DRAW: dict[str, Callable[[pd.DataFrame], Figure]] = {
    "accuracy-per-step": figures.accuracy_per_step,
    "speed-accuracy": figures.speed_accuracy,
    "speed-accuracy-operations": partial(figures.speed_accuracy, unit="operations"),
    "lambda": figures.lambda_effect,
    "settled": figures.settled,
    "prototypicality": figures.prototypicality,
    "latency-by-decile": figures.latency_by_decile,
    "persistent-noise": figures.persistent_noise,
    "noises": lambda table: figures.noises(),
    "transient-noise": figures.dip,
    "target-confidence": figures.target_confidence,
    "ood": figures.ood,
    "ood-fpr95": partial(figures.ood, metric="fpr95"),
    "stopping-rules": _stopping_rules,
    "taxonomy": figures.taxonomy,
    "human-curves": figures.human_curves,
    "human-fit": figures.human_fit,
    "human-categories": figures.human_categories,
    "human-confusions": figures.human_confusions,
}
CONTENT = msgspec.json.decode(Path(__file__).with_name("sections.json").read_bytes(), type=Content)
SECTIONS = CONTENT.sections


def draw(specs: Sequence[FigureSpec], table: pd.DataFrame, folder: Path) -> tuple[PageFigure, ...]:
    """Draw the figures that the table has numbers for, and those folded below them, into files and for the page."""
    drawn = []
    for spec in specs:
        try:
            figure = DRAW[spec.key](table)
        except InputError:  # the table lacks its numbers; the page lists what is missing
            continue
        caption = " ".join([spec.caption, *_terms(figure.data), *_ood_data(figure.data, table)])
        drawn.append(page_figure(figure, replace(spec, caption=caption), folder, draw(spec.more, table, folder)))
    return tuple(drawn)


def page_figure(figure: Figure, spec: FigureSpec, folder: Path, more: tuple[PageFigure, ...] = ()) -> PageFigure:
    """Write a figure's files and take it over into the page."""
    files = {kind: file.name for kind, file in figures.save(figure, folder / spec.key).items()}
    caption = f"{spec.caption}{_uncertainty(figure.data)}"
    table = numbers(figure.data, figure.get_supxlabel() or (figure.axes[0].get_xlabel() if figure.axes else ""))
    return PageFigure(spec.title, caption, figures.inline(figure, spec.key, spec.title), files, more, table)


def _terms(data: pd.DataFrame) -> Iterator[str]:
    """A sentence per column with special values, on those that a figure tells apart."""
    for column, known in CONTENT.terms.items():
        values = set(data[column].dropna()) if column in data else set()
        words = [text for value, text in known.items() if value in values]
        if words and len(values) > 1 and ("x" in data or column != "time"):  # dots of both times share their panels
            text = "; ".join(words)
            yield f"{text[0].upper()}{text[1:]}."


def _ood_data(data: pd.DataFrame, table: pd.DataFrame) -> Iterator[str]:
    """A sentence with the data sets that a figure has means over."""
    if "ood_data" in data and (data["ood_data"] == "mean").any():
        names = sorted(set(table["ood_data"].dropna()) - {"mean"})
        yield f"Out-of-distribution images: {', '.join(names)}."


def _uncertainty(data: pd.DataFrame) -> str:
    """What the bands or bars of a figure are, where it has some."""
    if "sem" in data and data["sem"].notna().any():
        return " Bands are one standard error over seeds."
    if "interval_over" not in data or (over := set(data["interval_over"].dropna()) - {"none"}) == set():
        return ""
    return f" Bars are 95 % intervals over {' or '.join(sorted(over))}."


def numbers(data: pd.DataFrame, xlabel: str = "") -> tuple[tuple[str, ...], ...]:
    """The numbers of a figure as text, headings first; empty where there are too many for a page.

    Args:
        data: What the figure shows.
        xlabel: What `x` is, for curves.
    """
    if not {"name", "metric", "value"} <= set(data.columns):
        return ()
    metric = METRICS[data["metric"].iloc[0]]
    columns = ("data", "split", "time", "noise", "measure", "detector", "reads", "rule", "analysis_version")
    columns += ("manipulation", "level", "category")
    varying = [name for name in columns if name in data and data[name].nunique(dropna=False) > 1]
    for column in ("lam", "protocol_version"):  # only where rows differ in nothing else
        if column in data and data.duplicated(["name", *varying, *(["x"] if "x" in data else [])]).any():
            varying.append(column)
    rows = list(_curves(data, varying, metric, xlabel) if "x" in data else _estimates(data, varying, metric))
    return tuple(rows) if len(rows) <= MAX_ROWS else ()


def _curves(data: pd.DataFrame, varying: list[str], metric: Metric, xlabel: str) -> Iterator[tuple[str, ...]]:
    """A row per point, a column per network."""
    names = list(data["name"].unique())
    yield (*_headings(varying), xlabel or "x", *names)
    first = data.drop_duplicates(["name", *varying, "x"])
    for key, row in first.set_index([*varying, "x", "name"])["value"].unstack("name")[names].iterrows():
        cells = key if isinstance(key, tuple) else (key,)
        yield (*(f"{each:g}" if isinstance(each, float) else str(each) for each in cells), *map(metric.format, row))


def _estimates(data: pd.DataFrame, varying: list[str], metric: Metric) -> Iterator[tuple[str, ...]]:
    """A row per estimate, with its interval."""
    yield ("network", *_headings(varying), metric.label, "95 % interval", "over")
    for row in data.to_dict("records"):
        interval = f"{metric.format(row['low'])} to {metric.format(row['high'])}"
        over = interval_over(row)
        known = (metric.format(row["value"]), interval if over else "", over)
        yield (row["name"], *("" if pd.isna(row[name]) else str(row[name]) for name in varying), *known)


def _headings(columns: Sequence[str]) -> list[str]:
    return [{"lam": "lambda", "protocol_version": "protocol version"}.get(name, name) for name in columns]


def interval_over(row: Mapping[str, Any]) -> str:
    """What an interval is over: `3 seeds`, `images`, or "" where there is none."""
    over = str(row["interval_over"])
    seeds = counted(int(row["n_seeds"]), "seed") if "seeds" in over else ""
    return over.replace("seeds", seeds).replace("none", "")
