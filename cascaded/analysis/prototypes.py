"""Are typical images answered sooner? Rank correlations of latency with three measures of how typical an image is.

Centrality is read from the trace; C-scores and human judgements come with the data (`cascaded.data.human`). All
measures are higher where an image is more typical and are held against negative latency: a positive rho means that
typical images are answered sooner.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float64, Int

from cascaded.analysis.outputs import check_known
from cascaded.analysis.ranks import on_ranks, p_of_rho, spearman, z_of_difference
from cascaded.analysis.statistics import Estimate, bootstrap, bootstrap_difference, plain
from cascaded.errors import InputError
from cascaded.traces.trace import Trace


@dataclass(frozen=True)
class Correlation:
    """How one measure goes with speed.

    Attributes:
        rho: Spearman's rho of negative latency with the measure, with a bootstrap interval over items.
        p: Two-sided, of the t test that rho is 0; nan where rho is.
        left_out: How many items have no score and are not counted in `rho.n`.
        tenths: Mean latency of each tenth of the items, from the least typical to the most. An item that never settled
            counts as one step more than there were.
    """

    rho: Estimate
    p: float
    left_out: int
    tenths: tuple[float, ...] = ()


@dataclass(frozen=True)
class Prototypicality:
    """How each measure of how typical an image is goes with how soon it is answered.

    Attributes:
        measures: A correlation for each measure, by name.
    """

    measures: Mapping[str, Correlation]

    @property
    def headline(self) -> dict[str, float]:
        """Rho of every measure: `rho centrality`."""
        return {f"rho {name}": each.rho.value for name, each in self.measures.items()}

    def to_json(self) -> dict[str, Any]:
        """As JSON has it; None for what is not known."""
        measures = {name: asdict(each) for name, each in self.measures.items()}
        return plain({"headline": self.headline, "measures": measures})


@dataclass(frozen=True)
class RhoDifference:
    """How much more one model's latency goes with a measure than another's, on the same items.

    Attributes:
        rho_a: Rho of the first model's negative latency with the measure.
        rho_b: The same of the second.
        rho_ab: Rho of the two latencies with each other.
        difference: `rho_a - rho_b`, with a bootstrap interval over items, drawn for both at once.
        z: Meng, Rosenthal and Rubin's statistic.
        p: Its two-sided p value.
        left_out: How many items have no score and are not counted.
    """

    rho_a: float
    rho_b: float
    rho_ab: float
    difference: Estimate
    z: float
    p: float
    left_out: int

    @property
    def headline(self) -> dict[str, float]:
        """Both correlations and their difference."""
        return {"rho a": self.rho_a, "rho b": self.rho_b, "rho a - rho b": self.difference.value}

    def to_json(self) -> dict[str, Any]:
        """As JSON has it; None for what is not known."""
        return plain({"headline": self.headline, **asdict(self)})


def centrality(trace: Trace) -> Float64[np.ndarray, "items"]:
    """How well an embedding points along the weights of its true class.

        e . w_y / (|e| |w_y|)

    An embedding that is zero points nowhere: its centrality is 0.
    """
    check_known(trace)
    if trace.embeddings is None or trace.head is None:
        raise InputError(
            "the trace has no embeddings and centrality is computed from them: record it with --embeddings, and of "
            "folds that are joined take it fold by fold before"
        )
    e, w = trace.embeddings.astype(np.float64), trace.head.astype(np.float64)[trace.labels]
    length = np.linalg.norm(e, axis=1) * np.linalg.norm(w, axis=1)
    return np.einsum("if,if->i", e, w) / np.where(length > 0, length, 1)


def human_agreement(counts: Int[np.ndarray, "items classes"]) -> Float64[np.ndarray, "items"]:
    """How far people agree on an image: the negative entropy of the classes they chose, in nats; 0 where all agree.

        sum_j q_j log q_j,        q_j = counts_j / sum_k counts_k,        0 log 0 = 0

    Args:
        counts: How many people chose each class.
    """
    if counts.ndim != 2:
        raise InputError(f"counts have shape {counts.shape}: give (items, classes)")
    totals = counts.sum(axis=1, keepdims=True)
    if (counts < 0).any() or not (totals > 0).all():
        item = int(np.flatnonzero((counts < 0).any(axis=1) | ~(totals[:, 0] > 0))[0])
        raise InputError(
            f"item {item} has the counts {counts[item].tolist()}: give images that at least one person has labelled, "
            "and no counts below 0"
        )
    q = counts / totals
    return (q * np.log(np.where(q > 0, q, 1))).sum(axis=1)


def prototypicality(
    trace: Trace,
    measures: Mapping[str, Float[np.ndarray, "items"]],
    *,
    latency: Float[np.ndarray, "items"],
    draws: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Prototypicality:
    """Correlate how soon items are answered with how typical they are.

        rho(-latency, measure)        t = rho sqrt((n - 2) / (1 - rho^2))

    Args:
        trace: What the latencies were read from.
        measures: By name a score for every item, higher where it is more typical; nan where an item has none.
        latency: How long each item took; infinite where it never settled.
        draws: How often items are drawn for the interval.
        level: Which share of the draws lies within it.
        seed: What they are drawn from.
    """
    _check_length("latency", latency, trace.items)
    found = {}
    for name, scores in measures.items():
        _check_length(name, scores, trace.items)
        there = _scored(scores)
        rho = bootstrap(on_ranks(-latency[there], scores[there]), int(there.sum()), draws, level, seed)
        tenths = _tenths(np.minimum(latency[there], trace.steps + 1), scores[there])
        found[name] = Correlation(rho, p_of_rho(rho.value, rho.n), int((~there).sum()), tenths)
    return Prototypicality(found)


def rho_difference(
    latency_a: Float[np.ndarray, "items"],
    latency_b: Float[np.ndarray, "items"],
    measure: Float[np.ndarray, "items"],
    *,
    draws: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> RhoDifference:
    """Does one model's latency go with a measure more than another's? For models that answered the same items.

        rho(-latency_a, measure) - rho(-latency_b, measure)

    Two correlations with one measure on the same items are not independent; the z test of Meng, Rosenthal and Rubin
    (1992) takes into account how the two latencies correlate with each other (`cascaded.analysis.ranks` has the
    equations). It is made for normal values and is used on ranks; the bootstrap interval beside it assumes neither.

    Args:
        latency_a: How long each item took the first model; infinite where it never settled.
        latency_b: The same of the second model, items in the same order.
        measure: A score for every item, higher where it is more typical; nan where an item has none.
        draws: How often items are drawn for the interval.
        level: Which share of the draws lies within it.
        seed: What they are drawn from.
    """
    _check_length("latency_a", latency_a, len(measure))
    _check_length("latency_b", latency_b, len(measure))
    there = _scored(measure)
    a, b, scores = -latency_a[there], -latency_b[there], measure[there]
    n, r_a, r_b, r_x = len(scores), spearman(a, scores), spearman(b, scores), spearman(a, b)
    z = z_of_difference(r_a, r_b, r_x, n)
    difference = bootstrap_difference(on_ranks(a, scores), on_ranks(b, scores), n, draws, level, seed)
    return RhoDifference(r_a, r_b, r_x, difference, z, math.erfc(abs(z) / math.sqrt(2)), int((~there).sum()))


def _tenths(values: Float[np.ndarray, "items"], measure: Float[np.ndarray, "items"]) -> tuple[float, ...]:
    """The mean value of each tenth of the items in the order of a measure; of fewer items, each by itself."""
    order = np.argsort(measure, kind="stable")
    return tuple(float(values[some].mean()) for some in np.array_split(order, min(10, len(order))))


def _scored(measure: Float[np.ndarray, "items"]) -> Bool[np.ndarray, "items"]:
    there = ~np.isnan(measure)
    if not there.any():
        raise InputError(f"none of {len(measure)} items has a score: give a measure that knows these images")
    return there


def _check_length(what: str, values: Float[np.ndarray, "items"], items: int) -> None:
    if values.shape != (items,):
        raise InputError(f"{what} has shape {values.shape} for {items} items: give one value an item")
