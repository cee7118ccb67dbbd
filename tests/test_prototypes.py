"""Measures of typicality, and their rank correlation with latency, against scipy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cascaded.analysis.latency import selection_latency
from cascaded.analysis.prototypes import (
    THETAS,
    UNSETTLED,
    centrality,
    human_agreement,
    prototypicality,
    threshold_sweep,
)
from cascaded.errors import InputError
from cascaded.traces.trace import Trace
from tests.hand_made import curve_of, trace_of, value_of
from tests.refused import refused

seeds = st.integers(0, 2**16)


def made(items, **more):
    return Trace(np.zeros((2, items, 3)), np.arange(items) % 3, **more)


def test_centrality_is_the_cosine_with_the_true_classes_weights():
    head = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.0]])
    embeddings = np.array([[3.0, 4.0], [3.0, 4.0], [3.0, 4.0], [0.0, 0.0]])
    trace = made(4, embeddings=embeddings, head=head)
    assert centrality(trace) == pytest.approx([0.6, 0.8, -0.6, 0.0])  # the last points nowhere


def test_centrality_of_half_precision_is_computed_in_double():
    embeddings = np.full((3, 500), 200, dtype=np.float16)  # the sum of squares is above what half precision holds
    assert centrality(made(3, embeddings=embeddings, head=np.ones((3, 500)))) == pytest.approx(np.ones(3))


def test_centrality_needs_embeddings_and_known_classes():
    refused(r"no embeddings.*record it with --embeddings", centrality, made(3))
    with pytest.raises(InputError, match="svhn None has other classes"):
        centrality(trace_of(np.zeros((2, 3, 3)), [0, 1, 2], data="svhn", in_distribution=False))


@given(st.integers(1, 6), st.integers(1, 6), seeds)
def test_agreement_is_scipys_entropy(items, classes, seed):
    counts = np.random.default_rng(seed).integers(0, 4, (items, classes))
    counts[:, 0] += 1
    assert human_agreement(counts) == pytest.approx(-stats.entropy(counts, axis=1), abs=1e-12)


@pytest.mark.parametrize("row", [[0, 0], [3, -1]])
def test_images_without_judgements_are_refused(row):
    refused(r"item 1 has the counts .* at least one person", human_agreement, np.array([[1, 2], row]))
    refused(r"counts have shape \(2,\)", human_agreement, np.array(row))


@given(seeds)
def test_rho_is_scipys_of_negative_latency(seed):
    random = np.random.default_rng(seed)
    latency, scores = random.integers(1, 9, 30).astype(float), random.normal(size=30)
    latency[:3] = math.inf
    rows = prototypicality(made(30), {"c-score": scores}, latency=latency, draws=2)
    expected = stats.spearmanr(-latency, scores)
    assert value_of(rows, "rho", measure="c-score") == pytest.approx(expected.statistic)
    assert value_of(rows, "rho_p", measure="c-score") == pytest.approx(expected.pvalue)


def test_items_without_a_score_are_left_out():
    latency, scores = np.arange(8.0), -np.arange(8.0)
    scores[[0, 5]] = math.nan
    rows = prototypicality(made(8), {"some": scores}, latency=latency, draws=20)
    assert value_of(rows, "rho", measure="some") == 1
    assert len(curve_of(rows, "latency_by_decile", measure="some")) == 6


def test_deciles_are_mean_latencies_from_the_least_typical_on_and_the_unsettled_take_a_step_more():
    trace = Trace(np.zeros((4, 20, 3)), np.arange(20) % 3)
    latency = np.array([1.0, 2, 3, math.inf] * 5)
    rows = prototypicality(trace, {"order": np.arange(20.0)[::-1]}, latency=latency, draws=2)
    expected = {k + 1: (3 + 5) / 2 if k % 2 == 0 else (1 + 2) / 2 for k in range(10)}
    assert curve_of(rows, "latency_by_decile") == expected


def test_the_draws_are_those_of_sorting_every_draw_anew():
    random = np.random.default_rng(1)
    latency, scores = random.integers(0, 5, 40).astype(float), random.normal(size=40)
    rows = prototypicality(made(40), {"m": scores}, latency=latency, draws=50, seed=3)
    draws = np.random.default_rng(3)
    rhos = [stats.spearmanr(-latency[i], scores[i]).statistic for i in (draws.integers(40, size=40) for _ in range(50))]
    assert rows[rows.metric == "rho"].draws.iloc[0] == pytest.approx(rhos, abs=1e-6)


def test_a_sweep_has_rho_at_every_threshold_and_failing_fraction():
    random = np.random.default_rng(0)
    trace, scores = Trace(2 * random.normal(size=(6, 60, 3)), np.zeros(60, dtype=np.int64)), random.normal(size=60)
    rows = threshold_sweep(trace, {"m": scores}, draws=2)
    for metric, option, choices in (
        ("rho_by_theta", "theta", THETAS),
        ("rho_by_unsettled", "unsettled_fraction", UNSETTLED),
    ):
        latency = {x: selection_latency(trace, **{option: x}).steps for x in choices}
        expected = {x: stats.spearmanr(-steps, scores).statistic for x, steps in latency.items()}
        assert curve_of(rows, metric, measure="m") == pytest.approx(expected)
    assert {0.83} < set(THETAS)
    assert {0.1} < set(UNSETTLED)
    assert rows.draws.map(len).tolist() == [2] * len(rows)


def test_latencies_that_do_not_vary_have_no_correlation():
    rows = prototypicality(made(5), {"m": np.arange(5.0)}, latency=np.ones(5), draws=5)
    assert math.isnan(value_of(rows, "rho", measure="m"))
    assert prototypicality(made(5), {}, latency=np.ones(5)).empty


def test_measures_that_do_not_fit_the_trace_are_refused():
    with pytest.raises(InputError, match=r"c-score has shape \(4,\) for 5 items"):
        prototypicality(made(5), {"c-score": np.zeros(4)}, latency=np.zeros(5))
    with pytest.raises(InputError, match=r"latency has shape \(4,\) for 5 items"):
        prototypicality(made(5), {"c-score": np.zeros(5)}, latency=np.zeros(4))
    with pytest.raises(InputError, match="none of 5 items has a score"):
        prototypicality(made(5), {"c-score": np.full(5, math.nan)}, latency=np.zeros(5))
