"""Selection latency: how long the network takes to make up its mind about an item for good."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from cascaded.analysis import outputs
from cascaded.analysis.statistics import plain
from cascaded.errors import InputError
from cascaded.traces.trace import Trace


@dataclass(frozen=True)
class SelectionLatency:
    """When each item's class was chosen for good.

    Attributes:
        theta: What a class must stay above.
        steps: Number of the first step from which one class stays above theta, from 1; infinite where none ever does.
        chosen: That class, of several the likeliest at the end; where there is none, the last answer.
        confidence: Of the likeliest class at that step, or at the last one where there is none.
        time: How many steps there were.
    """

    theta: float
    steps: Float64[np.ndarray, "items"]
    chosen: Int64[np.ndarray, "items"]
    confidence: Float64[np.ndarray, "items"]
    time: int

    @property
    def failed(self) -> float:
        """The share of items of which no class stays above theta. Ties can make it differ from the share asked for."""
        return float(np.isinf(self.steps).mean())

    @property
    def headline(self) -> dict[str, float]:
        """Theta, median and mean latency of the items that reach it, and the share that does not."""
        there = self.steps[np.isfinite(self.steps)]
        median, mean = (float(np.median(there)), float(there.mean())) if len(there) else (math.nan, math.nan)
        return {"theta": self.theta, "median latency": median, "mean latency": mean, "share failed": self.failed}

    def to_json(self) -> dict[str, Any]:
        """The headline, and how many items were chosen at each step."""
        there = self.steps[np.isfinite(self.steps)].astype(np.int64)
        counts = np.bincount(there, minlength=self.time + 1)[1:]
        return plain({"headline": self.headline, "items at step": counts, "items": len(self.steps)})


@dataclass(frozen=True)
class Extremes:
    """Items at both ends, by their places in the trace; the same item is at both where there are few.

    Attributes:
        fastest: From the fastest on.
        slowest: From the slowest on.
    """

    fastest: Int64[np.ndarray, "items"]
    slowest: Int64[np.ndarray, "items"]


@dataclass(frozen=True)
class Gallery:
    """The fastest and the slowest items, for looking at.

    Attributes:
        overall: Of all items.
        by_class: Of each true class that has any, by its number.
        latency: All latencies; those of failures are infinite.
        indices: The row of each item in its source.
        labels: The true class of each item.
    """

    overall: Extremes
    by_class: Mapping[int, Extremes]
    latency: Float64[np.ndarray, "items"]
    indices: Int64[np.ndarray, "items"]
    labels: Int64[np.ndarray, "items"]

    def to_json(self) -> dict[str, Any]:
        """For each item shown its place in the trace, its row in the source, its class and its latency."""
        by_class = {str(label): self._told(each) for label, each in self.by_class.items()}
        return plain({"overall": self._told(self.overall), "by class": by_class})

    def _told(self, extremes: Extremes) -> dict[str, list[dict[str, Any]]]:
        return {name: [self._item(i) for i in getattr(extremes, name).tolist()] for name in ("fastest", "slowest")}

    def _item(self, i: int) -> dict[str, Any]:
        told = {"item": i, "index": self.indices[i], "label": self.labels[i], "latency": self.latency[i]}
        return {**told, "failed": np.isinf(self.latency[i])}


def selection_latency(trace: Trace, *, theta: float | None = None, failing: float = 0.1) -> SelectionLatency:
    """Find the first step from which one class stays above theta.

        min { t | there is a class j: p_{t',j} > theta for all t' >= t }

    Whether that class is right does not matter.

    Args:
        trace: What was said at every step.
        theta: From 0 to below 1; None chooses it by `failing`.
        failing: The share of items of which no class is to stay above theta. These are the items whose confidence at
            the last step is not above theta, so that theta is a quantile of the last confidences.
    """
    last = outputs.softmax(trace.logits[-1])
    theta = _chosen_theta(last.max(axis=-1), failing) if theta is None else float(theta)
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


def gallery(
    trace: Trace, latency: SelectionLatency, each: int = 10, per_class: bool = True, only_right: bool = False
) -> Gallery:
    """Pick the fastest and the slowest items; those that never settle are the slowest, and are told.

    Of items as fast as each other the surer one at that step comes first, then the one that stands first in the source:
    the order of the trace does not matter.

    Args:
        trace: One trial an image.
        latency: When its items were chosen.
        each: How many of the fastest, and of the slowest.
        per_class: Pick from each true class as well.
        only_right: Pick from items alone whose chosen class is the true one.
    """
    _check_gallery(trace, latency, each)
    order = np.lexsort([trace.indices, -latency.confidence, latency.steps])
    if per_class or only_right:
        outputs.check_known(trace)
    if only_right:
        order = order[latency.chosen[order] == trace.labels[order]]
    labels = np.unique(trace.labels[order]).tolist() if per_class else []
    by_class = {label: _ends(order[trace.labels[order] == label], each) for label in labels}
    return Gallery(_ends(order, each), by_class, latency.steps, trace.indices, trace.labels)


def _ends(order: Int64[np.ndarray, "items"], each: int) -> Extremes:
    return Extremes(order[:each], order[::-1][:each])


def _chosen_theta(confidence: Float64[np.ndarray, "items"], failing: float) -> float:
    """The theta above which all but a share of the confidences are."""
    if not 0 <= failing < 1:
        raise InputError(f"failing is {failing:g}: let 0 or more and less than 1 of the items fail")
    k = round(failing * len(confidence))
    if k == 0:  # just below the least sure of all
        return float(np.nextafter(confidence.min(), 0))
    theta = float(np.partition(confidence, k - 1)[k - 1])
    return min(theta, float(np.nextafter(1, 0)))  # where nearly all are wholly sure, none could be above


def _check_gallery(trace: Trace, latency: SelectionLatency, each: int) -> None:
    if trace.trials > 1:
        raise InputError(f"the trace shows every image in {trace.trials} trials: take one of them with trace.trial(0)")
    if len(latency.steps) != trace.items:
        raise InputError(
            f"the trace has {trace.items} items, the latency is of {len(latency.steps)}: compute it from this trace"
        )
    if each < 1:
        raise InputError(f"{each} of the fastest and slowest are asked for: show at least 1")
