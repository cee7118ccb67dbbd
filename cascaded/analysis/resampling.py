"""Headlines as functions of which items were drawn: what a bootstrap needs when there is one seed.

Every function returns, by the name it has in a headline, a figure that is computed anew for any draw of the items. For
all items once it is the headline itself. Under several trials an item is an image with all its trials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from cascaded.analysis import outputs
from cascaded.analysis.curves import Sweep
from cascaded.analysis.latency import SelectionLatency
from cascaded.analysis.statistics import Statistic
from cascaded.traces.trace import Trace, Unit


def of_speed_accuracy(
    trace: Trace, *, unit: Unit = "steps", stopper: Float[np.ndarray, "time items"] | None = None
) -> dict[str, Statistic]:
    """Final accuracy, the area under each curve, and by how much it is above the deadline's."""
    right, cost = outputs.right(trace), trace.cost(unit)
    scores = {"threshold": outputs.confidence(trace)} | ({} if stopper is None else {"stopper": stopper})
    found: dict[str, Statistic] = {"accuracy": _mean_of(right[-1])}
    found["area deadline"] = _mean_of(_share_of_each_step(cost) @ right)
    for name, each in scores.items():
        found[f"area {name}"] = area = _area_of(Sweep.of(each, right, cost))
        found[f"{name} above deadline"] = _difference_of(area, found["area deadline"])
    return found


def of_selection_latency(latency: SelectionLatency) -> dict[str, Statistic]:
    """Median and mean latency of those that reach theta, which stays as it is, and the share that does not."""

    def reached(numbers: np.ndarray) -> np.ndarray:
        steps = latency.steps[numbers]
        return steps[np.isfinite(steps)]

    def median(numbers: np.ndarray) -> float:
        return float(np.median(there)) if len(there := reached(numbers)) else math.nan

    def mean(numbers: np.ndarray) -> float:
        return float(there.mean()) if len(there := reached(numbers)) else math.nan

    return {"median latency": median, "mean latency": mean, "share failed": _mean_of(np.isinf(latency.steps))}


def of_taxonomic_compliance(trace: Trace) -> dict[str, Statistic]:
    """Compliance at both ends, on average over steps, and above what the labels drawn would have by chance."""
    coarse, answers = np.array(trace.provenance.coarse_of), outputs.answers(trace)
    by_chance = ((coarse == coarse[trace.labels][:, None]).sum(axis=1) - 1) / max(1, trace.classes - 1)
    wrong = answers != trace.labels
    near = wrong & (coarse[answers] == coarse[trace.labels])

    def compliance(numbers: np.ndarray, steps: slice) -> float:
        count = wrong[steps][:, numbers].sum(axis=1)
        share = near[steps][:, numbers].sum(axis=1)[count > 0] / count[count > 0]
        return float(share.mean()) if len(share) else math.nan

    return {
        "compliance at first step": lambda numbers: compliance(numbers, slice(0, 1)),
        "compliance at last step": lambda numbers: compliance(numbers, slice(-1, None)),
        "mean compliance": lambda numbers: compliance(numbers, slice(None)),
        "compliance above chance": lambda numbers: compliance(numbers, slice(None)) - float(by_chance[numbers].mean()),
    }


def of_persistent_noise(trace: Trace) -> dict[str, Statistic]:
    """Final accuracy, over all trials of the images drawn."""
    right = outputs.answers(trace)[-1] == trace.labels
    return {"accuracy": _mean_of(right.reshape(trace.trials, -1).mean(axis=0))}


def of_transient_noise(traces: Sequence[Trace]) -> dict[str, Statistic]:
    """Drop in integrated performance and final confidence, each the mean over numbers of noisy frames and trials."""
    dips, finals = [], []
    for trace in traces:
        assert trace.config.onset is not None
        y = outputs.target_confidence(trace).reshape(trace.steps, trace.trials, -1).mean(axis=1)
        dips.append(y[-1] - y[trace.config.onset - 1 :].mean(axis=0))
        finals.append(y[-1])
    return {
        "dip": _mean_of(np.mean(dips, axis=0)),
        "final target confidence": _mean_of(np.mean(finals, axis=0)),
    }


def _share_of_each_step(cost: Float[np.ndarray, "time"]) -> Float[np.ndarray, "time"]:
    """What each step's accuracy counts for in the area under the deadline's curve: half of the cost to either side."""
    spans = np.diff(cost)
    if not spans.sum():
        return np.eye(len(cost))[-1]
    return (np.append(spans, 0) + np.append(0, spans)) / 2 / spans.sum()


def _mean_of(values: np.ndarray) -> Statistic:
    return lambda numbers: float(values[numbers].mean())


def _difference_of(one: Statistic, other: Statistic) -> Statistic:
    return lambda numbers: one(numbers) - other(numbers)


def _area_of(sweep: Sweep) -> Statistic:
    return lambda numbers: sweep.curve(np.bincount(numbers, minlength=sweep.items)).area()
