"""How sure a figure is: intervals over seeds, and over items where there is one seed.

Models are compared on the same seeds. What makes a seed good or bad for all of them says nothing about which model is
better, so the error bars leave it out (Masson and Loftus, 2003).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Float64, Int64
from scipy.special import stdtr, stdtrit  # Student's t; scipy.stats has it too and takes a second to import

from cascaded.errors import InputError

Figures = Float[np.ndarray, "seeds"] | Sequence[float]
Statistic = Callable[[Int64[np.ndarray, "items"]], float]
"""A figure computed from some items, given by number; a number may come more than once."""


@dataclass(frozen=True)
class Estimate:
    """A figure with its uncertainty.

    Attributes:
        value: The figure.
        low: Lower end of its interval; nan where there is none.
        high: Upper end.
        sem: Standard error.
        n: How many seeds or items it rests on.
        how: Where the interval comes from, in words.
    """

    value: float
    low: float
    high: float
    sem: float
    n: int
    how: str

    def to_json(self) -> dict[str, Any]:
        """As JSON has it; None for what is not known."""
        return plain(asdict(self))


@dataclass(frozen=True)
class Comparison:
    """How far apart two conditions are on the same seeds.

    Attributes:
        difference: Mean of the first minus mean of the second.
        low: Lower end of its t interval; nan with one seed.
        high: Upper end.
        sem: Standard error of the difference.
        p: Two-sided, of a paired t test; nan with one seed, and where all differences are 0.
        n: How many seeds.
    """

    difference: float
    low: float
    high: float
    sem: float
    p: float
    n: int

    def to_json(self) -> dict[str, Any]:
        """As JSON has it; None for what is not known."""
        return plain(asdict(self))


def sem(values: Float[np.ndarray, "seeds"]) -> float:
    """The ordinary standard error of a mean, s / sqrt(n); nan with one value."""
    n = len(values)
    return float(np.std(values, ddof=1) / math.sqrt(n)) if n > 1 else math.nan


def corrected_sem(values: Float[np.ndarray, "seeds conditions"]) -> float:
    """The standard error of a condition's mean, without the variance between seeds (Masson and Loftus, 2003).

        r_sc = x_sc - mean_s - mean_c + mean        MS_SxC = sum r_sc^2 / ((n - 1) (k - 1))        sqrt(MS_SxC / n)

    One figure for all k conditions. A seed that is better than others in every condition adds nothing to it.

    Args:
        values: A figure for each seed and condition; nan is returned where there is one seed.
    """
    x = _checked(values)
    n, k = x.shape
    if k == 1:
        raise InputError("corrected_sem compares conditions and was given 1: give at least two, or use sem")
    if n == 1:
        return math.nan
    r = x - x.mean(axis=1, keepdims=True) - x.mean(axis=0) + x.mean()
    return math.sqrt((r**2).sum() / ((n - 1) * (k - 1)) / n)


def over_seeds(values: Float[np.ndarray, "seeds conditions"], level: float = 0.95) -> list[Estimate]:
    """The mean of each condition with a t interval from the corrected standard error.

        mean_c +- t((n - 1)(k - 1)) sqrt(MS_SxC / n)

    Args:
        values: A figure for each seed and condition. With one condition the standard error is the ordinary one, with
            one seed there is none; `how` says so.
        level: How often such an interval holds the truth.
    """
    x = _checked(values)
    n, k = x.shape
    if n == 1:
        return [Estimate(float(value), math.nan, math.nan, math.nan, 1, "one seed: no interval") for value in x[0]]
    if k == 1:
        error, freedom, how = sem(x[:, 0]), n - 1, "ordinary SEM, there is one condition"
    else:
        error, freedom, how = corrected_sem(x), (n - 1) * (k - 1), "SEM without the variance between seeds"
    half = _t(level, freedom) * error
    how = f"mean of {n} seeds, {how}, {100 * level:g} % t interval"
    return [Estimate(m, m - half, m + half, error, n, how) for m in x.mean(axis=0).tolist()]


def paired(a: Figures, b: Figures, level: float = 0.95) -> Comparison:
    """Compare two conditions on the same seeds: d_s = a_s - b_s, its mean, t interval and paired t test.

    Args:
        a: A figure for each seed.
        b: The same figure of the other condition, seeds in the same order.
        level: How often such an interval holds the truth.
    """
    if len(a) != len(b):
        raise InputError(f"one condition has {len(a)} seeds, the other {len(b)}: compare them on the same seeds")
    x = _checked(np.column_stack([np.asarray(a, dtype=float), np.asarray(b, dtype=float)]))
    d, n = x[:, 0] - x[:, 1], len(x)
    mean, error = float(d.mean()), sem(d)
    if n == 1:
        return Comparison(mean, math.nan, math.nan, math.nan, math.nan, 1)
    half = _t(level, n - 1) * error
    with np.errstate(divide="ignore", invalid="ignore"):  # equal differences: t is infinite, or 0 / 0
        t = np.abs(np.float64(mean) / error)
    return Comparison(mean, mean - half, mean + half, error, float(2 * stdtr(n - 1, -t)), n)


def bootstrap(statistic: Statistic, items: int, draws: int = 1000, level: float = 0.95, seed: int = 0) -> Estimate:
    """A percentile interval over items, for a figure of one seed: items are drawn again, with replacement.

    The same seed draws the same items, whatever the statistic: two models can be compared draw by draw.

    Args:
        statistic: Computes the figure from numbers of items.
        items: How many items there are.
        draws: How often they are drawn.
        level: Which share of the draws' figures lies within the interval.
        seed: What the draws are made from.
    """
    drawn = drawn_figures(statistic, items, draws, seed)
    return percentile_interval(float(statistic(np.arange(items))), drawn, items, level)


def drawn_figures(statistic: Statistic, items: int, draws: int = 1000, seed: int = 0) -> Float64[np.ndarray, "draws"]:
    """A figure of items that are drawn again and again. The same seed draws the same items, whatever the figure."""
    if items < 1 or draws < 2:
        raise InputError(f"{draws} draws of {items} items are asked for: give at least 2 draws of 1 item")
    generator = np.random.default_rng(seed)
    return np.array([statistic(generator.integers(items, size=items)) for _ in range(draws)], dtype=float)


def percentile_interval(value: float, drawn: Float64[np.ndarray, "draws"], items: int, level: float = 0.95) -> Estimate:
    """A figure with the interval that a share of its draws lies within.

    Args:
        value: The figure of all items.
        drawn: The same of drawn items.
        items: How many items there are.
        level: Which share of the draws.
    """
    _check_level(level)
    how = f"{len(drawn)} draws of items, {100 * level:g} % percentile interval"
    if missing := int((~np.isfinite(drawn)).sum()):
        # leaving those draws out would make the interval that of another, luckier figure
        return Estimate(value, math.nan, math.nan, math.nan, items, f"{how}: none, {missing} draws gave no number")
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return Estimate(value, low, high, float(drawn.std(ddof=1)), items, how)


def bootstrap_mean(
    values: Float[np.ndarray, "items"], draws: int = 1000, level: float = 0.95, seed: int = 0
) -> Estimate:
    """The mean of a value an item, such as whether it was right, with its interval. Options as for `bootstrap`."""
    x = np.asarray(values, dtype=float)
    return bootstrap(lambda numbers: float(x[numbers].mean()), len(x), draws, level, seed)


def bootstrap_difference(
    statistic_a: Statistic, statistic_b: Statistic, items: int, draws: int = 1000, level: float = 0.95, seed: int = 0
) -> Estimate:
    """The first figure minus the second, both of the same drawn items each time. Options as for `bootstrap`."""
    return bootstrap(lambda numbers: statistic_a(numbers) - statistic_b(numbers), items, draws, level, seed)


def plain(value: Any) -> Any:
    """Results as JSON has them: arrays as lists, None for numbers that are nan or infinite."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
        raise InputError(
            f"row {seed} (a seed) has {x[seed, condition]} in column {condition} (a condition), which has no mean "
            "over seeds: leave out the one or the other"
        )
    return x
