"""Several subjects side by side: means over seeds, and how sure the differences are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from cascaded.analysis.lambdas import lambda_effect
from cascaded.analysis.latency import selection_latency
from cascaded.analysis.prototypes import rho_difference
from cascaded.errors import InputError
from cascaded.learning.method import TD
from cascaded.results.measures import CENTRALITY, measures_of
from cascaded.results.questions import DRAWS, Question, Settings, known_tests
from cascaded.results.subjects import Subject
from cascaded.statistics import bootstrap_difference, over_seeds, paired
from cascaded.trace.trace import check_same_items

Key = tuple[str, str]  # analysis, and what it was asked of


@dataclass(frozen=True)
class Answered:
    """A subject with everything that was asked of it, and answered."""

    subject: Subject
    answers: Mapping[Key, tuple[Question, dict[str, Any]]]


@dataclass(frozen=True)
class Group:
    """Subjects that differ in their seed alone."""

    label: str
    by_seed: Mapping[int, Answered]


def grouped(all_answered: Sequence[Answered]) -> list[Group]:
    """Subjects by all that they are but their seed. Where two groups would be called alike, their folders tell them."""
    found: dict[str, dict[int, Answered]] = {}
    labels: dict[str, str] = {}
    for answered in all_answered:
        spec = {**answered.subject.spec.to_json(), "seed": None, "folds": len(answered.subject.runs)}
        kind = repr(sorted(spec.items(), key=lambda each: each[0]))
        by_seed, seed = found.setdefault(kind, {}), answered.subject.spec.seed
        if seed in by_seed:
            raise InputError(
                f"{by_seed[seed].subject.name} and {answered.subject.name} are one run, seed {seed}: give one of them"
            )
        by_seed[seed] = answered
        labels[kind] = answered.subject.label
    names = list(labels.values())
    for kind, label in labels.items():
        if names.count(label) > 1:
            first = next(iter(found[kind].values())).subject
            labels[kind] = f"{label} {first.runs[0].parent.name}"
    return [Group(labels[kind], by_seed) for kind, by_seed in found.items()]


def summarise(groups: Sequence[Group], settings: Settings, told: Callable[[], object] = lambda: None) -> dict[str, Any]:
    """All headlines side by side, group by group, on the seeds that groups share.

    Args:
        groups: What is compared.
        settings: Where draws start from, and the share that may fail.
        told: Called when one of `asked(groups)` is summed up.
    """
    keys, tables = asked(groups), []
    for key in keys:
        tables += [table for metric in _metrics(groups, key) if (table := _table(groups, key, metric, settings))]
        told()
    return {
        "format": 1,
        "groups": {group.label: sorted(group.by_seed) for group in groups},
        "tables": tables,
        "lambda_effect": _lambdas(groups),
        "rho_differences": _rhos(groups, keys, settings),
    }


def asked(groups: Sequence[Group]) -> list[Key]:
    """Every question that any of them has answered."""
    return list(dict.fromkeys(key for group in groups for each in group.by_seed.values() for key in each.answers))


def _metrics(groups: Sequence[Group], key: Key) -> list[str]:
    told = [
        each.answers[key][1]["headline"] for group in groups for each in group.by_seed.values() if key in each.answers
    ]
    return list(dict.fromkeys(metric for headline in told for metric in headline))


def _table(groups: Sequence[Group], key: Key, metric: str, settings: Settings) -> dict[str, Any] | None:
    """One figure of one analysis: its mean for every group that has it, and every difference."""
    columns: dict[str, dict[int, float]] = {}
    for group in groups:
        values = {
            seed: value
            for seed, each in group.by_seed.items()
            if key in each.answers and (value := each.answers[key][1]["headline"].get(metric)) is not None
        }
        if values:
            columns[group.label] = values
    seeds = sorted(set.intersection(*(set(values) for values in columns.values()))) if columns else []
    if not seeds:
        return None
    values = np.array([[column[seed] for column in columns.values()] for seed in seeds])
    estimates = dict(zip(columns, (each.to_json() for each in over_seeds(values)), strict=True))
    differences = [
        {"a": a, "b": b, **_difference(groups, key, metric, columns, (a, b), seeds, settings)}
        for a, b in combinations(columns, 2)
    ]
    about = {"analysis": key[0], "of": key[1], "metric": metric, "seeds": seeds}
    return {**about, "estimates": estimates, "differences": differences}


def _difference(
    groups: Sequence[Group],
    key: Key,
    metric: str,
    columns: Mapping[str, Mapping[int, float]],
    labels: tuple[str, str],
    seeds: Sequence[int],
    settings: Settings,
) -> dict[str, Any]:
    """Over seeds where there are several; over items, drawn for both at once, where there is one."""
    a, b = labels
    if len(seeds) > 1:
        return paired([columns[a][seed] for seed in seeds], [columns[b][seed] for seed in seeds]).to_json()
    by_label = {group.label: group for group in groups}
    one, other = (by_label[label].by_seed[seeds[0]].answers[key][0] for label in labels)
    mine, yours = one.statistics().get(metric), other.statistics().get(metric)
    if mine is None or yours is None or not _same_items(one, other):
        return {"difference": columns[a][seeds[0]] - columns[b][seeds[0]], "low": None, "high": None, "n": 1}
    found = bootstrap_difference(mine, yours, one.items, DRAWS, seed=settings.seed).to_json()
    return {"difference": found.pop("value"), **found}


def _same_items(one: Question, other: Question) -> bool:
    """Whether two questions are of the same images in the same order, so that both can be drawn at once."""
    try:
        check_same_items(one.traces[0].load(), other.traces[0].load())
    except InputError:
        return False
    return True


def _lambdas(groups: Sequence[Group]) -> dict[str, Any]:
    """For every model and trace, final accuracy by lambda; cross-entropy beside it."""
    effects, everyone = {}, [each.subject for group in groups for each in group.by_seed.values()]
    for name in dict.fromkeys(found.name for subject in everyone for found in known_tests(subject)):
        for model in ("cascaded", "serial"):
            traces = {}
            for group in groups:
                subjects = [each.subject for each in group.by_seed.values()]
                recorded = [found for each in subjects for found in each.traces if found.name == name]
                if recorded and subjects[0].spec.model in (f"{model}-td", f"{model}-ce"):
                    traces[_lambda_of(subjects[0])] = [found.load() for found in recorded]
            if len(traces) > 1:
                effects[f"{model} {name}"] = lambda_effect(traces).to_json()
    return effects


def _lambda_of(subject: Subject) -> str:
    loss = subject.spec.method.loss
    return ":".join(f"{each:g}" for each in loss.knots) if isinstance(loss, TD) else "CE"


def _rhos(groups: Sequence[Group], keys: Sequence[Key], settings: Settings) -> list[dict[str, Any]]:
    """Whether one model's latency goes with a measure more than another's, trace by trace and seed by seed."""
    found = []
    for key in keys:
        if key[0] != "prototypicality":
            continue
        for one, other in combinations([group for group in groups if _any_has(group, key)], 2):
            for seed in sorted(set(one.by_seed) & set(other.by_seed)):
                pair = [group.by_seed[seed].answers.get(key) for group in (one, other)]
                if pair[0] is None or pair[1] is None:
                    continue
                told = _rho_pair(pair[0][0], pair[1][0], settings)
                found += [{"of": key[1], "seed": seed, "a": one.label, "b": other.label, **each} for each in told]
    return found


def _any_has(group: Group, key: Key) -> bool:
    return any(key in each.answers for each in group.by_seed.values())


def _rho_pair(one: Question, other: Question, settings: Settings) -> list[dict[str, Any]]:
    """Measures that do not depend on the model; each model has a centrality of its own."""
    mine, yours = one.traces[0], other.traces[0]
    measures, _ = measures_of(mine)
    if not _same_items(one, other):
        return []
    a, b = (selection_latency(found.load(), failing=settings.failing).steps for found in (mine, yours))
    return [
        {"measure": name, **rho_difference(a, b, values, draws=DRAWS, seed=settings.seed).to_json()}
        for name, values in measures.items()
        if name != CENTRALITY
    ]
