"""Taxonomic compliance: how often a wrong answer is at least of the right kind."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from cascaded.analysis import outputs
from cascaded.analysis.statistics import plain
from cascaded.errors import InputError
from cascaded.traces.trace import Trace

LEVEL = 0.35
"""What CascadedTD reaches at step 2 in the paper, and CascadedCE at step 8."""


@dataclass(frozen=True)
class TaxonomicCompliance:
    """How often a wrong answer is of the right coarse class, step by step.

    Attributes:
        compliance: P(coarse class right | fine class wrong) at every step; nan where no answer is wrong.
        wrong: How many answers are wrong at every step.
        chance_coarse: One in the number of coarse classes: what the paper calls chance.
        chance: What wrong answers drawn evenly from the other classes would reach.
    """

    compliance: Float64[np.ndarray, "time"]
    wrong: Int64[np.ndarray, "time"]
    chance_coarse: float
    chance: float

    def first_step(self, level: float = LEVEL) -> float:
        """Number of the first step at which a level is reached, from 1; nan if it never is."""
        reached = np.flatnonzero(self.compliance >= level)
        return float(reached[0] + 1) if len(reached) else math.nan

    @property
    def headline(self) -> dict[str, float]:
        """Compliance at both ends, on average, above chance, and when it reaches the paper's level."""
        known = self.compliance[np.isfinite(self.compliance)]
        mean = float(known.mean()) if len(known) else math.nan
        return {
            "compliance at first step": float(self.compliance[0]),
            "compliance at last step": float(self.compliance[-1]),
            "mean compliance": mean,
            "compliance above chance": mean - self.chance,
            f"first step at {LEVEL:g}": self.first_step(),
        }

    def to_json(self) -> dict[str, Any]:
        """Everything."""
        chances = {"chance_coarse": self.chance_coarse, "chance": self.chance}
        return plain({"headline": self.headline, "compliance": self.compliance, "wrong": self.wrong, **chances})


def taxonomic_compliance(trace: Trace) -> TaxonomicCompliance:
    """Measure how often a wrong answer is of the right coarse class.

        P(coarse(a_t) = coarse(y) | a_t != y)        chance = mean of (size of coarse(y) - 1) / (classes - 1)

    Args:
        trace: Of data with two levels, whose origin tells the coarse class of every class.
    """
    coarse = np.array(_checked_coarse(trace), dtype=np.int64)
    answers, labels = outputs.answers(trace), trace.labels
    wrong = answers != labels
    near = wrong & (coarse[answers] == coarse[labels])
    count = wrong.sum(axis=1)
    compliance = np.divide(near.sum(axis=1), count, out=np.full(trace.steps, math.nan), where=count > 0)
    groups, group, sizes = np.unique(coarse, return_inverse=True, return_counts=True)
    others = sizes[group[labels]] - 1
    chance = float(others.mean() / (trace.classes - 1)) if trace.classes > 1 else math.nan
    return TaxonomicCompliance(compliance, count, 1 / len(groups), chance)


def _checked_coarse(trace: Trace) -> tuple[int, ...]:
    outputs.check_known(trace)
    coarse = trace.provenance.coarse_of
    if not coarse:
        raise InputError(
            f"{trace.config.data or 'the trace'} has one level of classes, compliance needs two: record data such as "
            "cifar100, or give the origin coarse_of"
        )
    if len(coarse) != trace.classes:
        raise InputError(
            f"the trace has {trace.classes} classes and tells the coarse class of {len(coarse)}: give one for each"
        )
    return coarse
