"""Selection latency: from which step on a network's prediction for an item stays above a threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float64, Int64

from cascaded.analysis import outputs
from cascaded.analysis.rows import DRAWS, Rows
from cascaded.analysis.statistics import mean_of
from cascaded.errors import InputError
from cascaded.traces.trace import Trace

UNSETTLED = 0.1
"""Fraction of items that no class is selected for, in the paper."""
EXTREMES = ("fastest", "slowest", "never")
"""Rows of a gallery: lowest latency, highest finite latency, and items that never settle."""


@dataclass(frozen=True)
class SelectionLatency:
    """From which step on the selected class of each item stays above a threshold.

    Attributes:
        theta: The threshold.
        steps: First step from which one class stays above theta, counted from 1; infinite where none does.
        selected: That class, of several the likeliest at the end; where there is none, the last prediction.
        confidence: Of the likeliest class at that step, or at the last one where there is none.
        time: Number of steps.
    """

    theta: float
    steps: Float64[np.ndarray, "items"]
    selected: Int64[np.ndarray, "items"]
    confidence: Float64[np.ndarray, "items"]
    time: int

    @property
    def unsettled_fraction(self) -> float:
        """Fraction of items of which no class stays above theta. Ties can make it differ from the wanted one."""
        return float(np.isinf(self.steps).mean())


def selection_latency(
    trace: Trace, *, theta: float | None = None, unsettled_fraction: float = UNSETTLED
) -> SelectionLatency:
    """Find the first step from which one class stays above theta.

        min { t | there is a class j: p_{t',j} > theta for all t' >= t }

    Whether that class is the true one does not matter.

    Args:
        trace: A recording.
        theta: From 0 to below 1; None chooses it by `unsettled_fraction`.
        unsettled_fraction: Fraction of items of which no class is to stay above theta. These are the items whose
            confidence at the last step is not above theta, so that theta is a quantile of the last confidences.
    """
    last = outputs.softmax(trace.logits[-1])
    theta = _chosen_theta(last.max(axis=-1), unsettled_fraction) if theta is None else float(theta)
    if not 0 <= theta < 1:
        raise InputError(f"theta is {theta:g} and no probability is above 1: give 0 or more and less than 1")
    holds, selected = np.ones(last.shape, dtype=bool), np.ones(last.shape, dtype=bool)
    steps, confidence = np.full(trace.items, math.inf), last.max(axis=-1)
    for t in range(trace.steps - 1, -1, -1):
        p = outputs.softmax(trace.logits[t])
        holds &= p > theta
        there = holds.any(axis=-1)
        if not there.any():
            break
        steps[there], confidence[there], selected[there] = t + 1, p.max(axis=-1)[there], holds[there]
    return SelectionLatency(theta, steps, np.where(selected, last, -1.0).argmax(axis=-1), confidence, trace.steps)


def selection_latency_rows(latency: SelectionLatency, *, draws: int = DRAWS, seed: int = 0) -> pd.DataFrame:
    """Mean and median latency of the items that settle, the fraction that does not, and how many have per step.

    Args:
        latency: Of all items. Theta stays as it is in every draw.
        draws: How often items are drawn for intervals.
        seed: Seed of the draws.
    """
    rows = Rows(len(latency.steps), draws, seed)

    def numbers(items: np.ndarray) -> dict[str, float]:
        steps = latency.steps[items]
        there = steps[np.isfinite(steps)]
        mean, median = (float(there.mean()), float(np.median(there))) if len(there) else (math.nan, math.nan)
        return {"latency": mean, "latency_median": median}

    rows.numbers(numbers)
    rows.number("unsettled_fraction", mean_of(np.isinf(latency.steps)))
    rows.value("theta", latency.theta)
    steps = np.arange(1, latency.time + 1)
    rows.curve("settled", steps, [(latency.steps <= t).mean() for t in steps])
    return rows.table()


def by_latency(trace: Trace, latency: SelectionLatency, only_correct: bool = False) -> Int64[np.ndarray, "items"]:
    """Numbers of the items from the fastest to the slowest; those that never settle come last.

    Of equally fast items the one with the higher confidence at that step comes first, then the one that stands first in
    the source: the order of the trace does not matter.

    Args:
        trace: One trial per image.
        latency: Of its items.
        only_correct: Leave out items whose selected class is not the true one.
    """
    if trace.trials > 1:
        raise InputError(f"the trace has {trace.trials} trials per image: take one of them with trace.trial(0)")
    if len(latency.steps) != trace.items:
        raise InputError(f"the trace has {trace.items} items, the latency is of {len(latency.steps)}: compute it again")
    order = np.lexsort([trace.indices, -latency.confidence, latency.steps])
    if not only_correct:
        return order
    outputs.check_in_distribution(trace)
    return order[latency.selected[order] == trace.labels[order]]


def extremes(latency: SelectionLatency, order: Int64[np.ndarray, "items"], count: int) -> dict[str, np.ndarray]:
    """The items of every row of a gallery: the fastest first, the slowest first, the least confident first.

    Args:
        latency: Of all items.
        order: From `by_latency`, or a part of it, such as the items of one class.
        count: How many of each, at most.
    """
    settles = np.isfinite(latency.steps[order])
    settled, never = order[settles], order[~settles]
    return dict(zip(EXTREMES, (settled[:count], settled[::-1][:count], never[::-1][:count]), strict=True))


def _chosen_theta(confidence: Float64[np.ndarray, "items"], unsettled: float) -> float:
    """The theta that all confidences but a fraction are above."""
    if not 0 <= unsettled < 1:
        raise InputError(f"unsettled_fraction is {unsettled:g}: give 0 or more and less than 1")
    k = round(unsettled * len(confidence))
    if k == 0:  # just below the lowest confidence
        return float(np.nextafter(confidence.min(), 0))
    theta = float(np.partition(confidence, k - 1)[k - 1])
    return min(theta, float(np.nextafter(1, 0)))  # where nearly all confidences are 1, none could be above
