"""Speed against accuracy: the accuracy that a mean cost buys under a stopping rule.

An item stops at the first step whose score is above theta, or at the last step:

    s(theta) = min { t | score_t > theta }, or T        cost(theta) = mean c_s        accuracy(theta) = mean correct_s

Sweeping theta from 0 to 1 gives a curve. It has every distinct point: thresholds are not sampled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Float64, Int64

from cascaded.analysis import outputs
from cascaded.analysis.rows import DRAWS, Rows
from cascaded.analysis.statistics import mean_of
from cascaded.errors import InputError
from cascaded.traces.trace import Trace, Unit

GRID = 101
"""Costs at which a curve is evaluated: the same ones for all seeds, so that means over seeds are of equal costs."""
EVERY = 5
"""Every fifth of these costs has draws, enough to compare two curves at all costs; all would make files large."""


@dataclass(frozen=True)
class Curve:
    """Accuracy against cost, one point per threshold, cheapest first. Points in between choose one of two at random.

    Attributes:
        cost: Mean cost of a prediction; equal costs may follow each other.
        accuracy: Fraction of correct predictions.
        threshold: Threshold above which items stop, or the deadline.
    """

    cost: Float64[np.ndarray, "conditions"]
    accuracy: Float64[np.ndarray, "conditions"]
    threshold: Float64[np.ndarray, "conditions"]

    def area(self, first: float | None = None, last: float | None = None) -> float:
        """The mean accuracy over a span of costs: the integral of accuracy over cost, divided by the span.

        Args:
            first: Where the span begins, but not before the curve does.
            last: Where it ends; beyond the curve's end it stays at its last accuracy. Before the curve begins: nan.
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


CurveOf = Callable[[np.ndarray], Curve]
"""The curve of a draw: how often each item counts."""


def speed_accuracy(
    trace: Trace, *, stopper: Float[np.ndarray, "time items"] | None = None, draws: int = DRAWS, seed: int = 0
) -> pd.DataFrame:
    """Measure accuracy per step, and accuracy against mean cost under two or three stopping rules.

    Args:
        trace: A recording of test images.
        stopper: Scores of a learned stopper, from 0 (continue) to 1 (stop); adds the rule `stopper`.
        draws: How often items are drawn for intervals.
        seed: Seed of the draws.
    """
    correct, rows = outputs.correct(trace), Rows(trace.items, draws, seed)
    rows.number("accuracy", mean_of(correct[-1]))
    rows.value("accuracy_chance", 1 / trace.classes)
    rows.curve("accuracy_per_step", trace.cost("steps"), correct.mean(axis=1))
    scores = {"threshold": outputs.confidence(trace)} | ({} if stopper is None else {"stopper": stopper})
    units: tuple[Unit, ...] = ("steps", "operations")
    for unit in units[: 2 if len(trace.provenance.operations) == trace.steps else 1]:
        _add_rules(rows, correct, scores, trace.cost(unit), unit)
    return rows.table()


def _add_rules(
    rows: Rows, correct: Bool[np.ndarray, "time items"], scores: dict[str, np.ndarray], cost: np.ndarray, unit: Unit
) -> None:
    """Add the curve of every rule; and in steps, their numbers."""
    by_step, n = correct.astype(float), correct.shape[1]
    drawn: dict[str, CurveOf] = {"deadline": lambda counts: Curve(cost, by_step @ counts / n, cost)}
    drawn |= {rule: Sweep.of(each, correct, cost).curve for rule, each in scores.items()}
    grid = np.unique(np.linspace(cost[0], cost[-1], GRID))
    for rule, curve_of in drawn.items():
        curve = curve_of(np.ones(n, np.int64))
        draws = _drawn(rows, curve_of, grid[::EVERY], n) if (rule, unit) == ("threshold", "steps") else None
        rows.curve("accuracy_at_cost", grid, map(curve.accuracy_at, grid), draws, rule=rule, unit=unit)
        if unit == "steps":
            rows.numbers(partial(_numbers_of, rule, drawn, n), rule=rule)


def _drawn(rows: Rows, curve_of: CurveOf, costs: np.ndarray, n: int) -> dict[float, np.ndarray]:
    """The accuracy at each of some costs, in every draw."""

    def accuracies(items: Int64[np.ndarray, "items"]) -> list[float]:
        curve = curve_of(np.bincount(items, minlength=n))  # has many points: one at a time
        return [curve.accuracy_at(cost) for cost in costs.tolist()]

    drawn = np.array(rows.drawn(accuracies), np.float32)
    return dict(zip(costs.tolist(), drawn.T.copy(), strict=True))


def _numbers_of(rule: str, drawn: dict[str, CurveOf], n: int, items: Int64[np.ndarray, "items"]) -> dict[str, float]:
    """Every number of the curve of some items."""
    counts = np.bincount(items, minlength=n)
    curve = drawn[rule](counts)
    final = float(curve.accuracy[-1])
    numbers = {
        "area": curve.area(),
        "cost_to_95": curve.cost_at(0.95 * final),
        "cost_to_accuracy_50": curve.cost_at(0.5),
    }
    if rule != "deadline":
        numbers["area_above_deadline"] = numbers["area"] - drawn["deadline"](counts).area()
    return numbers


def deadline_curve(correct: Bool[np.ndarray, "time items"], cost: Float[np.ndarray, "time"]) -> Curve:
    """Stop all items at the same step: a point for each, whose threshold is the step's number."""
    _check_cost(correct, cost)
    return Curve(cost.astype(float), correct.mean(axis=1), np.arange(1.0, len(cost) + 1))


def threshold_curve(
    scores: Float[np.ndarray, "time items"], correct: Bool[np.ndarray, "time items"], cost: Float[np.ndarray, "time"]
) -> Curve:
    """Stop each item at the first step whose score is above theta, for theta 0 and each one at which an item moves.

    An item stops at a record, a score above all before it. As theta rises to that record it moves on to the next one,
    or to the last step. All these moves, sorted by theta once and summed up, are the curve.

    Args:
        scores: From 0 to 1: confidences, or a stopper's scores.
        correct: Whether the prediction at each step is correct.
        cost: Cost of a prediction at each step, counted from the beginning.
    """
    return Sweep.of(scores, correct, cost).curve()


@dataclass(frozen=True)
class Sweep:
    """All moves of all items, sorted by theta: the curve of these items, or of any draw of them, is a sum away.

    Attributes:
        theta: At which the move happens; 0 for the start of every item.
        paid: What it costs.
        won: What it wins: 1, 0 or -1 correct predictions.
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
        cls, scores: Float[np.ndarray, "time items"], correct: Bool[np.ndarray, "time items"], cost: np.ndarray
    ) -> Sweep:
        """All moves as theta rises from 0 to 1. Arguments as for `threshold_curve`."""
        _check_cost(correct, cost)
        _check_scores(scores, correct)
        moves = list(_moves(scores.astype(float), correct.astype(np.int64), np.asarray(cost, dtype=float)))
        theta, paid, won, item = (np.concatenate(each) for each in zip(*moves, strict=True))
        order = np.argsort(theta, kind="stable")
        return cls(theta[order], paid[order], won[order], item[order], scores.shape[1])

    def curve(self, times: Int64[np.ndarray, "items"] | None = None) -> Curve:
        """The curve of the items, each `times` times; once by default."""
        counts = 1 if times is None else times[self.item]
        paid, won = np.cumsum(self.paid * counts), np.cumsum(self.won * counts)
        last = np.append(self.theta[1:] > self.theta[:-1], True)  # moves at one theta are one point
        items = self.items if times is None else int(times.sum())
        return Curve(paid[last] / items, won[last] / items, self.theta[last])


def _moves(
    scores: Float64[np.ndarray, "time items"], correct: Int64[np.ndarray, "time items"], cost: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """For the start of all items and the moves from every step: theta, what it costs, what it wins, whose it is."""
    T, n = scores.shape
    items, target = np.arange(n), np.full(n, T - 1)
    before = np.maximum.accumulate(scores, axis=0)
    yield np.zeros(n), np.full(n, cost[0]), correct[0], items
    for t in range(T - 1, -1, -1):
        record = np.flatnonzero(scores[t] > before[t - 1]) if t else items
        moving = record[target[record] > t]  # a record at the last step leads nowhere
        to = target[moving]
        yield scores[t, moving], cost[to] - cost[t], correct[to, moving] - correct[t, moving], moving
        target[record] = t


def _check_cost(correct: Bool[np.ndarray, "time items"], cost: Float[np.ndarray, "time"]) -> None:
    if correct.ndim != 2 or 0 in correct.shape or cost.shape != correct.shape[:1]:
        shapes = f"predictions have shape {correct.shape} and costs {cost.shape}"
        raise InputError(f"{shapes}: give (time, items) and (time,)")
    if not (np.diff(cost) >= 0).all():
        raise InputError("costs fall from one step to the next: give the cost of each step counted from the beginning")


def _check_scores(scores: Float[np.ndarray, "time items"], correct: Bool[np.ndarray, "time items"]) -> None:
    if scores.shape != correct.shape:
        shapes = f"scores have shape {scores.shape}, the trace has (time, items) {correct.shape}"
        raise InputError(f"{shapes}: score that trace")
    if not ((scores >= 0) & (scores <= 1)).all():
        raise InputError(f"scores go from {scores.min():g} to {scores.max():g}: give scores from 0 to 1")
