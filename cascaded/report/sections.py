"""The sections and figures of the page; `sections.json` has their titles and captions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
import pandas as pd

from cascaded.figures.accuracy import accuracy_per_step, lambda_effect
from cascaded.figures.base import Figure
from cascaded.figures.detection import ood
from cascaded.figures.files import save
from cascaded.figures.images import noises
from cascaded.figures.latency import latency_by_decile, prototypicality, settled, taxonomy
from cascaded.figures.noise import dip, persistent_noise, target_confidence
from cascaded.figures.stopping import speed_accuracy, stopping_rules
from cascaded.figures.svg import inline
from cascaded.progress import counted
from cascaded.report.page import PageFigure
from cascaded.results.metrics import METRICS, Metric

MAX_ROWS = 40
"""A longer table of numbers is only in the CSV file."""


@dataclass(frozen=True)
class FigureSpec:
    """A figure, drawn where the table has its metric.

    Attributes:
        key: Its file name without suffix, and its function in DRAW.
        title: A few words.
        caption: One or two sentences that say what to see.
        analysis: Whose rows it shows.
        metric: Which of them.
        more: Figures with further details, folded away below it.
    """

    key: str
    title: str
    caption: str
    analysis: str
    metric: str
    more: tuple[FigureSpec, ...] = ()

    def is_in(self, table: pd.DataFrame) -> bool:
        """Whether the table has the rows that it needs."""
        rows = table[(table["analysis"] == self.analysis) & (table["metric"] == self.metric)]
        return len(rows) > 0 and (self.key != "lambda" or rows.groupby("data")["lam"].nunique().max() > 1)


@dataclass(frozen=True)
class SectionSpec:
    """A section: its figures, and the analyses that it reports as missing."""

    key: str
    title: str
    lead: str
    analyses: tuple[str, ...]
    figures: tuple[FigureSpec, ...]


@dataclass(frozen=True)
class _Content:
    first: FigureSpec
    sections: tuple[SectionSpec, ...]


def _stopping_rules(table: pd.DataFrame) -> Figure:
    """All rules at one temporal resolution: that of the learned stopper where there is one."""
    fine = ((table["analysis"] == "learned_stopper") & (table["time"] == "fine")).any()
    serial = table["schedule"] == "serial"
    return stopping_rules(table[(table["time"] == ("fine" if fine else "coarse")) | serial])


def _lambda_effect(table: pd.DataFrame) -> Figure:
    """Data sets on which several lambdas were trained."""
    lambdas = table.groupby("data")["lam"].transform("nunique")
    return lambda_effect(table[lambdas > 1])


DRAW: dict[str, Callable[[pd.DataFrame], Figure]] = {
    "accuracy-per-step": accuracy_per_step,
    "speed-accuracy": speed_accuracy,
    "speed-accuracy-operations": partial(speed_accuracy, unit="operations"),
    "lambda": _lambda_effect,
    "settled": settled,
    "prototypicality": prototypicality,
    "latency-by-decile": latency_by_decile,
    "persistent-noise": persistent_noise,
    "noises": lambda table: noises(),
    "transient-noise": dip,
    "target-confidence": target_confidence,
    "ood": ood,
    "ood-fpr95": partial(ood, metric="fpr95"),
    "stopping-rules": _stopping_rules,
    "taxonomy": taxonomy,
}
CONTENT = msgspec.json.decode(Path(__file__).with_name("sections.json").read_bytes(), type=_Content)
FIRST, SECTIONS = CONTENT.first, CONTENT.sections


def draw(spec: FigureSpec, table: pd.DataFrame, folder: Path) -> PageFigure:
    """Draw a figure and those folded below it into files, and as SVG for the page."""
    figure = DRAW[spec.key](table)
    more = tuple(draw(each, table, folder) for each in spec.more if each.is_in(table))
    return page_figure(figure, spec.key, spec.title, spec.caption, folder, more)


def page_figure(
    figure: Figure, key: str, title: str, caption: str, folder: Path, more: Sequence[PageFigure] = ()
) -> PageFigure:
    """Write a figure's files and take it over into the page."""
    files = {kind: file.name for kind, file in save(figure, folder / key).items()}
    words = f"{caption}{_uncertainty(figure.data)}"
    return PageFigure(title, words, inline(figure, key, title), files, tuple(more), numbers(figure.data))


def _uncertainty(data: pd.DataFrame) -> str:
    """What the bands or bars of a figure are, where it has some."""
    if "sem" in data and data["sem"].notna().any():
        return " Bands are one standard error over seeds."
    if "interval_over" not in data or (over := set(data["interval_over"]) - {"none"}) == set():
        return ""
    return f" Bars are 95 % intervals over {' or '.join(sorted(over))}."


def numbers(data: pd.DataFrame) -> tuple[tuple[str, ...], ...]:
    """The numbers of a figure as text, headings first; empty where there are too many for a page."""
    if not {"name", "metric", "value"} <= set(data.columns):
        return ()
    metric = METRICS[data["metric"].iloc[0]]
    columns = ("data", "split", "time", "noise", "measure", "detector", "reads", "rule")
    varying = [name for name in columns if name in data and data[name].nunique(dropna=False) > 1]
    if "lam" in data and data.duplicated(["name", *varying, *(["x"] if "x" in data else [])]).any():
        varying.append("lam")
    rows = list(_curves(data, varying, metric) if "x" in data else _estimates(data, varying, metric))
    return tuple(rows) if len(rows) <= MAX_ROWS else ()


def _curves(data: pd.DataFrame, varying: list[str], metric: Metric) -> Iterator[tuple[str, ...]]:
    """A row per point, a column per network."""
    names = list(data["name"].unique())
    yield (*varying, "x", *names)
    for key, rows in data.groupby([*varying, "x"], dropna=False):
        values = rows.drop_duplicates("name").set_index("name")["value"].reindex(names)
        yield (*(f"{each:g}" if isinstance(each, float) else str(each) for each in key), *map(metric.format, values))


def _estimates(data: pd.DataFrame, varying: list[str], metric: Metric) -> Iterator[tuple[str, ...]]:
    """A row per estimate, with its interval."""
    yield ("network", *varying, metric.label, "95 % interval", "over")
    for row in data.to_dict("records"):
        interval = f"{metric.format(row['low'])} to {metric.format(row['high'])}"
        over = counted(row["n_seeds"], "seed") if row["interval_over"] == "seeds" else row["interval_over"]
        known = (interval, over) if over != "none" else ("", "")
        yield (row["name"], *(str(row[name]) for name in varying), metric.format(row["value"]), *known)
