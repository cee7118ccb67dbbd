"""The numbers that the paper prints, with the key columns of the results table."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pandas as pd

FILE = Path(__file__).with_name("values.csv")
SAME_IMAGES = {"cifar10-sample": "cifar10"}
"""Data sets whose images are a part of one that the paper uses."""


@cache
def load_values() -> pd.DataFrame:
    """One row per number, in the units of the results table: accuracies are fractions. Do not change it in place."""
    return pd.read_csv(FILE)


def in_paper(data: str) -> str:
    """The name of the paper's data set that these images come from; other names are returned unchanged."""
    return SAME_IMAGES.get(data, data)
