"""Accuracy at fractions of the full network's operations, as papers on early exit report it.

The full network is one pass through all layers: the serial schedule up to its last step. The steps of a cascaded
network are no fractions of it: step 2 updates all blocks, and costs almost as much as the whole pass.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from cascaded.results.table import KEYS, to_table

FRACTIONS = {"accuracy_at_25": 0.25, "accuracy_at_50": 0.5, "accuracy_at_75": 0.75, "accuracy_at_100": 1.0}
"""By metric, the fraction of the full network's operations."""
FORM = ["data", "arch", "width", "first"]
"""What networks with the same full network share; `first`, the operations of step 1, depends on the stem."""


def accuracy_at_operations(df: pd.DataFrame) -> pd.DataFrame:
    """Rows with the accuracy that fractions of the full network's operations buy, by deadline and by threshold.

    They are interpolated in the stored curves of 101 costs, and have no draws. Networks without a serial network of the
    same form in the table are left out, and so are fractions below the operations of the first step.

    Args:
        df: From `cascaded.results.load`.
    """
    chosen = (df["metric"] == "accuracy_at_cost") & (df["unit"] == "operations") & (df["time"] == "coarse")
    curves = df[chosen & (df["analysis"] == "speed_accuracy")]
    by = [*KEYS, "rule"]
    curves = curves.assign(first=curves.groupby(by, dropna=False)["x"].transform("min"))
    full = curves[curves["schedule"] == "serial"].groupby(FORM)["x"].max()
    rows = []
    for _, curve in curves.sort_values("x").groupby(by, dropna=False, sort=False):
        first = curve.iloc[0]
        operations = full.get(tuple(first[FORM]), np.nan)
        for metric, fraction in FRACTIONS.items():
            value = np.interp(fraction * operations, curve["x"], curve["value"], left=np.nan)
            rows.append({**first.drop("first"), "metric": metric, "x": np.nan, "value": value, "draws": None})
    return to_table(pd.DataFrame(rows, columns=df.columns).dropna(subset="value"))
