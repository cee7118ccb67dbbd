"""Rows of the analysis `human`: which of the several readings of what people were shown are the main ones."""

from __future__ import annotations

import pandas as pd

from cascaded.traces.stimuli import READINGS

OWN = "human_sat"
"""Name of the answers in this package."""
UNLIKELY = {reading for readings in READINGS.values() for reading in readings[1:]}
"""Readings of a manipulation that are not the first one."""


def main_rows(df: pd.DataFrame) -> pd.DataFrame:
    """The rows to print: of `human` those of all conditions, by step; all rows of other analyses.

    Args:
        df: From `cascaded.results.load`.
    """
    whole = whole_set(df)
    steps = (df["unit"].isna() | (df["unit"] == "steps")) & (df["rule"].isna() | (df["rule"] == "deadline"))
    return df[(df["analysis"] != "human") | (df["level"].isna() & (df["manipulation"] == whole) & steps)]


def whole_set(df: pd.DataFrame) -> str:
    """All manipulations in their likelier readings, as the column `manipulation` has them: `noise+blur+color`.

    Args:
        df: From `cascaded.results.load`.
    """
    names = dict.fromkeys(df.loc[df["metric"] == "human_accuracy", "manipulation"])
    return "+".join(name for name in READINGS if name in names)


def is_likely(df: pd.DataFrame) -> pd.Series:
    """Whether rows are of the likelier reading of every manipulation."""
    return df["manipulation"].map(lambda text: not UNLIKELY & set(str(text).split("+")))
