"""Accuracy and confusions of a network under everything that people were shown, over three axes of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from cascaded.analysis import outputs
from cascaded.analysis.curves import GRID, threshold_curve
from cascaded.analysis.people import confusion
from cascaded.errors import InputError
from cascaded.traces.trace import Trace

AXES = (("deadline", "steps"), ("deadline", "operations"), ("threshold", "steps"))
"""Axes of time: a step, the operations until then, and the mean stopping step under a confidence threshold."""
MILLION = 1e6
"""Operations are counted in millions, so that the scale of the line is ms per million operations."""
Traces = Mapping[str | None, Trace]
"""Recordings by their noise; None for color images."""


@dataclass(frozen=True)
class NetworkCurves:
    """Accuracy of a network under several conditions, over one axis of time.

    Attributes:
        x: Steps, operations, or mean stopping steps, from 0.
        accuracy: At each x; the first one is chance.
    """

    x: Float64[np.ndarray, "points"]
    accuracy: Float64[np.ndarray, "conditions points"]

    def __post_init__(self):
        if len(self.x) < 2 or self.x[0] != 0 or not (np.diff(self.x) > 0).all():
            raise InputError(f"x is {self.x.tolist()}: give 0 and then increasing numbers")

    def at(self, places: Float64[np.ndarray, "*any"]) -> Float64[np.ndarray, "conditions *any"]:
        """The accuracy at any x, interpolated."""
        return np.stack([np.interp(places, self.x, each) for each in self.accuracy])


class Network:
    """Accuracy and confusions of a network under every noise.

    Args:
        traces: By noise.
        categories: Classes in the order of the answers of people.
    """

    def __init__(self, traces: Traces, categories: tuple[str, ...]):
        self.traces, first = traces, next(iter(traces.values()))
        classes = first.provenance.classes
        if set(classes) != set(categories):
            mine, yours = ", ".join(classes), ", ".join(categories)
            raise InputError(f"the classes of the network are {mine}, those of people {yours}: use a network of theirs")
        self.order, self.steps = [classes.index(name) for name in categories], first.steps
        counted = all(len(each.provenance.operations) == self.steps for each in traces.values())
        self.axes = AXES if counted else (AXES[0], AXES[2])
        self._known: dict[tuple[str | None, str], Sequence[float]] = {}
        self.confusions = {noise: self._confusions(trace) for noise, trace in traces.items()}

    def curves(self, noises: Sequence[str | None], rule: str, unit: str) -> NetworkCurves:
        """Accuracy under each of some noises, over one axis of time."""
        steps, chance = np.arange(1.0, self.steps + 1), 1 / len(self.order)
        grid = np.linspace(1, self.steps, GRID) if rule == "threshold" else steps
        found = [self._accuracy(noise, rule, grid) for noise in noises]
        if unit == "operations":
            grid = self.traces[noises[0]].cost(unit) / MILLION
        return NetworkCurves(np.append(0, grid), np.array([[chance, *each] for each in found]))

    def _accuracy(self, noise: str | None, rule: str, grid: np.ndarray) -> Sequence[float]:
        """At every step, or at mean stopping steps; computed once."""
        if (noise, rule) not in self._known:
            trace, correct = self.traces[noise], outputs.correct(self.traces[noise])
            if rule == "threshold":
                curve = threshold_curve(outputs.confidence(trace), correct, trace.cost("steps"))
                self._known[noise, rule] = [curve.accuracy_at(cost) for cost in grid]
            else:
                self._known[noise, rule] = correct.mean(axis=1).tolist()
        return self._known[noise, rule]

    def _confusions(self, trace: Trace) -> Float64[np.ndarray, "time categories answers"]:
        """Fractions of predictions per category at steps 0..T; at step 0 all are equal."""
        n = len(self.order)
        counts = np.zeros((trace.steps, n, n))
        for step, predicted in enumerate(outputs.predictions(trace)):
            np.add.at(counts[step], (trace.labels, predicted), 1)
        matrices = confusion(counts)[:, self.order][:, :, self.order]
        return np.concatenate([np.full((1, n, n), 1 / n), matrices])
