"""Lines and dots from answers: means over seeds, and how sure they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float64

from cascaded.analysis.statistics import corrected_sem, over_seeds, sem
from cascaded.exhibits.kinds import Dot, Series, Way
from cascaded.exhibits.material import Material, row_of
from cascaded.results.asked import Asked
from cascaded.results.comparison import FEW, headline_of

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
    answers = material.answers(asked.row)
    points = {label: [read(result) for result in by_seed.values()] for label, by_seed in answers.items()}
    points = {label: each for label, each in points.items() if all(len(x) for x, _ in each)}
    series = []
    for label, own in points.items():
        places = _places(own)
        seeds = tuple(answers[label])
        shared = [points[other] for other in points if other != label and tuple(answers[other]) == seeds]
        values = np.array([_at(places, each) for each in own])
        beside = [np.array([_at(places, each) for each in others]) for others in shared]
        errors = _errors(values, beside) if len(seeds) > 1 else ()
        series.append(Series(material.names[label], tuple(places.tolist()), _mean(values), errors, way, len(seeds)))
    return tuple(series)


def _places(seeds: Sequence[Points]) -> Float64[np.ndarray, "points"]:
    """Common places for one line of several seeds: their own where they agree, else two hundred that all reach."""
    first = np.asarray(seeds[0][0], dtype=float)
    if all(np.array_equal(first, x) for x, _ in seeds):
        return first
    return np.linspace(max(x[0] for x, _ in seeds), min(x[-1] for x, _ in seeds), 200)


def _at(places: Float64[np.ndarray, "points"], points: Points) -> Float64[np.ndarray, "points"]:
    """A line at some places: straight between its points, nothing outside them."""
    x, y = (np.asarray([np.nan if each is None else each for each in values], dtype=float) for values in points)
    return np.interp(places, x, y, left=np.nan, right=np.nan)


def _mean(values: Float64[np.ndarray, "seeds points"]) -> tuple[float, ...]:
    return tuple(values.mean(axis=0).tolist())  # where a seed has nothing there is no mean of all


def _errors(own: Float64[np.ndarray, "seeds points"], beside: Sequence[np.ndarray]) -> tuple[float, ...]:
    """Standard errors of a line, point by point, together with those of lines that share its seeds there."""
    found = []
    for place in range(own.shape[1]):
        columns = [own[:, place], *(each[:, place] for each in beside)]
        whole = [column for column in columns if np.isfinite(column).all()]
        together = len(whole) > 1 and whole[0] is columns[0]
        found.append(corrected_sem(np.stack(whole, axis=1)) if together else sem(own[:, place]))
    return tuple(found)


def dots_of(
    material: Material,
    asked: Asked,
    metrics: Mapping[str, str],
    way: Way = "",
    alone: bool = False,
) -> tuple[Dot, ...]:
    """A dot for every condition and figure, with its 95 % interval.

    Args:
        material: Who was asked.
        asked: What.
        metrics: Figures of the headline, each with the group it stands in.
        way: What tells these dots from others of the same models.
        alone: Whether each is held against nothing rather than against the others.
    """
    found = []
    for metric, group in metrics.items():
        for label, told in estimates(material, asked, metric).items():
            low, high, how = interval_of(told, alone)
            found.append(Dot(material.names[label], group, told["value"], low, high, way, how))
    return tuple(found)


def whiskers(dots: Sequence[Dot]) -> str:
    """What the whiskers of some dots are, in a sentence; nothing where they have none."""
    over = dict.fromkeys(dot.how for dot in dots if dot.low is not None)
    return f" Whiskers are 95 % intervals over {'; '.join(over)}." if over else ""


def interval_of(told: Mapping[str, Any], alone: bool = False) -> tuple[float | None, float | None, str]:
    """An interval, and what it is over: seeds where there are enough of them, else images.

    Args:
        told: A figure, or a difference, as a comparison has it.
        alone: Whether it is held against nothing else: then the variance between seeds counts in full.
    """
    if "over items" in told and told.get("n", 0) < FEW:
        items = told["over items"]
        return items["low"], items["high"], f"{items['n']} images, mean of {told['n']} seeds"
    if told.get("low") is None:
        return None, None, f"{'one seed' if told.get('n', 1) == 1 else 'two seeds, not compared'}, no interval"
    how = told.get("how", "")
    if alone and "alone" in told:
        return told["alone"]["low"], told["alone"]["high"], f"{told['n']} seeds"
    return told["low"], told["high"], f"{told['n']} images, one seed" if "items" in how else f"{told['n']} seeds"


def estimates(material: Material, asked: Asked, metric: str) -> dict[str, dict[str, Any]]:
    """A figure of every condition: as it was compared, or, where it was not, from the answers themselves."""
    for table in material.comparison.get("tables", []):
        if table["metric"] == metric and row_of(table) == asked.row:
            return {label: table["estimates"][label] for label in material.names if label in table["estimates"]}
    found = {}
    for label, by_seed in material.answers(asked.row).items():
        told = map(headline_of, by_seed.values())
        values = [each[metric] for each in told if metric in each]
        if len(values) == len(by_seed):
            found[label] = _uncompared(values, [result.get("intervals", {}).get(metric) for result in by_seed.values()])
    return found


def _uncompared(values: Sequence[float], intervals: Sequence[Mapping[str, Any] | None]) -> dict[str, Any]:
    """A figure by itself: of one seed as it was answered, of many over seeds; two say too little, and have none."""
    if len(values) == 1 and intervals[0]:
        return dict(intervals[0])
    told = over_seeds(np.array(values)[:, None])[0].to_json()
    return told if len(values) >= FEW else {**told, "low": None, "high": None}
