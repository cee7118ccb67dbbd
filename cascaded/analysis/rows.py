"""Rows of the results table: numbers with bootstrap draws, and points of curves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from jaxtyping import Int64, Real

from cascaded.analysis.statistics import Statistic, draw_items

DRAWS = 200
"""Enough for an interval while one works; publish with 2,000."""
T = TypeVar("T")
Statistics = Callable[[Int64[np.ndarray, "items"]], Mapping[str, float]]
"""Several metrics computed from some items, given by number."""


class Rows:
    """Collects the rows of one analysis of some items.

    Args:
        items: How many items there are to draw.
        draws: How often they are drawn, with replacement.
        seed: Seed of the draws. The same seed draws the same items, whatever the metric and whichever the run.
    """

    def __init__(self, items: int, draws: int = DRAWS, seed: int = 0):
        self.items, self.draws, self.seed = items, draws, seed
        self.rows: list[dict[str, Any]] = []

    def drawn(self, compute: Callable[[Int64[np.ndarray, "items"]], T]) -> list[T]:
        """Something computed from the items of every draw."""
        return [compute(numbers) for numbers in draw_items(self.items, self.draws, self.seed)]

    def numbers(self, statistics: Statistics, **variant: Any) -> None:
        """Add metrics of all items, each with the same metric of every draw."""
        drawn = self.drawn(statistics)
        for metric, value in statistics(np.arange(self.items)).items():
            draws = np.array([each[metric] for each in drawn], np.float32)
            self.rows.append({"metric": metric, "value": float(value), "draws": draws, **variant})

    def number(self, metric: str, statistic: Statistic, **variant: Any) -> None:
        """Add one metric of all items, and of every draw."""
        self.numbers(lambda numbers: {metric: statistic(numbers)}, **variant)

    def value(self, metric: str, value: float, **variant: Any) -> None:
        """Add a metric that has no draws."""
        self.rows.append({"metric": metric, "value": float(value), "draws": None, **variant})

    def curve(
        self,
        metric: str,
        x: Iterable[float] | Real[np.ndarray, "points"],
        y: Iterable[float],
        draws: Mapping[float, np.ndarray] | None = None,
        **variant: Any,
    ) -> None:
        """Add the points of a curve; `draws` by x, for the points that have some."""
        draws = draws or {}
        for a, b in zip(x, y, strict=True):
            self.rows.append({"metric": metric, "x": float(a), "value": float(b), "draws": draws.get(a), **variant})

    def table(self) -> pd.DataFrame:
        """All rows; columns that a row does not have are null."""
        columns = dict.fromkeys(["metric", "x", "value", "draws", *(name for row in self.rows for name in row)])
        return pd.DataFrame(self.rows, columns=list(columns))
