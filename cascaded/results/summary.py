"""Several subjects side by side: means over seeds, and how sure the differences are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
from jaxtyping import Float64

from cascaded.analysis.lambdas import lambda_effect
from cascaded.analysis.latency import selection_latency
from cascaded.analysis.prototypes import rho_difference
from cascaded.errors import InputError
from cascaded.learning.method import TD
from cascaded.results.groups import Condition, Group, Row, conditions, kind_of
from cascaded.results.measures import CENTRALITY, measures_of
from cascaded.results.questions import DRAWS, Question, Settings, known_tests
from cascaded.results.subjects import Subject
from cascaded.statistics import Estimate, drawn_figures, over_seeds, paired, percentile_interval
from cascaded.trace.trace import Trace, check_same_items

LEVEL = "cost at accuracy "
Column = Mapping[int, float]
"""One figure of a condition, by seed."""


def summarise(groups: Sequence[Group], settings: Settings, told: Callable[[], object] = lambda: None) -> dict[str, Any]:
    """All headlines side by side, condition by condition.

    Args:
        groups: What is compared.
        settings: Where draws start from, and the share that may fail.
        told: Called when one of `rows(groups)` is summed up.
    """
    comparison, tables = Comparison(conditions(groups), settings), []
    for row in rows(groups):
        tables += comparison.tables(row)
        told()
    return {
        "format": 1,
        "groups": {group.label: sorted(group.by_seed) for group in groups},
        "conditions": list(comparison.conditions),
        "tables": tables,
        "lambda_effect": _lambdas(groups),
        "rho_differences": _rhos(groups, settings),
    }


def rows(groups: Sequence[Group]) -> list[Row]:
    """Everything that any of them was asked and has answered."""
    asked = [by_row for each in conditions(groups) for by_row in each.by_seed.values()]
    return list(dict.fromkeys(row for by_row in asked for row in by_row))


def headline_of(result: Mapping[str, Any]) -> dict[str, float]:
    """The figures of an answer that are compared: its headline, and what given accuracies cost."""
    told = dict(result["headline"])
    for name, curve in result.get("curves", {}).items():
        told |= {f"cost at accuracy {level}, {name}": cost for level, cost in curve.get("cost_at", {}).items()}
    return {name: value for name, value in told.items() if value is not None}


class Comparison:
    """Conditions, and what has been drawn for them: every figure is drawn once, whatever it is compared with."""

    def __init__(self, all_conditions: Sequence[Condition], settings: Settings):
        self.conditions = {each.label: each for each in all_conditions}
        self.settings = settings
        self.drawn = cache(self._drawn)

    def tables(self, row: Row) -> list[dict[str, Any]]:
        """A table for each figure; of given accuracies the highest that all reach."""
        answered = [
            by_row[row][1] for each in self.conditions.values() for by_row in each.by_seed.values() if row in by_row
        ]
        told = [headline_of(result) for result in answered]
        metrics = list(dict.fromkeys(metric for each in told for metric in each))
        reached = [metric for metric in metrics if all(metric in each for each in told)]
        levels = [metric for metric in reached if metric.startswith(LEVEL)]
        best = {metric.partition(", ")[2]: metric for metric in sorted(levels)}.values()
        return [self.table(row, metric) for metric in metrics if not metric.startswith(LEVEL) or metric in best]

    def table(self, row: Row, metric: str) -> dict[str, Any]:
        """One figure of one analysis: its mean for every condition that has it, and every difference."""
        columns = {label: column for label in self.conditions if (column := self._column(label, row, metric))}
        estimates = {label: each.to_json() for label, each in self._estimates(columns, row, metric).items()}
        differences = [
            {"a": a, "b": b, **told}
            for a, b in combinations(columns, 2)
            if (told := self._difference(columns, a, b, row, metric))
        ]
        seeds = {label: sorted(column) for label, column in columns.items()}
        about = {"analysis": row[0], "of": row[1], "images": row[2], "metric": metric, "seeds": seeds}
        return {**about, "estimates": estimates, "differences": differences}

    def _column(self, label: str, row: Row, metric: str) -> Column:
        answers = {seed: by_row[row] for seed, by_row in self.conditions[label].by_seed.items() if row in by_row}
        told = {seed: headline_of(result).get(metric) for seed, (_, result) in answers.items()}
        return {seed: value for seed, value in told.items() if value is not None}

    def _estimates(self, columns: Mapping[str, Column], row: Row, metric: str) -> dict[str, Estimate]:
        """Conditions that share seeds have one error, without the variance between seeds; others each their own."""
        several = [label for label, column in columns.items() if len(column) > 1]
        shared = sorted(set.intersection(*(set(columns[label]) for label in several))) if several else []
        found = {label: self._alone(column, label, row, metric) for label, column in columns.items()}
        if len(shared) > 1:
            values = np.array([[columns[label][seed] for label in several] for seed in shared])
            found |= dict(zip(several, over_seeds(values), strict=True))
        return found

    def _alone(self, column: Column, label: str, row: Row, metric: str) -> Estimate:
        """A condition by itself: over its seeds or, where there is one, over items."""
        if len(column) > 1:
            return over_seeds(np.array(list(column.values()))[:, None])[0]
        (seed, value), *_ = column.items()
        known = self.conditions[label].by_seed[seed][row][1].get("intervals", {}).get(metric)
        if known is None:
            return over_seeds(np.array([[value]]))[0]
        numbers = {name: math.nan if known[name] is None else known[name] for name in ("value", "low", "high", "sem")}
        return Estimate(**numbers, n=known["n"], how=known["how"])

    def _difference(self, columns: Mapping[str, Column], a: str, b: str, row: Row, metric: str) -> dict[str, Any]:
        """Over the seeds that two conditions share or, where that is one, over items, drawn for both at once."""
        seeds = sorted(set(columns[a]) & set(columns[b]))
        if not seeds:
            return {}
        if len(seeds) > 1:
            return paired([columns[a][seed] for seed in seeds], [columns[b][seed] for seed in seeds]).to_json()
        value = columns[a][seeds[0]] - columns[b][seeds[0]]
        one, other = (self.conditions[label].by_seed[seeds[0]][row][0] for label in (a, b))
        drawn = [self.drawn(label, seeds[0], row).get(metric) for label in (a, b)]
        if drawn[0] is None or drawn[1] is None or not _same_items(one, other):
            return {"difference": value, "low": None, "high": None, "n": 1}
        found = percentile_interval(value, drawn[0] - drawn[1], one.items).to_json()
        return {"difference": found.pop("value"), **found}

    def _drawn(self, label: str, seed: int, row: Row) -> dict[str, Float64[np.ndarray, "draws"]]:
        """Every figure that is one over items, of the same drawn items as every other condition's."""
        question, _ = self.conditions[label].by_seed[seed][row]
        statistics = question.statistics().items()
        return {name: drawn_figures(each, question.items, DRAWS, self.settings.seed) for name, each in statistics}


def _same_items(one: Question, other: Question) -> bool:
    """Whether two questions are of the same images in the same order, so that both can be drawn at once."""
    try:
        check_same_items(one.judged, other.judged)
    except InputError:
        return False
    return True


def _lambdas(groups: Sequence[Group]) -> dict[str, Any]:
    """For every model and trace, final accuracy by lambda, cross-entropy beside it; all else is the same."""
    families: dict[str, list[Group]] = {}
    for group in groups:
        schedule, _, kind = group.first.spec.model.partition("-")
        if kind in ("td", "ce"):
            families.setdefault(schedule + kind_of(group.first, "model", "lam"), []).append(group)
    effects = {}
    for family in families.values():
        names = [{found.name for found in known_tests(group.first)} for group in family]
        for name in sorted(set.intersection(*names)) if len(family) > 1 else []:
            traces = {_lambda_of(group.first): _traces(group, name) for group in family}
            told = f"{family[0].first.spec.model.partition('-')[0]} {name}"
            label = told if told not in effects else f"{told} {family[0].label}"
            try:
                effects[label] = lambda_effect(traces).to_json()
            except InputError as error:  # other seeds, other images: the rest can still be told
                effects[label] = {"not measured": str(error)}
    return effects


def _traces(group: Group, name: str) -> list[Trace]:
    subjects = [each.subject for each in group.by_seed.values()]
    return [found.load() for subject in subjects for found in subject.traces if found.name == name]


def _lambda_of(subject: Subject) -> str:
    loss = subject.spec.method.loss
    return ":".join(f"{each:g}" for each in loss.knots) if isinstance(loss, TD) else "CE"


def _rhos(groups: Sequence[Group], settings: Settings) -> list[dict[str, Any]]:
    """Whether one model's latency goes with a measure more than another's, trace by trace and seed by seed."""
    found = []
    asked = [row for row in rows(groups) if row[0] == "prototypicality"]
    for row, (one, other) in product(asked, combinations(conditions(groups), 2)):
        for seed in sorted(set(one.by_seed) & set(other.by_seed)):
            pair = [each.by_seed[seed].get(row) for each in (one, other)]
            if pair[0] is None or pair[1] is None or not _same_items(pair[0][0], pair[1][0]):
                continue
            told = _rho_pair(pair[0][0], pair[1][0], settings)
            found += [{"of": row[1], "seed": seed, "a": one.label, "b": other.label, **each} for each in told]
    return found


def _rho_pair(one: Question, other: Question, settings: Settings) -> list[dict[str, Any]]:
    """Measures that do not depend on the model; each model has a centrality of its own, which `tables` compares."""
    measures, _ = measures_of(one.traces[0])
    a, b = (selection_latency(each.judged, failing=settings.failing).steps for each in (one, other))
    return [
        {"measure": name, **rho_difference(a, b, values, draws=DRAWS, seed=settings.seed).to_json()}
        for name, values in measures.items()
        if name != CENTRALITY
    ]
