"""Measures of speed-accuracy curves, confusion matrices and split halves, for people and networks.

Measures are functions of accuracies (conditions x deadlines) or of counts (categories x answers). Equations are in
docs/human.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from cascaded.data.trials import Answers, accuracy

SPLITS = 100
"""Random splits of the observers into halves."""


def steepness(curves: Float64[np.ndarray, "*any deadlines"], ms: Float64[np.ndarray, "deadlines"]) -> np.ndarray:
    """The largest slope between two deadlines, per 100 ms: max over d of 100 (y_{d+1} - y_d) / (ms_{d+1} - ms_d)."""
    return (100 * np.diff(curves) / np.diff(ms)).max(axis=-1)


def accuracy_range(curves: Float64[np.ndarray, "*any deadlines"]) -> np.ndarray:
    """The largest accuracy minus the smallest one."""
    return curves.max(axis=-1) - curves.min(axis=-1)


def rms(a: np.ndarray, b: np.ndarray) -> float:
    """The root of the mean squared difference; pairs with nan are left out, nan where there is no other."""
    squares = (a - b) ** 2
    return float(np.sqrt(np.nanmean(squares))) if np.isfinite(squares).any() else np.nan


def pearson(a: np.ndarray, b: np.ndarray) -> float:
    """Pearson's correlation of two lists; pairs with nan are left out, nan where one list is constant."""
    known = np.isfinite(a) & np.isfinite(b)
    x, y = a[known] - a[known].mean() if known.any() else a[known], b[known]
    if len(x) < 2 or np.ptp(x) < 1e-12 or np.ptp(y) < 1e-12:
        return np.nan
    return float(np.corrcoef(x, y)[0, 1])


def confusion(counts: np.ndarray) -> Float64[np.ndarray, "*any categories answers"]:
    """The fraction of each answer among the trials of a category; nan for a category without trials."""
    total = counts.sum(axis=-1, keepdims=True)
    return np.divide(counts, total, out=np.full(counts.shape, np.nan), where=total > 0)


def errors(matrix: Float64[np.ndarray, "categories answers"]) -> Float64[np.ndarray, "errors"]:
    """The cells beside the diagonal of a confusion matrix."""
    return matrix[~np.eye(len(matrix), dtype=bool)]


class People:
    """Accuracy of people, of all observers and of every draw of them."""

    def __init__(self, answers: Answers, draws: int, seed: int):
        self.answers, self.ms = answers, np.array(answers.deadlines)
        self.counts, self.drawn = answers.counts.sum(axis=0), answers.drawn(draws, seed)
        self.accuracy, self.drawn_accuracy = accuracy(self.counts), accuracy(self.drawn)
        self.early, self.late = early_and_late(answers, self.drawn)

    def of(self, manipulation: str) -> np.ndarray:
        """Which conditions are of a manipulation."""
        return np.array([name == manipulation for name, _ in self.answers.conditions])


@dataclass(frozen=True)
class Ceiling:
    """How well one half of the observers predicts the other.

    Attributes:
        error: RMS difference of two halves, divided by 2: the error of a perfect model against all observers.
        reliability: Correlation of two halves, corrected for their length (Spearman-Brown): 2 r / (1 + r).
    """

    error: float
    reliability: float


def ceiling(
    answers: Answers, measure: Callable[[Int64[np.ndarray, "..."]], np.ndarray], seed: int = 0, splits: int = SPLITS
) -> Ceiling:
    """The noise ceiling of a measure: observers are split into halves at random, within each manipulation.

    Args:
        answers: Of at least two observers per manipulation; nan with fewer.
        measure: Computes a list of numbers from counts (conditions, deadlines, categories, answers).
        seed: Seed of the splits.
        splits: Their number.
    """
    if min(map(len, answers.by_manipulation())) < 2:
        return Ceiling(np.nan, np.nan)
    pairs = [(measure(one), measure(other)) for one, other in _halves(answers, seed, splits)]
    r = np.nanmean([pearson(*pair) for pair in pairs])
    error = np.sqrt(np.nanmean([rms(*pair) ** 2 for pair in pairs])) / 2
    return Ceiling(float(error), float(2 * r / (1 + r)))


def _halves(answers: Answers, seed: int, splits: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    generator = np.random.default_rng(seed)
    for _ in range(splits):
        orders = [generator.permutation(own) for own in answers.by_manipulation()]
        halves = [
            np.concatenate(each) for each in zip(*((o[: len(o) // 2], o[len(o) // 2 :]) for o in orders), strict=True)
        ]
        yield answers.counts[halves[0]].sum(axis=0), answers.counts[halves[1]].sum(axis=0)


def early_and_late(answers: Answers, drawn: Int64[np.ndarray, "draws ..."]) -> tuple[int, int]:
    """The first deadline at which people are better than chance, and the last one.

    Better: 97.5 % of the draws of observers are above chance, all conditions together.
    """
    low = np.quantile(accuracy(drawn.sum(axis=1)), 0.025, axis=0)
    above = np.flatnonzero(low > 1 / len(answers.categories))
    return int(above[0]) if len(above) else 0, len(answers.deadlines) - 1
