"""What was found, in sentences made from the numbers: accuracy early and at the last step."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cascaded.figures.base import named
from cascaded.progress import counted
from cascaded.results.compare import bands
from cascaded.results.names import display_name

ENOUGH = 0.95
"""With one network, the early step is the first one with this fraction of the final accuracy."""


def findings(table: pd.DataFrame) -> tuple[str, ...]:
    """One sentence per data set, the one with the most networks first; empty without accuracies per step.

    Args:
        table: The results table.
    """
    by_data = main_rows(table)
    found = [_sentence(_curves(rows), f"On {data}, " if len(by_data) > 1 else "") for data, rows in by_data.items()]
    return tuple(sentence[0].upper() + sentence[1:] for sentence in found)


def context(table: pd.DataFrame) -> str:
    """What the first finding was measured on: `700 test images of cifar10, 1 seed per network`."""
    for data, rows in main_rows(table).items():
        seeds = bands(rows)["n_seeds"]
        images = counted(int(rows["n_items"].iloc[0]), f"{rows['split'].iloc[0]} image")
        low, high = seeds.min(), seeds.max()
        return f"{images} of {data}, {counted(high, 'seed') if low == high else f'{low} to {high} seeds'} per network."
    return ""


def main_rows(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows behind each finding, by data set: accuracies per step, in whole steps where there are some."""
    rows = table[(table["analysis"] == "speed_accuracy") & (table["metric"] == "accuracy_per_step")]
    rows = rows[rows["time"] == "coarse"] if (rows["time"] == "coarse").any() else rows
    runs = rows.groupby(["data", "split", "items", "protocol_version"], sort=False)["run"].transform("nunique")
    rows = rows[runs == runs.groupby(rows["data"]).transform("max")]
    found = {str(data): own for data, own in rows.groupby("data", sort=False)}
    return dict(sorted(found.items(), key=lambda each: -each[1]["run"].nunique()))


def _curves(rows: pd.DataFrame) -> dict[str, np.ndarray]:
    """Accuracy per step of every network as a mean over seeds, in the order of figures: TD with a low lambda first."""
    networks = named(bands(rows)).groupby("name", sort=False)
    return {_name(own.iloc[0]): own.drop_duplicates("x")["value"].to_numpy() for _, own in networks}


def _name(row: pd.Series) -> str:
    loss = {"cascaded-td": f"TD({row['lam']:g})", "cascaded-ce": "cross-entropy"}.get(row["method"])
    if loss and row["schedule"] == "cascaded":
        return f"the network trained with {loss}"
    return display_name(row["method"], row["lam"], row["schedule"])


def _sentence(curves: dict[str, np.ndarray], where: str) -> str:
    (one, a), *others = curves.items()
    other, b = next((each for each in others if each[0].endswith("cross-entropy")), others[-1] if others else (one, a))
    steps = min(len(a), len(b))
    gap = np.abs(a[:steps] - b[:steps])[:-1] if others else a >= ENOUGH * a[-1]
    early = int(gap.argmax()) if len(gap) else 0
    start = f"{where}after {early + 1} of {counted(steps, 'step')} {one} is right on {_percent(a[early])} of the images"
    if others:
        same = other.replace("the network", "the one") if one.startswith("the network") else other
        return f"{start}, {same} on {_percent(b[early])}; at the last step {_percent(a[-1])} and {_percent(b[-1])}."
    return f"{start}; at the last step on {_percent(a[-1])}." if early + 1 < steps else f"{start}."


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.0f} %"
