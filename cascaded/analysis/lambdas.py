"""The effect of lambda: how the final accuracy depends on what a network was taught with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64

from cascaded.analysis import outputs
from cascaded.analysis.statistics import Comparison, Estimate, over_seeds, paired, plain
from cascaded.errors import InputError
from cascaded.traces.trace import Trace, check_same_items


@dataclass(frozen=True)
class LambdaEffect:
    """Final accuracy for every lambda, on the same seeds.

    Attributes:
        lambdas: What networks were taught with, as it was given: `0`, `0.5`, `CE`.
        seeds: The seeds that all of them have.
        accuracy: Final accuracy.
        estimates: Its mean for every lambda, with an interval without the variance between seeds.
        against: Every lambda minus the reference, seed by seed; empty where the reference is not there.
        reference: What others are held against: lambda 1, the usual way to train early exits.
    """

    lambdas: tuple[str, ...]
    seeds: tuple[int, ...]
    accuracy: Float64[np.ndarray, "seeds conditions"]
    estimates: tuple[Estimate, ...]
    against: Mapping[str, Comparison]
    reference: str = "1"

    @property
    def headline(self) -> dict[str, float]:
        """Mean final accuracy for every lambda."""
        return {f"accuracy {name}": each.value for name, each in zip(self.lambdas, self.estimates, strict=True)}

    def to_json(self) -> dict[str, Any]:
        """As JSON has it; None for what is not known."""
        told = {"lambdas": self.lambdas, "seeds": self.seeds, "accuracy": self.accuracy, "reference": self.reference}
        told |= {"estimates": [each.to_json() for each in self.estimates]}
        told |= {"against reference": {name: each.to_json() for name, each in self.against.items()}}
        return plain({"headline": self.headline, **told})


def lambda_effect(traces: Mapping[str, Sequence[Trace]], reference: str = "1") -> LambdaEffect:
    """Compare the final accuracy of networks that were taught with different lambdas, on the seeds they share.

    Args:
        traces: For every lambda, a trace of each seed; all of the same images.
        reference: The lambda that others are held against.
    """
    by_seed = {name: {trace.provenance.seed: trace for trace in each} for name, each in traces.items()}
    seeds = sorted(set.intersection(*(set(each) for each in by_seed.values()))) if by_seed else []
    if not seeds:
        told = ", ".join(f"{name} has {sorted(each) or 'none'}" for name, each in by_seed.items())
        raise InputError(f"the lambdas share no seed ({told or 'none are given'}): train all with the same seeds")
    first = next(iter(by_seed.values()))[seeds[0]]
    for each in by_seed.values():
        for seed in seeds:
            check_same_items(first, each[seed])
    names = tuple(by_seed)
    accuracy = np.array([[final_accuracy(by_seed[name][seed]) for name in names] for seed in seeds])
    columns = dict(zip(names, accuracy.T, strict=True))
    others = [name for name in names if name != reference] if reference in columns else []
    against = {name: paired(columns[name], columns[reference]) for name in others}
    return LambdaEffect(names, tuple(seeds), accuracy, tuple(over_seeds(accuracy)), against, reference)


def final_accuracy(trace: Trace) -> float:
    """The share of right answers at the last step; earlier ones are not looked at."""
    outputs.check_known(trace)
    return float((trace.logits[-1].argmax(axis=-1) == trace.labels).mean())
