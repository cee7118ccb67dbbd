"""Conditions held against each other, figure by figure: means over seeds, differences, and how sure they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from jaxtyping import Float64

from cascaded.analysis.statistics import Estimate, drawn_figures, over_seeds, paired, percentile_interval
from cascaded.errors import InputError
from cascaded.results.asked import Row
from cascaded.results.groups import Condition
from cascaded.results.questions import DRAWS, Question, Settings
from cascaded.traces.trace import check_same_items

LEVEL = "cost at accuracy "
NORMAL = 1.959964
FEW = 3
"""With fewer seeds than this an interval over seeds says little: one over items is told as well."""
Column = Mapping[int, float]
"""One figure of a condition, by seed."""


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
        estimates = {
            label: each.to_json()
            | _by_itself(columns[label])
            | self._of_these_networks(columns[label], label, row, metric)
            for label, each in self._estimates(columns, row, metric).items()
        }
        differences = [
            {"a": a, "b": b, **told}
            for a, b in combinations(columns, 2)
            if (told := self._difference(columns, a, b, row, metric))
        ]
        seeds = {label: sorted(column) for label, column in columns.items()}
        about = {"analysis": row[0], "of": row[1], "images": row[2], "shown": row[3]}
        about |= {"metric": metric, "seeds": seeds}
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

    def _of_these_networks(self, column: Column, label: str, row: Row, metric: str) -> dict[str, Any]:
        """An interval over items of the mean over a few seeds; of one seed the estimate has it."""
        if not 1 < len(column) < FEW:
            return {}
        if drawn := self._over_items([(1, label)], sorted(column), row, metric):
            return drawn
        results = [self.conditions[label].by_seed[seed][row][1] for seed in column]
        errors = [each.get("intervals", {}).get(metric, {}).get("sem") for each in results]
        if None in errors:
            return {}
        # seeds share their test images, and how their errors go together is not known: as if they were one
        value, error = float(np.mean(list(column.values()))), float(np.mean(errors))
        how = "mean of the seeds' errors over items, 95 % normal interval"
        n = results[0]["intervals"][metric]["n"]
        return {
            "over items": {
                "low": value - NORMAL * error,
                "high": value + NORMAL * error,
                "sem": error,
                "n": n,
                "how": how,
            }
        }

    def _difference(self, columns: Mapping[str, Column], a: str, b: str, row: Row, metric: str) -> dict[str, Any]:
        """Over the seeds that two conditions share or, where that is one, over items, drawn for both at once."""
        seeds = sorted(set(columns[a]) & set(columns[b]))
        if not seeds:
            return {}
        over_items = self._over_items([(1, a), (-1, b)], seeds, row, metric)
        if len(seeds) > 1:
            found = paired([columns[a][seed] for seed in seeds], [columns[b][seed] for seed in seeds])
            return found.to_json() | over_items
        value = columns[a][seeds[0]] - columns[b][seeds[0]]
        if not over_items:
            return {"difference": value, "low": None, "high": None, "n": 1}
        return {"difference": value, **over_items["over items"]}

    def _over_items(
        self, terms: Sequence[tuple[int, str]], seeds: Sequence[int], row: Row, metric: str
    ) -> dict[str, Any]:
        """Of a few seeds: how sure a sum of conditions is of these very networks, whatever images they are shown.

        Items are drawn once for all networks, which is why all must have seen the same.
        """
        if len(seeds) >= FEW:
            return {}
        drawn = [(sign, self.drawn(label, seed, row).get(metric)) for sign, label in terms for seed in seeds]
        figures = [sign * each for sign, each in drawn if each is not None]
        asked = [self.conditions[label].by_seed[seed][row][0] for _, label in terms for seed in seeds]
        if len(figures) < len(drawn) or not all(same_items(asked[0], other) for other in asked[1:]):
            return {}
        told = percentile_interval(math.nan, np.sum(figures, axis=0) / len(seeds), asked[0].items).to_json()
        return {"over items": {name: told[name] for name in ("low", "high", "sem", "n", "how")}}

    def _drawn(self, label: str, seed: int, row: Row) -> dict[str, Float64[np.ndarray, "draws"]]:
        """Every figure that is one over items, of the same drawn items as every other condition's."""
        question, _ = self.conditions[label].by_seed[seed][row]
        statistics = question.statistics().items()
        return {name: drawn_figures(each, question.items, DRAWS, self.settings.seed) for name, each in statistics}


def _by_itself(column: Column) -> dict[str, Any]:
    """A condition held against nothing else: its own seeds' variance counts in full."""
    if len(column) < FEW:
        return {}
    told = over_seeds(np.array(list(column.values()))[:, None])[0].to_json()
    return {"alone": {name: told[name] for name in ("low", "high", "sem", "how")}}


def same_items(one: Question, other: Question) -> bool:
    """Whether two questions are of the same images in the same order, so that both can be drawn at once."""
    try:
        check_same_items(one.judged, other.judged)
    except InputError:
        return False
    return True
