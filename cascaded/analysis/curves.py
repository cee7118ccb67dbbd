"""Speed against accuracy: what stopping early saves, and what it costs.

An item stops at the first step whose score is above theta, or at the last step:

    s(theta) = min { t | score_t > theta }, or T        cost(theta) = mean c_s        accuracy(theta) = mean right_s

Sweeping theta from 0 to 1 draws a curve. Every distinct one is here: nothing is sampled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float64, Int64

from cascaded.analysis import outputs
from cascaded.analysis.statistics import plain
from cascaded.errors import InputError
from cascaded.traces.trace import Trace, Unit

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class Curve:
    """Accuracy against cost, one point for each way to stop, cheapest first. Between two points one draws lots.

    Attributes:
        cost: Mean cost of an answer; equal costs may follow each other.
        accuracy: Share of right answers.
        threshold: What to stop above, or the deadline.
    """

    cost: Float64[np.ndarray, "conditions"]
    accuracy: Float64[np.ndarray, "conditions"]
    threshold: Float64[np.ndarray, "conditions"]

    def area(self, first: float | None = None, last: float | None = None) -> float:
        """The mean accuracy over a span of costs: the integral of accuracy over cost, divided by the span.

        Args:
            first: Where the span begins; before the curve does there is no answer, and the span begins with the curve.
            last: Where it ends; beyond the curve's end its last accuracy holds. Before the curve begins: nan.
        """
        start = float(self.cost[0]) if first is None else float(first)
        end = float(self.cost[-1]) if last is None else float(last)
        if start > end:
            raise InputError(f"the span of costs begins at {start:g} and ends at {end:g}: give first and last in order")
        start = max(start, float(self.cost[0]))
        if start >= end:
            return self.accuracy_at(end)
        inside = (self.cost > start) & (self.cost <= end)
        x = np.concatenate([[start], self.cost[inside], [end]])
        y = np.concatenate([[self.accuracy_at(start)], self.accuracy[inside], [self.accuracy_at(end)]])
        return float((np.diff(x) * (y[1:] + y[:-1]) / 2).sum() / (end - start))

    def accuracy_at(self, cost: float) -> float:
        """The accuracy that a mean cost buys, of several the one with the highest threshold; nan if it buys nothing."""
        after = int(np.searchsorted(self.cost, cost, side="right"))
        if after == 0:
            return math.nan
        if after == len(self.cost):
            return float(self.accuracy[-1])
        share = (cost - self.cost[after - 1]) / (self.cost[after] - self.cost[after - 1])
        return float(self.accuracy[after - 1] + share * (self.accuracy[after] - self.accuracy[after - 1]))

    def cost_at(self, accuracy: float) -> float:
        """The least mean cost at which an accuracy is reached, even if it is lost again later; nan if it never is."""
        reached = np.flatnonzero(self.accuracy >= accuracy)
        if not len(reached):
            return math.nan
        k = reached[0]
        if k == 0:
            return float(self.cost[0])
        share = (accuracy - self.accuracy[k - 1]) / (self.accuracy[k] - self.accuracy[k - 1])
        return float(self.cost[k - 1] + share * (self.cost[k] - self.cost[k - 1]))

    def thinned(self, points: int = 200) -> Curve:
        """At most so many of its points, evenly spread over cost, the first and the last among them; for drawing."""
        if points < 2:
            raise InputError(f"a curve of {points} points is asked for: its first and last make at least 2")
        if len(self.cost) <= points:
            return self
        spread = np.linspace(self.cost[0], self.cost[-1], points)[1:-1]
        kept = np.unique([0, *np.searchsorted(self.cost, spread).tolist(), len(self.cost) - 1])
        return Curve(self.cost[kept], self.accuracy[kept], self.threshold[kept])

    def to_json(self) -> dict[str, Any]:
        """All of its points."""
        return plain({"cost": self.cost, "accuracy": self.accuracy, "threshold": self.threshold})


@dataclass(frozen=True)
class SpeedAccuracy:
    """Speed against accuracy under two or three ways to stop.

    Attributes:
        unit: What costs are counted in.
        accuracy: At every step.
        curves: By name: `threshold` on the confidence, `deadline`, and `stopper` if its scores were given.
        levels: Accuracies whose costs are told.
    """

    unit: Unit
    accuracy: Float64[np.ndarray, "time"]
    curves: dict[str, Curve]
    levels: tuple[float, ...] = LEVELS

    @property
    def headline(self) -> dict[str, float]:
        """Final accuracy, for each curve its area and the cost of nearly all of that accuracy, and areas won."""
        final = float(self.accuracy[-1])
        told = {"accuracy": final}
        for name, curve in self.curves.items():
            told[f"area {name}"] = curve.area()
            told[f"cost at 95 % of final, {name}"] = curve.cost_at(0.95 * final)
        for name in ("threshold", "stopper"):
            if name in self.curves:
                told[f"{name} above deadline"] = told[f"area {name}"] - told["area deadline"]
        return told

    def to_json(self) -> dict[str, Any]:
        """The headline, accuracy at every step, and each curve: some of its points, and the cost of each level."""
        curves = {
            name: {**curve.thinned().to_json(), "cost_at": {f"{a:g}": curve.cost_at(a) for a in self.levels}}
            for name, curve in self.curves.items()
        }
        return plain({"headline": self.headline, "unit": self.unit, "accuracy": self.accuracy, "curves": curves})


def speed_accuracy(
    trace: Trace,
    *,
    unit: Unit = "steps",
    stopper: Float[np.ndarray, "time items"] | None = None,
    levels: Sequence[float] = LEVELS,
) -> SpeedAccuracy:
    """Measure speed against accuracy when stopping by confidence, by deadline and, if given, by a learned stopper.

    Args:
        trace: What was said at every step.
        unit: What costs are counted in.
        stopper: Its scores, from 0 (go on) to 1 (stop).
        levels: Accuracies whose costs are told.
    """
    right, cost = outputs.right(trace), trace.cost(unit)
    curves = {
        "threshold": threshold_curve(outputs.confidence(trace), right, cost),
        "deadline": deadline_curve(right, cost),
    }
    if stopper is not None:
        curves["stopper"] = threshold_curve(stopper, right, cost)
    return SpeedAccuracy(unit, right.mean(axis=1), curves, tuple(levels))


def deadline_curve(right: Bool[np.ndarray, "time items"], cost: Float[np.ndarray, "time"]) -> Curve:
    """Stop all items at the same step: a point for each, whose threshold is the step's number."""
    _check_cost(right, cost)
    return Curve(cost.astype(float), right.mean(axis=1), np.arange(1.0, len(cost) + 1))


def threshold_curve(
    scores: Float[np.ndarray, "time items"], right: Bool[np.ndarray, "time items"], cost: Float[np.ndarray, "time"]
) -> Curve:
    """Stop each item at the first step whose score is above theta, for theta 0 and each one at which an item moves.

    An item stops at a record, a score above all before it. As theta rises to that record it moves on to the next one,
    or to the last step. All these moves, sorted by theta once and summed up, are the curve.

    Args:
        scores: From 0 to 1: confidences, or a stopper's scores.
        right: Whether the answer at each step is the true one.
        cost: What it costs to answer at each step, from the beginning on.
    """
    return Sweep.of(scores, right, cost).curve()


@dataclass(frozen=True)
class Sweep:
    """All moves of all items, sorted by theta: the curve of these items, or of any draw of them, is a sum away.

    Attributes:
        theta: At which the move happens; 0 for the start of every item.
        paid: What it costs.
        won: What it wins: 1, 0 or -1 right answers.
        item: Whose move it is.
        items: How many there are.
    """

    theta: Float64[np.ndarray, "moves"]
    paid: Float64[np.ndarray, "moves"]
    won: Int64[np.ndarray, "moves"]
    item: Int64[np.ndarray, "moves"]
    items: int

    @classmethod
    def of(
        cls, scores: Float[np.ndarray, "time items"], right: Bool[np.ndarray, "time items"], cost: np.ndarray
    ) -> Sweep:
        """All moves as theta rises from 0 to 1. Arguments as for `threshold_curve`."""
        _check_cost(right, cost)
        _check_scores(scores, right)
        theta, paid, won, item = _moves(scores, right.astype(np.int64), np.asarray(cost, dtype=float))
        order = np.argsort(theta, kind="stable")
        return cls(theta[order], paid[order], won[order], item[order], scores.shape[1])

    def curve(self, times: Int64[np.ndarray, "items"] | None = None) -> Curve:
        """The curve of the items, each as often as `times` says; once by default."""
        counts = 1 if times is None else times[self.item]
        paid, won = np.cumsum(self.paid * counts), np.cumsum(self.won * counts)
        last = np.append(self.theta[1:] > self.theta[:-1], True)  # moves at one theta are one point
        items = self.items if times is None else int(times.sum())
        return Curve(paid[last] / items, won[last] / items, self.theta[last])


def _moves(
    scores: Float[np.ndarray, "time items"], right: np.ndarray, cost: Float64[np.ndarray, "time"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """For each move the theta at which it happens, what it costs, what it wins, and whose it is."""
    T, items = scores.shape
    before = np.maximum.accumulate(scores, axis=0)
    target = np.full(items, T - 1)
    theta, paid, won, whose = [np.zeros(items)], [np.full(items, cost[0])], [right[0]], [np.arange(items)]
    for t in range(T - 1, -1, -1):
        record = np.flatnonzero(scores[t] > before[t - 1]) if t else np.arange(items)
        moving = record[target[record] > t]  # a record at the last step leads nowhere
        to = target[moving]
        theta.append(scores[t, moving].astype(float))
        paid.append(cost[to] - cost[t])
        won.append(right[to, moving] - right[t, moving])
        whose.append(moving)
        target[record] = t
    return np.concatenate(theta), np.concatenate(paid), np.concatenate(won), np.concatenate(whose)


def _check_cost(right: Bool[np.ndarray, "time items"], cost: Float[np.ndarray, "time"]) -> None:
    if right.ndim != 2 or 0 in right.shape or cost.shape != right.shape[:1]:
        raise InputError(f"answers have shape {right.shape} and costs {cost.shape}: give (time, items) and (time,)")
    if not (np.diff(cost) >= 0).all():
        raise InputError("costs fall from one step to the next: give what each step costs from the beginning on")


def _check_scores(scores: Float[np.ndarray, "time items"], right: Bool[np.ndarray, "time items"]) -> None:
    if scores.shape != right.shape:
        raise InputError(
            f"scores have shape {scores.shape}, the trace has (time, items) {right.shape}: score that trace"
        )
    if not ((scores >= 0) & (scores <= 1)).all():
        raise InputError(
            f"scores go from {scores.min():g} to {scores.max():g}: give confidences or a stopper's scores, from 0 to 1"
        )
