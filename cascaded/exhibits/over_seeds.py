"""Lines and dots from answers: means over seeds, and how sure they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float64

from cascaded.exhibits.kinds import Dot, Series, Way
from cascaded.exhibits.material import Material, row_of
from cascaded.results.asked import Asked
from cascaded.results.comparison import FEW
from cascaded.statistics import corrected_sem, over_seeds, sem

Points = tuple[Sequence[float], Sequence[float]]
"""Where, and what."""


def lines_of(
    material: Material, asked: Asked, read: Callable[[dict[str, Any]], Points], way: Way = ""
) -> tuple[Series, ...]:
    """A line for every condition: the mean over its seeds, with a band of one standard error.

    Where conditions share seeds the variance between seeds is left out of it (Masson and Loftus, 2003).

    Args:
        material: Who was asked.
        asked: What.
        read: Finds the points in an answer. Points of different seeds are brought to common places.
        way: What tells these lines from others of the same models.
    """
    told = {
        label: [read(result) for result in by_seed.values()] for label, by_seed in material.answers(asked.row).items()
    }
    seeds = {label: tuple(by_seed) for label, by_seed in material.answers(asked.row).items()}
    told = {label: points for label, points in told.items() if all(len(x) for x, _ in points)}
    common = _places([points for each in told.values() for points in each])
    values = {label: np.array([_at(common, points) for points in each]) for label, each in told.items()}
    errors = _errors(values, seeds)
    return tuple(
        Series(material.names[label], tuple(common.tolist()), _mean(each), errors.get(label, ()), way, len(each))
        for label, each in values.items()
    )


def _places(all_points: Sequence[Points]) -> Float64[np.ndarray, "points"]:
    """Common places for some lines: their own where they agree, else two hundred from the first to the last."""
    if not all_points:
        return np.zeros(0)
    first = np.asarray(max((x for x, _ in all_points), key=len), dtype=float)
    if all(np.array_equal(first[: len(x)], x) for x, _ in all_points):
        return first
    return np.linspace(min(x[0] for x, _ in all_points), max(x[-1] for x, _ in all_points), 200)


def _at(places: Float64[np.ndarray, "points"], points: Points) -> Float64[np.ndarray, "points"]:
    """A line at some places: straight between its points, nothing outside them."""
    x, y = (np.asarray([np.nan if each is None else each for each in values], dtype=float) for values in points)
    return np.interp(places, x, y, left=np.nan, right=np.nan)


def _mean(values: Float64[np.ndarray, "seeds points"]) -> tuple[float, ...]:
    return tuple(values.mean(axis=0).tolist())  # where a seed has nothing there is no mean of all


def _errors(values: Mapping[str, np.ndarray], seeds: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[float, ...]]:
    """Standard errors, point by point; one for all conditions that share their seeds."""
    found = {label: _alone(each) for label, each in values.items() if len(each) > 1}
    for own in {seeds[label] for label in found}:
        shared = [label for label in found if seeds[label] == own]
        together = np.stack([values[label] for label in shared], axis=1)  # seeds, conditions, points
        for place in range(together.shape[2]):
            whole = [k for k in range(len(shared)) if np.isfinite(together[:, k, place]).all()]
            if len(whole) > 1:
                error = corrected_sem(together[:, whole, place])
                for k in whole:
                    found[shared[k]][place] = error
    return {label: tuple(each) for label, each in found.items()}


def _alone(values: Float64[np.ndarray, "seeds points"]) -> list[float]:
    return [sem(column) for column in values.T]


def dots_of(
    material: Material,
    asked: Asked,
    metrics: Mapping[str, str],
    way: Way = "",
    keep: Callable[[str], bool] | None = None,
) -> tuple[Dot, ...]:
    """A dot for every condition and figure, with its 95 % interval.

    Args:
        material: Who was asked.
        asked: What.
        metrics: Figures of the headline, each with the group it stands in.
        way: What tells these dots from others of the same models.
        keep: Which conditions, by label; all by default.
    """
    found = []
    for metric, group in metrics.items():
        for label, told in estimates(material, asked, metric).items():
            if keep is None or keep(label):
                low, high, how = interval_of(told)
                found.append(Dot(material.names[label], group, told["value"], low, high, way, how))
    return tuple(found)


def interval_of(told: Mapping[str, Any]) -> tuple[float | None, float | None, str]:
    """An interval, and what it is over: seeds where there are enough of them, else images."""
    if "over items" in told and told.get("n", 0) < FEW:
        items = told["over items"]
        return items["low"], items["high"], f"{items['n']} images, mean of {told['n']} seeds"
    if told.get("low") is None:
        return None, None, "one seed, no interval"
    how = told.get("how", "")
    return told["low"], told["high"], f"{told['n']} images, one seed" if "items" in how else f"{told['n']} seeds"


def estimates(material: Material, asked: Asked, metric: str) -> dict[str, dict[str, Any]]:
    """A figure of every condition: as it was compared, or, where it was not, from the answers themselves."""
    for table in material.comparison.get("tables", []):
        if table["metric"] == metric and row_of(table) == asked.row:
            return {label: each for label, each in table["estimates"].items() if label in material.names}
    found = {}
    for label, by_seed in material.answers(asked.row).items():
        values = [result["headline"].get(metric) for result in by_seed.values()]
        if values and None not in values:
            alone = next(iter(by_seed.values())).get("intervals", {}).get(metric) if len(values) == 1 else None
            found[label] = alone or over_seeds(np.array(values)[:, None])[0].to_json()
    return found
