"""Prototypicality: rank correlations of latency with measures of how typical an image is.

Centrality is computed from the trace; C-scores and human judgements come with the data (`cascaded.data.human`). All
measures are higher where an image is more typical and are correlated with negative latency: a positive rho means that
typical images are classified sooner.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from jaxtyping import Float, Float64, Int

from cascaded.analysis.latency import selection_latency
from cascaded.analysis.outputs import check_in_distribution
from cascaded.analysis.ranks import on_ranks, p_of_rho
from cascaded.analysis.rows import DRAWS, Rows, Statistics
from cascaded.analysis.statistics import Statistic
from cascaded.errors import InputError
from cascaded.traces.trace import Trace

THETAS = (0.5, 0.7, 0.83, 0.9, 0.95)
"""Thresholds of `threshold_sweep`; the paper has .83."""
UNSETTLED = (0.02, 0.05, 0.1, 0.2, 0.4)
"""Fractions of items that never reach the threshold; the paper has .1."""


def centrality(trace: Trace) -> Float64[np.ndarray, "items"]:
    """How well an embedding points along the weights of its true class.

        e . w_y / (|e| |w_y|)

    An embedding that is zero points nowhere: its centrality is 0.
    """
    check_in_distribution(trace)
    if trace.embeddings is None or trace.head is None:
        raise InputError("the trace has no embeddings: record it with --embeddings, and take folds one by one")
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
        found = f"item {item} has the counts {counts[item].tolist()}"
        raise InputError(f"{found}: give at least one person per image, and no counts below 0")
    q = counts / totals
    return (q * np.log(np.where(q > 0, q, 1))).sum(axis=1)


def prototypicality(
    trace: Trace,
    measures: Mapping[str, Float[np.ndarray, "items"]],
    *,
    latency: Float[np.ndarray, "items"],
    draws: int = DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """Correlate latency with how typical items are: Spearman's rho of negative latency with each measure, and its p.

    `latency_by_decile` is the mean latency of each tenth of the items, from the least typical to the most typical ones;
    an item that never settles counts as one step more than there are.

    Args:
        trace: The recording that the latencies are of.
        measures: By name a score for every item, higher where it is more typical; nan where an item has none. Items
            without a score are left out.
        latency: Of each item; infinite where it never settles.
        draws: How often items are drawn for intervals.
        seed: Seed of the draws.
    """
    for name, values in {"latency": latency, **measures}.items():
        if values.shape != (trace.items,):
            raise InputError(f"{name} has shape {values.shape} for {trace.items} items: give one value per item")
        if np.isnan(values).all():
            raise InputError(f"none of {trace.items} items has a score: give a measure that has scores of these images")
    tables = []
    for name, scores in measures.items():
        there = ~np.isnan(scores)
        rows = Rows(int(there.sum()), draws, seed)
        rows.numbers(_with_p(on_ranks(-latency[there], scores[there])), measure=name)
        deciles = _deciles(np.minimum(latency[there], trace.steps + 1), scores[there])
        rows.curve("latency_by_decile", np.arange(1, len(deciles) + 1), deciles, measure=name)
        tables.append(rows.table())
    return pd.concat(tables, ignore_index=True) if tables else Rows(1).table()


def _with_p(rho: Statistic) -> Statistics:
    """Rho and its p value: also of every draw, so that p has an interval."""

    def numbers(items: Int[np.ndarray, "items"]) -> dict[str, float]:
        value = rho(items)
        return {"rho": value, "rho_p": p_of_rho(value, len(items))}

    return numbers


def threshold_sweep(
    trace: Trace, measures: Mapping[str, Float[np.ndarray, "items"]], *, draws: int = DRAWS, seed: int = 0
) -> pd.DataFrame:
    """Spearman's rho at other thresholds of selection latency: does the choice of the threshold matter?

    `rho_by_theta` is rho at fixed thresholds, `rho_by_unsettled` at those that given fractions of items never reach.
    Arguments are those of `prototypicality`.
    """
    latencies = {("rho_by_theta", x): selection_latency(trace, theta=x) for x in THETAS}
    latencies |= {("rho_by_unsettled", x): selection_latency(trace, unsettled_fraction=x) for x in UNSETTLED}
    tables = []
    for (metric, x), latency in latencies.items():
        found = prototypicality(trace, measures, latency=latency.steps, draws=draws, seed=seed)
        tables.append(found[found.metric == "rho"].assign(metric=metric, x=x))
    return pd.concat(tables, ignore_index=True)


def _deciles(values: Float[np.ndarray, "items"], measure: Float[np.ndarray, "items"]) -> list[float]:
    """The mean value of each tenth of the items in the order of a measure; of fewer than ten items, each value."""
    order = np.argsort(measure, kind="stable")
    return [float(values[some].mean()) for some in np.array_split(order, min(10, len(order)))]
