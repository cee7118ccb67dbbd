"""Spearman's rho, whether it is more than chance, and whether one is more than another."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float, Float64, Int64
from scipy.special import stdtr

from cascaded.analysis.statistics import Statistic
from cascaded.errors import InputError


def spearman(x: Float[np.ndarray, "items"], y: Float[np.ndarray, "items"]) -> float:
    """Spearman's rho: the correlation of ranks, in which those that tie share their mean rank.

    Infinite values rank above, or below, all others and tie with each other: an item that never settles is slower than
    all that do. The result is nan where one side does not vary.
    """
    return on_ranks(x, y)(np.arange(len(x)))


def on_ranks(x: Float[np.ndarray, "items"], y: Float[np.ndarray, "items"]) -> Statistic:
    """Spearman's rho as a function of numbers of items. Values are sorted once, so that a draw costs no sorting."""
    if x.shape != y.shape or x.ndim != 1 or not len(x):
        raise InputError(f"one side has shape {x.shape}, the other {y.shape}: give both one value per item")
    if np.isnan(x).any() or np.isnan(y).any():
        raise InputError("a value is nan, which has no rank: leave such items out, or give infinity for one that never")
    places = [np.unique(values, return_inverse=True)[1] for values in (x, y)]

    def rho(numbers: Int64[np.ndarray, "drawn"]) -> float:
        return _pearson(*(_ranks(place[numbers]) for place in places))

    return rho


def _ranks(places: Int64[np.ndarray, "items"]) -> Float64[np.ndarray, "items"]:
    """Ranks from 1, those that tie share the mean, of whole numbers that keep the order of the values."""
    sizes = np.bincount(places)
    return (np.cumsum(sizes) - (sizes - 1) / 2)[places]


def _pearson(x: Float64[np.ndarray, "items"], y: Float64[np.ndarray, "items"]) -> float:
    x, y = x - x.mean(), y - y.mean()
    scale = math.sqrt((x @ x) * (y @ y))
    return max(-1.0, min(1.0, float(x @ y) / scale)) if scale else math.nan


def p_of_rho(rho: float, n: int) -> float:
    """Two-sided p value of rho: t = rho sqrt((n - 2) / (1 - rho^2)), n - 2 degrees of freedom.

    The result is nan where rho is, and with fewer than three items.
    """
    if n < 3 or math.isnan(rho):
        return math.nan
    t = rho * math.sqrt((n - 2) / (1 - rho**2)) if abs(rho) < 1 else math.inf
    return float(2 * stdtr(n - 2, -abs(t)))


def z_of_difference(r_a: float, r_b: float, r_x: float, n: int) -> float:
    """Compare two correlations with one measure on the same items (Meng, Rosenthal and Rubin, 1992).

        z = (z_a - z_b) sqrt((n - 3) / (2 (1 - r_x) h))        z_i = artanh r_i
        h = (1 - f r2) / (1 - r2)        f = min(1, (1 - r_x) / (2 (1 - r2)))        r2 = (r_a^2 + r_b^2) / 2

    Args:
        r_a: The first model's correlation with the measure.
        r_b: The second's.
        r_x: That of the two models with each other.
        n: How many items, at least 4.
    """
    if n < 4:
        raise InputError(f"{n} items have a score and the test of a difference needs 4: give more items")
    if r_a == r_b or r_x == 1:
        return 0.0  # models that agree on every item would give 0 / 0
    r2 = (r_a**2 + r_b**2) / 2
    f = min(1.0, (1 - r_x) / (2 * (1 - r2))) if r2 < 1 else 1.0
    h = (1 - f * r2) / (1 - r2) if r2 < 1 else 1.0
    return (_fisher(r_a) - _fisher(r_b)) * math.sqrt((n - 3) / (2 * (1 - r_x) * h))


def _fisher(r: float) -> float:
    return math.copysign(math.inf, r) if abs(r) == 1 else math.atanh(r)
