"""Several subjects side by side: means over seeds, and how sure the differences are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, product
from typing import Any

from cascaded.analysis.lambdas import lambda_effect
from cascaded.analysis.latency import selection_latency
from cascaded.analysis.prototypes import rho_difference
from cascaded.errors import InputError
from cascaded.results.answers import fingerprints
from cascaded.results.asked import Row
from cascaded.results.comparison import Comparison, same_items
from cascaded.results.groups import Answered, Group, conditions, kind_of
from cascaded.results.measures import CENTRALITY, measures_of
from cascaded.results.questions import DRAWS, Question, Settings, known_tests
from cascaded.results.subjects import comparison_file, place_in
from cascaded.traces.trace import Trace

FORMAT = 1


def summarise(groups: Sequence[Group], settings: Settings, told: Callable[[], object] = lambda: None) -> dict[str, Any]:
    """All headlines side by side, condition by condition.

    Args:
        groups: What is compared.
        settings: Where draws start from, and the share that may fail.
        told: Called when one of `rows(groups)` is summed up.
    """
    everyone = [each for group in groups for each in group.by_seed.values()]
    folder = comparison_file([each.subject for each in everyone]).parent
    comparison, tables = Comparison(conditions(groups), settings), []
    for row in rows(groups):
        tables += comparison.tables(row)
        told()
    return {
        "format": FORMAT,
        "made_from": {place_in(folder, each.subject): _made_from(each) for each in everyone},
        "groups": {group.label: sorted(group.by_seed) for group in groups},
        "conditions": list(comparison.conditions),
        "tables": tables,
        "lambda_effect": _lambdas(groups),
        "rho_differences": _rhos(groups, settings),
    }


def _made_from(answered: Answered) -> dict[str, str]:
    """A fingerprint of every answer that is compared, so that a comparison of others can be told."""
    prints = fingerprints(answered.subject)
    return {name: prints[name] for analysis, of in answered.answers if (name := f"{analysis} {of}") in prints}


def rows(groups: Sequence[Group]) -> list[Row]:
    """Everything that any of them was asked and has answered."""
    asked = [by_row for each in conditions(groups) for by_row in each.by_seed.values()]
    return list(dict.fromkeys(row for by_row in asked for row in by_row))


def _lambdas(groups: Sequence[Group]) -> dict[str, Any]:
    """For every model and trace, final accuracy by lambda, cross-entropy beside it; all else is the same."""
    families: dict[str, list[Group]] = {}
    for group in groups:
        schedule, _, kind = group.first.config.method.partition("-")
        if kind in ("td", "ce"):
            families.setdefault(schedule + kind_of(group.first, "method", "lam"), []).append(group)
    effects = {}
    for family in families.values():
        names = [{found.name for found in known_tests(group.first)} for group in family]
        for name in sorted(set.intersection(*names)) if len(family) > 1 else []:
            traces = {group.first.lam or "CE": _traces(group, name) for group in family}
            told = f"{family[0].first.config.method.partition('-')[0]} {name}"
            label = told if told not in effects else f"{told} {family[0].label}"
            try:
                effects[label] = lambda_effect(traces).to_json()
            except InputError as error:  # other seeds, other images: the rest can still be told
                effects[label] = {"not measured": str(error)}
    return effects


def _traces(group: Group, name: str) -> list[Trace]:
    subjects = [each.subject for each in group.by_seed.values()]
    return [found.load() for subject in subjects for found in subject.traces if found.name == name]


def _rhos(groups: Sequence[Group], settings: Settings) -> list[dict[str, Any]]:
    """Whether one model's latency goes with a measure more than another's, trace by trace and seed by seed."""
    found = []
    asked = [row for row in rows(groups) if row[0] == "prototypicality"]
    for row, (one, other) in product(asked, combinations(conditions(groups), 2)):
        for seed in sorted(set(one.by_seed) & set(other.by_seed)):
            pair = [each.by_seed[seed].get(row) for each in (one, other)]
            if pair[0] is None or pair[1] is None or not same_items(pair[0][0], pair[1][0]):
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
