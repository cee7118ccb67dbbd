"""Uncertainty of a number: intervals over seeds, and over items where there is one seed.

Models are compared on the same seeds. What makes a seed good or bad for all of them says nothing about which model is
better, so the error bars leave it out (Masson and Loftus, 2003).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int64, Real
from scipy.special import stdtr, stdtrit  # Student's t; scipy.stats has it too and takes a second to import

from cascaded.errors import InputError

Numbers = Float[np.ndarray, "seeds"] | Sequence[float]
Statistic = Callable[[Int64[np.ndarray, "items"]], float]
"""A number computed from some items, given by number; an item may occur more than once."""


@dataclass(frozen=True)
class Estimate:
    """A number with its uncertainty.

    Attributes:
        value: The number.
        low: Lower end of its interval; nan where there is none.
        high: Upper end.
        sem: Standard error.
        n: How many seeds or items it rests on.
        p: Of a difference, two-sided, from a paired t test; nan with one seed, and where all differences are 0.
    """

    value: float
    low: float
    high: float
    sem: float
    n: int
    p: float = math.nan


def sem(values: Float[np.ndarray, "seeds"]) -> float:
    """The ordinary standard error of a mean, s / sqrt(n); nan with one value."""
    return float(standard_error(values[:, None]))


def standard_error(values: Float[np.ndarray, "*points seeds conditions"]) -> Float[np.ndarray, "*points"]:
    """`corrected_sem` of many points at once; with one condition the ordinary standard error, with one seed nan."""
    *points, n, k = values.shape
    if n == 1:
        return np.full(points, np.nan)
    if k == 1:
        return values[..., 0].std(axis=-1, ddof=1) / np.sqrt(n)
    by_seed, by_condition = values.mean(axis=-1, keepdims=True), values.mean(axis=-2, keepdims=True)
    r = values - by_seed - by_condition + values.mean(axis=(-2, -1), keepdims=True)
    return np.sqrt((r**2).sum(axis=(-2, -1)) / ((n - 1) * (k - 1)) / n)


def corrected_sem(values: Float[np.ndarray, "seeds conditions"]) -> float:
    """The standard error of a condition's mean, without the variance between seeds (Masson and Loftus, 2003).

        r_sc = x_sc - mean_s - mean_c + mean        MS_SxC = sum r_sc^2 / ((n - 1) (k - 1))        sqrt(MS_SxC / n)

    One number for all k conditions. A seed that is better than others in every condition adds nothing to it.

    Args:
        values: A number for each seed and condition; nan is returned where there is one seed.
    """
    x = _checked(values)
    if x.shape[1] == 1:
        raise InputError("corrected_sem compares conditions and was given 1: give at least two, or use sem")
    return float(standard_error(x))


def over_seeds(values: Float[np.ndarray, "seeds conditions"], level: float = 0.95) -> list[Estimate]:
    """The mean of each condition with a t interval from the corrected standard error.

        mean_c +- t((n - 1)(k - 1)) sqrt(MS_SxC / n)

    Args:
        values: A number for each seed and condition. With one condition the standard error is the ordinary one, with
            one seed there is none.
        level: Probability that such an interval contains the true value.
    """
    x = _checked(values)
    n, k = x.shape
    error = float(standard_error(x))
    half = _t(level, (n - 1) * max(k - 1, 1)) * error
    return [Estimate(m, m - half, m + half, error, n) for m in x.mean(axis=0).tolist()]


def paired(a: Numbers, b: Numbers, level: float = 0.95) -> Estimate:
    """Compare two conditions on the same seeds: d_s = a_s - b_s, its mean, t interval and paired t test.

    Args:
        a: A number for each seed.
        b: The same number of the other condition, seeds in the same order.
        level: Probability that such an interval contains the true value.
    """
    if len(a) != len(b):
        raise InputError(f"one condition has {len(a)} seeds, the other {len(b)}: compare them on the same seeds")
    x = _checked(np.column_stack([np.asarray(a, dtype=float), np.asarray(b, dtype=float)]))
    (found,) = over_seeds(x[:, :1] - x[:, 1:], level)
    with np.errstate(divide="ignore", invalid="ignore"):  # equal differences: t is infinite, or 0 / 0
        t = np.abs(np.float64(found.value) / found.sem)
    return replace(found, p=float(2 * stdtr(found.n - 1, -t)))


def bootstrap(statistic: Statistic, items: int, draws: int = 1000, level: float = 0.95, seed: int = 0) -> Estimate:
    """A percentile interval over items, for a number of one seed: items are drawn again, with replacement.

    The same seed draws the same items, whatever the statistic: two models can be compared draw by draw.

    Args:
        statistic: Computes the number from numbers of items.
        items: How many items there are.
        draws: How often they are drawn.
        level: Fraction of the draws that lies within the interval.
        seed: Seed of the draws.
    """
    _check_level(level)
    drawn = np.array([statistic(numbers) for numbers in draw_items(items, draws, seed)], dtype=float)
    value = float(statistic(np.arange(items)))
    if not np.isfinite(drawn).all():
        # leaving those draws out would make the interval that of another, luckier number
        return Estimate(value, math.nan, math.nan, math.nan, items)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return Estimate(value, low, high, float(drawn.std(ddof=1)), items)


def draw_items(items: int, draws: int, seed: int = 0) -> Iterator[Int64[np.ndarray, "items"]]:
    """Numbers of items, drawn with replacement, `draws` times. More draws begin with the same ones."""
    if items < 1 or draws < 2:
        raise InputError(f"{draws} draws of {items} items: give at least 2 draws of 1 item")
    generator = np.random.default_rng(seed)
    return (generator.integers(items, size=items) for _ in range(draws))


def mean_of(values: Real[np.ndarray, "items"] | Bool[np.ndarray, "items"]) -> Statistic:
    """The mean of one value per item, such as whether a prediction is correct, as a function of numbers of items."""
    return lambda numbers: float(values[numbers].mean())


def _t(level: float, freedom: int) -> float:
    """How many standard errors an interval reaches to either side."""
    _check_level(level)
    return float(stdtrit(freedom, (1 + level) / 2))


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise InputError(f"level is {level}: give more than 0 and less than 1, such as 0.95")


def _checked(values: Float[np.ndarray, "seeds conditions"]) -> Float[np.ndarray, "seeds conditions"]:
    x = np.asarray(values, dtype=float)
    if x.ndim != 2 or 0 in x.shape:
        raise InputError(f"values have shape {x.shape}: give (seeds, conditions), none zero")
    if not np.isfinite(x).all():
        seed, condition = np.argwhere(~np.isfinite(x))[0]
        cell = f"row {seed} (a seed) has {x[seed, condition]} in column {condition} (a condition)"
        raise InputError(f"{cell}: leave out the one or the other")
    return x
