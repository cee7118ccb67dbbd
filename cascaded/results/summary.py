"""Several subjects side by side: means over seeds, and how sure the differences are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from jaxtyping import Float64

from cascaded.analysis.lambdas import lambda_effect
from cascaded.analysis.latency import selection_latency
from cascaded.analysis.prototypes import rho_difference
from cascaded.errors import InputError
from cascaded.learning.method import TD
from cascaded.results.groups import Group, Key, kind_of
from cascaded.results.measures import CENTRALITY, measures_of
from cascaded.results.questions import DRAWS, Question, Settings, known_tests
from cascaded.results.subjects import Subject
from cascaded.statistics import Estimate, drawn_figures, over_seeds, paired, percentile_interval
from cascaded.trace.trace import Trace, check_same_items

Column = Mapping[int, float]
"""One figure of a group, by seed."""


def summarise(groups: Sequence[Group], settings: Settings, told: Callable[[], object] = lambda: None) -> dict[str, Any]:
    """All headlines side by side, group by group.

    Args:
        groups: What is compared.
        settings: Where draws start from, and the share that may fail.
        told: Called when one of `asked(groups)` is summed up.
    """
    comparison, tables = Comparison(groups, settings), []
    for key in asked(groups):
        tables += [comparison.table(key, metric) for metric in _metrics(groups, key)]
        told()
    return {
        "format": 1,
        "groups": {group.label: sorted(group.by_seed) for group in groups},
        "tables": [table for table in tables if table["estimates"]],
        "lambda_effect": _lambdas(groups),
        "rho_differences": _rhos(groups, settings),
    }


def asked(groups: Sequence[Group]) -> list[Key]:
    """Every question that any of them has answered."""
    return list(dict.fromkeys(key for group in groups for each in group.by_seed.values() for key in each.answers))


class Comparison:
    """Groups, and what has been drawn for them: every figure is drawn once, whatever it is compared with."""

    def __init__(self, groups: Sequence[Group], settings: Settings):
        self.groups = {group.label: group for group in groups}
        self.settings = settings
        self.drawn = cache(self._drawn)

    def table(self, key: Key, metric: str) -> dict[str, Any]:
        """One figure of one analysis: its mean for every group that has it, and every difference."""
        columns = {label: column for label in self.groups if (column := self._column(label, key, metric))}
        estimates = {label: each.to_json() for label, each in self._estimates(columns, key, metric).items()}
        differences = [
            {"a": a, "b": b, **told}
            for a, b in combinations(columns, 2)
            if (told := self._difference(columns, a, b, key, metric))
        ]
        seeds = {label: sorted(column) for label, column in columns.items()}
        about = {"analysis": key[0], "of": key[1], "metric": metric, "seeds": seeds}
        return {**about, "estimates": estimates, "differences": differences}

    def _column(self, label: str, key: Key, metric: str) -> Column:
        answers = {seed: each.answers[key] for seed, each in self.groups[label].by_seed.items() if key in each.answers}
        told = {seed: result["headline"].get(metric) for seed, (_, result) in answers.items()}
        return {seed: value for seed, value in told.items() if value is not None}

    def _estimates(self, columns: Mapping[str, Column], key: Key, metric: str) -> dict[str, Estimate]:
        """Groups that share seeds have one error, without the variance between seeds; others each their own."""
        several = [label for label, column in columns.items() if len(column) > 1]
        shared = sorted(set.intersection(*(set(columns[label]) for label in several))) if several else []
        found = {label: self._alone(column, label, key, metric) for label, column in columns.items()}
        if len(shared) > 1:
            values = np.array([[columns[label][seed] for label in several] for seed in shared])
            found |= dict(zip(several, over_seeds(values), strict=True))
        return found

    def _alone(self, column: Column, label: str, key: Key, metric: str) -> Estimate:
        """A group by itself: over its seeds or, where there is one, over items."""
        if len(column) > 1:
            return over_seeds(np.array(list(column.values()))[:, None])[0]
        (seed, value), *_ = column.items()
        known = self.groups[label].by_seed[seed].answers[key][1].get("intervals", {}).get(metric)
        if known is None:
            return over_seeds(np.array([[value]]))[0]
        numbers = {name: math.nan if known[name] is None else known[name] for name in ("value", "low", "high", "sem")}
        return Estimate(**numbers, n=known["n"], how=known["how"])

    def _difference(self, columns: Mapping[str, Column], a: str, b: str, key: Key, metric: str) -> dict[str, Any]:
        """Over the seeds that two groups share or, where that is one, over items, drawn for both at once."""
        seeds = sorted(set(columns[a]) & set(columns[b]))
        if not seeds:
            return {}
        if len(seeds) > 1:
            return paired([columns[a][seed] for seed in seeds], [columns[b][seed] for seed in seeds]).to_json()
        value = columns[a][seeds[0]] - columns[b][seeds[0]]
        drawn = [self.drawn(label, seeds[0], key, metric) for label in (a, b)]
        if drawn[0] is None or drawn[1] is None or not self._same_items(a, b, seeds[0], key):
            return {"difference": value, "low": None, "high": None, "n": 1}
        items = self._question(a, seeds[0], key).items
        found = percentile_interval(value, drawn[0] - drawn[1], items).to_json()
        return {"difference": found.pop("value"), **found}

    def _drawn(self, label: str, seed: int, key: Key, metric: str) -> Float64[np.ndarray, "draws"] | None:
        """A figure of the same drawn items as every other group's; None where it is not one over items."""
        question = self._question(label, seed, key)
        statistic = question.known_statistics.get(metric)
        return None if statistic is None else drawn_figures(statistic, question.items, DRAWS, self.settings.seed)

    def _same_items(self, a: str, b: str, seed: int, key: Key) -> bool:
        return _same_items(self._question(a, seed, key), self._question(b, seed, key))

    def _question(self, label: str, seed: int, key: Key) -> Question:
        return self.groups[label].by_seed[seed].answers[key][0]


def _metrics(groups: Sequence[Group], key: Key) -> list[str]:
    answered = [each for group in groups for each in group.by_seed.values() if key in each.answers]
    return list(dict.fromkeys(metric for each in answered for metric in each.answers[key][1]["headline"]))


def _same_items(one: Question, other: Question) -> bool:
    """Whether two questions are of the same images in the same order, so that both can be drawn at once."""
    try:
        check_same_items(one.first, other.first)
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
    for key in asked(groups):
        if key[0] != "prototypicality":
            continue
        for one, other in combinations(groups, 2):
            for seed in sorted(set(one.by_seed) & set(other.by_seed)):
                pair = [group.by_seed[seed].answers.get(key) for group in (one, other)]
                if pair[0] is None or pair[1] is None or not _same_items(pair[0][0], pair[1][0]):
                    continue
                told = _rho_pair(pair[0][0], pair[1][0], settings)
                found += [{"of": key[1], "seed": seed, "a": one.label, "b": other.label, **each} for each in told]
    return found


def _rho_pair(one: Question, other: Question, settings: Settings) -> list[dict[str, Any]]:
    """Measures that do not depend on the model; each model has a centrality of its own, which `tables` compares."""
    measures, _ = measures_of(one.traces[0])
    a, b = (selection_latency(each.first, failing=settings.failing).steps for each in (one, other))
    return [
        {"measure": name, **rho_difference(a, b, values, draws=DRAWS, seed=settings.seed).to_json()}
        for name, values in measures.items()
        if name != CENTRALITY
    ]
