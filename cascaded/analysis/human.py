"""Networks beside people: accuracy at deadlines, the line from steps to milliseconds, categories and confusions.

Draws are over observers, within each manipulation; every run draws the same ones. Equations are in docs/human.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float64, Int64

from cascaded.analysis.mapping import Fit, Line
from cascaded.analysis.network_curves import AXES, Network, NetworkCurves, Traces
from cascaded.analysis.people import (
    People,
    accuracy_range,
    ceiling,
    confusion,
    errors,
    pearson,
    rms,
    steepness,
)
from cascaded.analysis.rows import DRAWS, Rows
from cascaded.data.trials import Answers, accuracy
from cascaded.errors import InputError
from cascaded.traces.stimuli import READINGS, noise_of

EVERY_MS = 25.0
"""Curves of networks over milliseconds have a point so often."""


def compare_with_people(
    traces: Traces, answers: Answers, *, data: str = "human_sat", draws: int = DRAWS, seed: int = 0
) -> pd.DataFrame:
    """Measure how a network's accuracy over time, per category and in its errors resembles that of people.

    Args:
        traces: One recording of the same images for everything that people were shown, by noise (`noise_of`).
        answers: From `cascaded.data.trials.count_answers`.
        data: Name of the answers.
        draws: How often observers are drawn, for intervals.
        seed: Seed of the draws.
    """
    if len(answers.deadlines) < 2:
        raise InputError(f"people answered at {len(answers.deadlines)} deadline: give at least two")
    needed = [noise_of(reading, level) for name, level in answers.conditions for reading in READINGS[name]]
    if missing := [noise for noise in needed if noise not in traces]:
        way = "" if missing[0] is None else f" --noise {missing[0]} --protocol still"
        raise InputError(
            f"people were shown {missing[0] or 'color images'}, which are not recorded: cascaded record{way}"
        )
    people, network = People(answers, draws, seed), Network(traces, answers.categories)
    manipulations = list(dict.fromkeys(name for name, _ in answers.conditions))
    readings = [
        dict(zip(manipulations, each, strict=True)) for each in product(*(READINGS[name] for name in manipulations))
    ]
    compared = [Comparison(people, network, each, *axis) for each in readings for axis in network.axes]
    rows = Rows(1)
    _add_people(rows, people)
    _add_network(rows, people, network, compared[0].lines[0])
    for each in compared:
        each.add_fit(rows)
    compared[0].add_measures(rows)
    plain = np.array([noise in (None, "gray") for noise in compared[0].noises])
    compared[0].add_categories(rows, np.ones(len(plain), bool))
    if plain.any() and not plain.all():
        compared[0].add_categories(rows, plain, level=0.0)
    return rows.table().assign(human=data)


@dataclass(frozen=True)
class Comparison:
    """One network beside people, over one axis of time.

    Attributes:
        people: The people.
        network: The network.
        readings: How each manipulation is read.
        rule: Whether the network stops at a deadline or at a confidence threshold.
        unit: What time is measured in.
    """

    people: People
    network: Network
    readings: dict[str, str]
    rule: str
    unit: str

    @property
    def noises(self) -> list[str | None]:
        """The noise of every condition."""
        return [noise_of(self.readings[name], level) for name, level in self.people.answers.conditions]

    @cached_property
    def curves(self) -> NetworkCurves:
        """Accuracy of the network, condition by condition."""
        return self.network.curves(self.noises, self.rule, self.unit)

    @cached_property
    def lines(self) -> list[Line]:
        """The line fitted to all people, then those fitted to every draw."""
        fit = Fit(self.curves, self.people.ms)
        return [fit(self.people.accuracy), *map(fit, self.people.drawn_accuracy)]

    @cached_property
    def mapped(self) -> Float64[np.ndarray, "fits conditions deadlines"]:
        """Accuracy of the network at the deadlines, by every line."""
        return np.stack([self.curves.at(line.places(self.people.ms)) for line in self.lines])

    @cached_property
    def human(self) -> Float64[np.ndarray, "fits conditions deadlines"]:
        """Accuracy of people: all, then every draw."""
        return np.concatenate([self.people.accuracy[None], self.people.drawn_accuracy])

    def add_fit(self, rows: Rows) -> None:
        """The line, its error, and the correlation of all cells."""
        variant = {"manipulation": "+".join(self.readings.values()), "rule": self.rule, "unit": self.unit}
        _add(rows, "mapping_offset", [line.offset for line in self.lines], **variant)
        _add(rows, "mapping_scale", [line.scale for line in self.lines], **variant)
        _add(rows, "fit_error", _recentered(list(map(rms, self.human, self.mapped))), **variant)
        cells = [pearson(h.ravel(), n.ravel()) for h, n in zip(self.human, self.mapped, strict=True)]
        _add(rows, "curve_correlation", cells, **variant)

    def add_measures(self, rows: Rows) -> None:
        """Error per manipulation; steepness and range per condition and as means over conditions."""
        measured = {
            "steepness": steepness(self.mapped, self.people.ms),
            "human_steepness": steepness(self.human, self.people.ms),
            "accuracy_range": accuracy_range(self.mapped),
            "human_accuracy_range": accuracy_range(self.human),
        }
        steps = accuracy_range(self.curves.accuracy[:, 1:])
        for name, reading in self.readings.items() if len(self.readings) > 1 else ():
            own = self.people.of(name)
            each = [rms(h[own], n[own]) for h, n in zip(self.human, self.mapped, strict=True)]
            _add(rows, "fit_error", _recentered(each), manipulation=reading, rule=self.rule, unit=self.unit)
        for number, (name, level) in enumerate(self.people.answers.conditions):
            variant = {"manipulation": self.readings[name], "level": level}
            for metric, values in measured.items():
                _add(rows, metric, values[:, number], **variant)
            rows.value("accuracy_range_steps", steps[number], **variant)
        every = "+".join(self.readings.values())
        for metric, values in measured.items():
            _add(rows, metric, np.nanmean(values, axis=1), manipulation=every)
        rows.value("accuracy_range_steps", float(steps.mean()), manipulation=every)

    def add_categories(self, rows: Rows, own: Bool[np.ndarray, "conditions"], **which: float) -> None:
        """Accuracy per category and confusions under some conditions, and how alike they are.

        Args:
            rows: Where rows are added.
            own: Which conditions; trials are pooled over them.
            which: What tells them apart.
        """
        variant = {"manipulation": "+".join(self.readings.values()), **which}
        pairs = [self._matrices(d, own) for d in range(len(self.people.ms))]
        human, network = (
            np.nanmean([np.diagonal(each, axis1=1, axis2=2) for each in one], axis=0)
            for one in zip(*pairs, strict=True)
        )
        _add(rows, "category_correlation", list(map(pearson, human, network)), **variant)
        for when, d in (("early", self.people.early), ("late", self.people.late)):
            _add_matrices(rows, self.people.ms[d], self.people.answers.categories, pairs[d], variant)
            alike = list(zip(*pairs[d], strict=True))
            values = [pearson(np.diagonal(h), np.diagonal(n)) for h, n in alike]
            _add(rows, f"category_correlation_{when}", values, **variant)
            _add(rows, f"confusion_similarity_{when}", [pearson(errors(h), errors(n)) for h, n in alike], **variant)
            halves = ceiling(self.people.answers, lambda counts, d=d: errors(confusion(counts[own, d].sum(axis=0))))
            rows.value(f"confusion_ceiling_{when}", halves.reliability, **variant)
        halves = ceiling(self.people.answers, lambda counts: _per_category(counts[own]))
        rows.value("category_ceiling", halves.reliability, **variant)

    def _matrices(self, d: int, own: Bool[np.ndarray, "conditions"]) -> tuple[np.ndarray, np.ndarray]:
        """Confusions of people and of the network at a deadline: of all observers, then of every draw."""
        counts = np.concatenate([self.people.counts[None, own, d], self.people.drawn[:, own, d]])
        confusions = np.stack([self.network.confusions[self.noises[c]] for c in np.flatnonzero(own)])
        weights = counts.sum(axis=(-2, -1))
        places = [float(line.places(self.people.ms[d])) for line in self.lines]
        mine = [_mixture(confusions, *each) for each in zip(weights, places, strict=True)]
        return confusion(counts.sum(axis=1)), np.stack(mine)


def _per_category(counts: Int64[np.ndarray, "conditions deadlines categories answers"]) -> np.ndarray:
    """Accuracy per category: trials pooled over conditions, then the mean over deadlines."""
    return np.nanmean(np.diagonal(confusion(counts.sum(axis=0)), axis1=1, axis2=2), axis=0)


def _add(rows: Rows, metric: str, values: Any, **variant: Any) -> None:
    """A number of all observers, with the same number of every draw after it."""
    rows.rows.append(
        {"metric": metric, "value": float(values[0]), "draws": np.array(values[1:], np.float32), **variant}
    )


def _recentered(errors: list[float]) -> list[float]:
    """Errors of all observers and of draws, the latter with the mean square of the former.

    Drawn observers differ from all observers by as much as these differ from all people: that adds to every error of a
    draw, but not to the error that is estimated.
    """
    squares = np.array(errors) ** 2
    moved = squares[1:] - np.nanmean(squares[1:]) + squares[0]
    return [errors[0], *np.sqrt(np.maximum(moved, 0)).tolist()]


def _mixture(
    confusions: Float64[np.ndarray, "conditions time categories answers"], weights: np.ndarray, place: float
) -> Float64[np.ndarray, "categories answers"]:
    """Confusions at any step, interpolated; conditions are weighted as people were shown them."""
    place = min(max(place, 0.0), confusions.shape[1] - 1.0)
    before = min(int(place), confusions.shape[1] - 2)
    share = place - before
    matrices = (1 - share) * confusions[:, before] + share * confusions[:, before + 1]
    return np.tensordot(weights / weights.sum(), matrices, axes=1)


def _add_matrices(
    rows: Rows, ms: float, names: tuple[str, ...], pair: tuple[np.ndarray, np.ndarray], variant: dict[str, Any]
) -> None:
    """Confusion matrices at a deadline, and with draws their diagonals."""
    for prefix, matrices in zip(("human_", ""), pair, strict=True):
        for i, j in product(range(len(names)), repeat=2):
            cell = {"x": float(ms), "value": float(matrices[0, i, j]), "category": names[i], **variant}
            rows.rows.append({"metric": f"{prefix}confusion", "answer": names[j], **cell})
            if i == j:
                draws = matrices[1:, i, i].astype(np.float32)
                rows.rows.append({"metric": f"{prefix}category_accuracy", "draws": draws, **cell})


def _add_people(rows: Rows, people: People) -> None:
    """The curves of people, and their noise ceilings: of all conditions and of each manipulation."""
    for number, (name, level) in enumerate(people.answers.conditions):
        draws = {ms: people.drawn_accuracy[:, number, d].astype(np.float32) for d, ms in enumerate(people.ms)}
        rows.curve("human_accuracy", people.ms, people.accuracy[number], draws, manipulation=name, level=level)
    names = dict.fromkeys(name for name, _ in people.answers.conditions)
    of = {name: people.of(name) for name in names} | {"+".join(names): np.ones(len(people.answers.conditions), bool)}
    for manipulation, own in of.items():
        found = ceiling(people.answers, lambda counts, own=own: accuracy(counts[own]).ravel())
        rows.value("ceiling_error", found.error, manipulation=manipulation)
        rows.value("ceiling_correlation", found.reliability, manipulation=manipulation)


def _add_network(rows: Rows, people: People, network: Network, line: Line) -> None:
    """Accuracy of the network per step, and over milliseconds."""
    ms = np.arange(0, people.ms[-1] + 101, EVERY_MS)
    for name, level in people.answers.conditions:
        for reading in READINGS[name]:
            curves = network.curves([noise_of(reading, level)], *AXES[0])
            variant = {"manipulation": reading, "level": level}
            rows.curve("network_accuracy", curves.x[1:], curves.accuracy[0, 1:], **variant)
            rows.curve("network_accuracy_at_ms", ms, curves.at(line.places(ms))[0], **variant)
