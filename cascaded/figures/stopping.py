"""What stopping early saves and costs."""

from __future__ import annotations

import pandas as pd

from cascaded.errors import InputError
from cascaded.figures.base import Figure, select, styled
from cascaded.figures.lines import lines
from cascaded.results.compare import bands

UNITS = {"steps": "mean cost (steps)", "operations": "mean cost (multiply-accumulate operations)"}


@styled
def speed_accuracy(df: pd.DataFrame, unit: str = "steps") -> Figure:
    """Accuracy against mean cost where every image stops at a confidence threshold, a line per method.

    Args:
        df: From `cascaded.results.load`.
        unit: `steps`, as on hardware that updates all blocks at once, or `operations`.
    """
    if unit not in UNITS:
        raise InputError(f"unit is {unit!r}: give one of {', '.join(UNITS)}")
    chosen = select(df, "speed_accuracy", "accuracy_at_cost", rule="threshold", unit=unit)
    return lines(bands(chosen), UNITS[unit])


@styled
def stopping_rules(df: pd.DataFrame) -> Figure:
    """Accuracy against mean cost for each stopping rule, a panel per method: threshold, deadline, learned stopper.

    Args:
        df: From `cascaded.results.load`.
    """
    rows = df[(df["metric"] == "accuracy_at_cost") & (df["unit"] == "steps")]
    learned = rows["analysis"] == "learned_stopper"  # has all three rules, on the same images
    rows = rows[learned | ~learned.groupby([rows["run"], rows["time"]]).transform("any")]
    chosen = select(rows.assign(analysis="speed_accuracy"), "speed_accuracy", "accuracy_at_cost")
    return lines(bands(chosen), UNITS["steps"], ("name",))
