"""The numbers that the paper prints, with the key columns of the results table, and our estimates beside them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pandas as pd

FILE = Path(__file__).with_name("values.csv")
SAME_IMAGES = {"cifar10-sample": "cifar10"}
"""Data sets whose images are a part of one that the paper uses."""
KEYS = ["data", "method", "lam", "schedule", "noise", "protocol", "time", "split", "analysis", "metric"]
KEYS += ["rule", "measure", "detector", "reads", "ood_data"]
"""The columns of a row that the paper's number has to have too; null is equal to null."""


@cache
def load_values() -> pd.DataFrame:
    """One row per number, in the units of the results table: accuracies are fractions. Do not change it in place.

    `sem` is the paper's standard error, `alternative` the other reading where its text is ambiguous.
    """
    return pd.read_csv(FILE)


def readings(values: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """The numbers as we read the paper, and with the other reading where its text is ambiguous."""
    return values["value"], values["alternative"].fillna(values["value"])


def in_paper(data: str) -> str:
    """The name of the paper's data set that these images come from; other names are returned unchanged."""
    return SAME_IMAGES.get(data, data)


def with_paper(estimates: pd.DataFrame) -> pd.DataFrame:
    """Estimates with one more column, `paper`: the paper's number, NaN where it has none.

    Args:
        estimates: From `results.estimates`.
    """
    values = _keys(load_values()).assign(paper=load_values()["value"])
    keys = _keys(estimates.assign(data=estimates["data"].map(in_paper)))
    return estimates.assign(paper=keys.merge(values, how="left", on=KEYS)["paper"].to_numpy())


def _keys(rows: pd.DataFrame) -> pd.DataFrame:
    """The key columns as text, so that null is equal to null whatever its type."""
    return (
        rows[KEYS]
        .astype(object)
        .where(rows[KEYS].notna(), "")
        .map(lambda each: f"{each:g}" if isinstance(each, float) else each)
    )
