"""From the steps of a network to milliseconds: the line that brings its accuracy closest to that of people.

    ms = a + b x        a >= 0, b > 0        x: steps, operations, or the mean stopping step

At x = 0 a network has seen nothing, and its accuracy is chance; after its last step it stays as it is; in between it is
interpolated. One line is fitted to all conditions at once:

    min over a, b of  sum over conditions c and deadlines d of  (people_cd - network_c((d - a) / b))^2
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float64

from cascaded.analysis.network_curves import NetworkCurves
from cascaded.errors import InputError

OFFSETS, SCALES = 81, 121
"""Size of the first grid of a, from 0 to the last deadline, and of b."""
WHOLE = (0.01, 20.0)
"""Range of b: the time b x that the whole network takes, as a multiple of the last deadline."""
AROUND = np.stack(np.meshgrid(np.linspace(-2, 2, 9), np.linspace(-2, 2, 9)), axis=-1).reshape(-1, 2)
PLACES = 181
"""Places at which a deadline of its own is looked for."""
ROUNDS, FINER = 8, 2.0
"""Each further grid is around the best point of the one before, and so many times as fine."""


@dataclass(frozen=True)
class Line:
    """ms = offset + scale x."""

    offset: float
    scale: float

    def places(self, ms: Any) -> Any:
        """The x of a time, or of an array of times."""
        return (ms - self.offset) / self.scale


@dataclass(frozen=True)
class Fit:
    """Fits the line of one network to people at some deadlines; to several draws of people at little cost.

    Attributes:
        curves: The network.
        ms: The deadlines.
    """

    curves: NetworkCurves
    ms: Float64[np.ndarray, "deadlines"]

    def __call__(self, people: Float64[np.ndarray, "conditions deadlines"]) -> Line:
        """The line with the least squared error. Cells of people that are nan are left out.

        Args:
            people: Accuracy of people.
        """
        known = np.isfinite(people).ravel()
        if not known.any():
            raise InputError("people have no trials under any condition: give at least one that counts")
        target = np.where(known, people.ravel(), 0)
        a, b = self._grid[0][_nearest(*self._grid[1:], known, target)]
        steps = np.array([self.ms[-1] / (OFFSETS - 1), np.log(WHOLE[1] / WHOLE[0]) / (SCALES - 1)])
        for _ in range(ROUNDS):
            lines = np.stack([np.maximum(a + steps[0] * AROUND[:, 0], 0), b * np.exp(steps[1] * AROUND[:, 1])], axis=1)
            predicted = self._predicted(lines)
            a, b = lines[_nearest(predicted, predicted**2, known, target)]
            steps = steps / FINER
        return Line(float(a), float(b))

    @cached_property
    def _grid(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Every a and b of the first grid, the accuracies that they predict, and their squares."""
        last = self.ms[-1]
        scales = last * np.geomspace(*WHOLE, SCALES) / self.curves.x[-1]
        lines = np.stack(np.meshgrid(np.linspace(0, last, OFFSETS), scales), axis=-1).reshape(-1, 2)
        predicted = self._predicted(lines)
        return lines, predicted, predicted**2

    def _predicted(self, lines: Float64[np.ndarray, "lines 2"]) -> Float64[np.ndarray, "lines cells"]:
        places = (self.ms - lines[:, :1]) / lines[:, 1:]
        return np.ascontiguousarray(self.curves.at(places).transpose(1, 0, 2)).reshape(len(lines), -1)


def free_error(curves: NetworkCurves, people: Float64[np.ndarray, "conditions deadlines"]) -> float:
    """The RMS difference with the best x for each deadline on its own: no time course on this grid has less.

    Args:
        curves: The network.
        people: Accuracy of people.
    """
    network = curves.at(np.union1d(np.linspace(0, curves.x[-1], PLACES), curves.x))
    squares = np.nansum((people[:, :, None] - network[:, None]) ** 2, axis=0).min(axis=-1)
    return float(np.sqrt(squares.sum() / np.isfinite(people).sum()))


def _nearest(
    predicted: Float64[np.ndarray, "lines cells"],
    squares: Float64[np.ndarray, "lines cells"],
    known: np.ndarray,
    people: np.ndarray,
) -> int:
    """The line with the least squared error in the known cells: |p - h|^2 = |p|^2 - 2 p h + |h|^2."""
    return int((squares @ known.astype(float) - 2 * predicted @ people).argmin())
