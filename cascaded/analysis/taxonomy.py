"""Taxonomic compliance: how often a wrong prediction is of the right coarse class."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from cascaded.analysis import outputs
from cascaded.analysis.rows import DRAWS, Rows
from cascaded.errors import InputError
from cascaded.traces.trace import Trace

LEVEL = 0.35
"""What CascadedTD reaches at step 2 in the paper, and CascadedCE at step 8."""


def taxonomic_compliance(trace: Trace, *, draws: int = DRAWS, seed: int = 0) -> pd.DataFrame:
    """Measure how often a wrong prediction is of the right coarse class, per step.

        P(coarse(a_t) = coarse(y) | a_t != y)        chance = mean of (size of coarse(y)) / classes

    Chance is that of classes drawn evenly: .05 for the 20 coarse classes of CIFAR-100, as in the paper. Steps without
    a wrong prediction have no compliance and do not count in its mean.

    Args:
        trace: Of data with two levels of classes.
        draws: How often items are drawn for intervals.
        seed: Seed of the draws.
    """
    coarse = np.array(_checked_coarse(trace), dtype=np.int64)
    predictions, labels = outputs.predictions(trace), trace.labels
    wrong = predictions != labels
    near = (wrong & (coarse[predictions] == coarse[labels])).astype(float)
    wrong = wrong.astype(float)
    by_chance = np.bincount(coarse)[coarse[labels]] / trace.classes

    def per_step(items: np.ndarray) -> np.ndarray:
        counts = np.bincount(items, minlength=trace.items)
        return np.divide(near @ counts, wrong @ counts, out=np.full(trace.steps, math.nan), where=wrong @ counts > 0)

    def numbers(items: np.ndarray) -> dict[str, float]:
        compliance = per_step(items)
        known = compliance[np.isfinite(compliance)]
        mean, chance = float(known.mean()) if len(known) else math.nan, float(by_chance[items].mean())
        means = {"compliance_mean": mean, "compliance_above_chance": mean - chance, "compliance_chance": chance}
        return {**means, f"first_step_at_{LEVEL:g}": _first(compliance >= LEVEL)}

    rows = Rows(trace.items, draws, seed)
    rows.numbers(numbers)
    rows.curve("compliance", trace.cost("steps"), per_step(np.arange(trace.items)))
    return rows.table()


def _first(reached: np.ndarray) -> float:
    """Number of the first step that is true, from 1; nan if none is."""
    return float(reached.argmax() + 1) if reached.any() else math.nan


def _checked_coarse(trace: Trace) -> tuple[int, ...]:
    outputs.check_in_distribution(trace)
    coarse = trace.provenance.coarse_of
    if not coarse:
        name = trace.config.data or "the trace"
        raise InputError(f"{name} has one level of classes, compliance needs two: record data such as cifar100")
    if len(coarse) != trace.classes:
        raise InputError(f"the trace has {trace.classes} classes and coarse_of has {len(coarse)}: give one for each")
    return coarse
