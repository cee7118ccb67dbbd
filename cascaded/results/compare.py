"""Estimates, paired differences and bands over seeds, computed from the results table.

With three or more seeds intervals are over seeds (Student's t). With fewer they are percentile intervals of the
bootstrap draws over test images, and describe these trained networks only. Runs draw the same images, so a difference
of two runs is computed draw by draw. Where networks are compared with people, draws are over observers, and intervals
over seeds have the variance of observers added.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Float

from cascaded.analysis.statistics import over_seeds, standard_error
from cascaded.errors import CascadedWarning
from cascaded.results.table import VARIANTS

FEW = 3
"""With fewer seeds intervals are over images."""
CONDITION = ["method", "lam", "config", "arch", "width", "schedule", "kernel", "train_noise"]
"""What is compared: rows that are equal in these columns differ in the seed alone."""
SETTING = ["protocol_version", "data", "split", "items", "time", "steps", "noise", "protocol", "analysis", "metric"]
SETTING += ["analysis_version", *VARIANTS]
"""Under which circumstances: conditions are compared where these columns are equal."""
PAIR = ["seed", "fold", "protocol_version", "analysis_version"]
"""What two conditions are paired by."""
INTERVAL = ["low", "high", "interval_over", "n_seeds", "runs"]
ROUNDED = ":rounded"
"""After the name of a run that was measured on a rounded copy of its weights."""
Draws = Sequence[np.ndarray | None]


def estimates(df: pd.DataFrame) -> pd.DataFrame:
    """One row per setting and condition: the mean over seeds with its 95 % interval.

    Args:
        df: Rows of the results table. Points of curves are passed over.
    """
    rows = []
    for key, group in _unique(df[df.x.isna()]).groupby([*SETTING, *CONDITION], dropna=False, sort=False):
        low, high, over = interval(group.value.to_numpy(), list(group.draws), _drawn(group))
        rows.append([*key, group.value.mean(), low, high, over, len(group), _runs(group)])
    return pd.DataFrame(rows, columns=[*SETTING, *CONDITION, "value", *INTERVAL])


def interval(
    values: Float[np.ndarray, "seeds"], draws: Draws, drawn: Literal["images", "observers"] = "images"
) -> tuple[float, float, str]:
    """The 95 % interval of a mean over seeds, and what it is over: `seeds`, what is drawn, both, or `none`.

    Args:
        values: One per seed.
        draws: Bootstrap draws, one array per seed; None where there are none.
        drawn: What was drawn. Observers are the same for all seeds: their variance is added to that over seeds.
    """
    known = [each for each in draws if each is not None]
    n = min(map(len, known), default=0)  # the first draws are the same, however many follow
    mean = np.mean([each[:n] for each in known], axis=0, dtype=float) if n and len(known) == len(draws) else None
    if len(values) >= FEW and np.isfinite(values).all():
        estimate = over_seeds(values[:, None])[0]
        if drawn == "images" or mean is None or not np.isfinite(mean).all():
            return estimate.low, estimate.high, "seeds"
        half = float(np.hypot(estimate.high - estimate.value, np.ptp(np.quantile(mean, [0.025, 0.975])) / 2))
        return estimate.value - half, estimate.value + half, f"seeds and {drawn}"
    if len(values) >= FEW or mean is None or not np.isfinite(mean).all():
        return np.nan, np.nan, "none"  # leaving draws out would make it the interval of another, luckier number
    low, high = np.quantile(mean, [0.025, 0.975]).tolist()
    return low, high, drawn


def _drawn(rows: pd.DataFrame) -> Literal["images", "observers"]:
    """What the draws of some rows are over."""
    return "observers" if "analysis" in rows and (rows["analysis"] == "human").all() else "images"


def difference(a: pd.DataFrame, b: pd.DataFrame) -> dict[str, Any]:
    """Condition a minus condition b on the seeds that they share, with its 95 % interval.

    Args:
        a: The rows of one number under one condition, one per seed.
        b: The same number under another condition, in the same setting.
    """
    both = a.merge(b, on=PAIR, suffixes=("_a", "_b"))
    values = (both.value_a - both.value_b).to_numpy()
    alike = (both.items_a == both.items_b).all()
    draws = [_minus(x, y) if alike else None for x, y in zip(both.draws_a, both.draws_b, strict=True)]
    effect = float(values.mean()) if len(values) else np.nan
    found = (effect, *interval(values, draws, _drawn(a)), len(values), (*_runs(both, "_a"), *_runs(both, "_b")))
    return dict(zip(["effect", *INTERVAL], found, strict=True))


def differences(
    df: pd.DataFrame, a: Mapping[str, Any] | None = None, b: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """All paired differences between conditions: one row per setting and pair, the columns of CONDITION twice.

    Args:
        df: Rows of the results table. Points of curves are passed over.
        a: Columns and values that the first condition has, such as {"method": "cascaded-td", "lam": 0.0}.
        b: The same for the second one, which is subtracted. Without both, every pair is compared once.
    """
    rows = []
    for key, setting in _unique(df[df.x.isna()]).groupby(SETTING, dropna=False, sort=False):
        groups = list(setting.groupby(CONDITION, dropna=False))
        for (one, rows_a), (other, rows_b) in _pairs(groups, a, b):
            effect = difference(rows_a, rows_b)
            if effect["n_seeds"]:
                rows.append([*key, *one, *other, *effect.values()])
    names = [f"{name}_{side}" for side in "ab" for name in CONDITION]
    return pd.DataFrame(rows, columns=[*SETTING, *names, "effect", *INTERVAL])


def bands(df: pd.DataFrame) -> pd.DataFrame:
    """Curves: the mean over seeds, its standard error and the number of seeds at every x.

    Where conditions of one configuration share seeds, the error is without the variance between seeds (Masson and
    Loftus, 2003). It is nan with one seed.

    Args:
        df: Rows of the results table. Numbers that are not points of curves are passed over.
    """
    columns = [*SETTING, *CONDITION, "x", "value", "sem", "n_seeds"]
    points = _unique(df[df.x.notna()])
    blocks = points.groupby([*SETTING, "config"], dropna=False, sort=False)
    curves = [band for _, block in blocks for band in _block(block)]
    if not curves:
        return pd.DataFrame(columns=pd.Index(columns))
    return pd.concat(curves, ignore_index=True)[columns]


def _block(block: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The curves of one setting and configuration. One array holds all of them: a pivot per point would be slow."""
    block = block.assign(pair=block.groupby(PAIR, dropna=False).ngroup())
    by_seeds: dict[tuple[int, ...], list[pd.DataFrame]] = {}
    for _, own in block.groupby(CONDITION, dropna=False, sort=False):
        by_seeds.setdefault(tuple(sorted(own.pair.unique())), []).append(own)
    for seeds, alike in by_seeds.items():
        wide = [own.pivot(index="x", columns="pair", values="value") for own in alike]
        x = np.unique(np.concatenate([each.index for each in wide]))
        values = np.stack([each.reindex(x).to_numpy() for each in wide], axis=-1)
        error = standard_error(values)
        for k, own in enumerate(alike):
            alone = standard_error(values[..., k : k + 1])  # where another condition has no point
            first = own.drop_duplicates("x").set_index("x").reindex(x)
            band = first.assign(value=values[..., k].mean(axis=1), sem=np.where(np.isnan(error), alone, error))
            yield band.assign(n_seeds=len(seeds)).dropna(subset="run").reset_index()


def _unique(df: pd.DataFrame) -> pd.DataFrame:
    """One row per condition and seed: two runs of one configuration and seed are not two seeds."""
    again = df.duplicated([*SETTING, *CONDITION, *PAIR, "x"])
    if again.any():
        message = f"{df.run[again].iloc[0]} repeats a configuration and seed of another run: the first one counts"
        warnings.warn(message, CascadedWarning, stacklevel=3)
    return df[~again]


def _runs(rows: pd.DataFrame, side: str = "") -> tuple[str, ...]:
    """Names of runs; those that were measured on rounded weights say so."""
    pairs = zip(rows[f"run{side}"], rows[f"rounded_from{side}"].notna(), strict=True)
    return tuple(f"{run}{ROUNDED}" if rounded else run for run, rounded in pairs)


def _pairs(groups: list, a: Mapping[str, Any] | None, b: Mapping[str, Any] | None) -> Iterator[tuple]:
    if a is None and b is None:
        return combinations(groups, 2)
    sides = [[each for each in groups if _matches(each[0], wanted or {})] for wanted in (a, b)]
    return ((one, other) for one, other in product(*sides) if one is not other)


def _matches(condition: tuple, wanted: Mapping[str, Any]) -> bool:
    named = dict(zip(CONDITION, condition, strict=True))
    return all(named[column] == value for column, value in wanted.items())


def _minus(x: np.ndarray | None, y: np.ndarray | None) -> np.ndarray | None:
    if x is None or y is None:
        return None
    n = min(len(x), len(y))
    return x[:n] - y[:n]
