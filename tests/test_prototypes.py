"""How typical images are and how soon they are answered, against scipy; differences against their own false alarms."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cascaded.analysis.prototypes import centrality, human_agreement, prototypicality, rho_difference
from cascaded.errors import InputError
from cascaded.traces.trace import Trace
from tests.made_traces import facts, made_trace

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
    with pytest.raises(InputError, match=r"no embeddings.*record it with --embeddings"):
        centrality(made(3))
    with pytest.raises(InputError, match="shows other classes"):
        centrality(made(3, **facts(data="svhn", in_distribution=False)))


def test_agreement_is_the_negative_entropy_of_the_choices():
    counts = np.array([[50, 0, 0], [25, 25, 0], [10, 10, 10], [1, 3, 0]])
    expected = [0.0, -math.log(2), -math.log(3), 0.25 * math.log(0.25) + 0.75 * math.log(0.75)]
    assert human_agreement(counts) == pytest.approx(expected)


@given(st.integers(1, 6), st.integers(1, 6), seeds)
def test_agreement_is_scipys_entropy(items, classes, seed):
    counts = np.random.default_rng(seed).integers(0, 4, (items, classes))
    counts[:, 0] += 1
    assert human_agreement(counts) == pytest.approx(-stats.entropy(counts, axis=1), abs=1e-12)


@pytest.mark.parametrize("row", [[0, 0], [3, -1]])
def test_images_without_judgements_are_refused(row):
    with pytest.raises(InputError, match=r"item 1 has the counts .* at least one person"):
        human_agreement(np.array([[1, 2], row]))
    with pytest.raises(InputError, match=r"counts have shape \(2,\)"):
        human_agreement(np.array(row))


@given(seeds)
def test_correlation_and_p_value_are_scipys_of_negative_latency(seed):
    random = np.random.default_rng(seed)
    latency, scores = random.integers(1, 9, 30).astype(float), random.normal(size=30)
    latency[:3] = math.inf
    found = prototypicality(made(30), {"c-score": scores}, latency=latency, draws=20).measures["c-score"]
    expected = stats.spearmanr(-latency, scores)
    assert (found.rho.value, found.p) == pytest.approx((expected.statistic, expected.pvalue), abs=1e-12)
    assert (found.rho.n, found.left_out) == (30, 0)


def test_items_without_a_score_are_left_out_and_counted():
    latency, scores = np.arange(8.0), -np.arange(8.0)
    scores[[0, 5]] = math.nan
    found = prototypicality(made(8), {"some": scores}, latency=latency, draws=20)
    assert found.headline == {"rho some": 1.0}
    assert (found.measures["some"].rho.n, found.measures["some"].left_out, found.measures["some"].p) == (6, 2, 0.0)


def test_tenths_are_mean_latencies_from_the_least_typical_on_and_the_unsettled_take_a_step_more():
    trace = made_trace(steps=4, items=20, classes=3)
    latency = np.array([1.0, 2, 3, math.inf] * 5)
    typical = np.arange(20.0)[::-1]
    tenths = prototypicality(trace, {"order": typical}, latency=latency, draws=2).measures["order"].tenths
    assert tenths == tuple((3 + 5) / 2 if k % 2 == 0 else (1 + 2) / 2 for k in range(10))


def test_the_interval_is_that_of_sorting_every_draw_anew():
    random = np.random.default_rng(1)
    latency, scores = random.integers(0, 5, 40).astype(float), random.normal(size=40)
    found = prototypicality(made(40), {"m": scores}, latency=latency, draws=50, level=0.8, seed=3).measures["m"].rho
    draws = np.random.default_rng(3)
    rhos = [stats.spearmanr(-latency[i], scores[i]).statistic for i in (draws.integers(40, size=40) for _ in range(50))]
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(rhos, [0.1, 0.9])))


def test_results_can_be_written_as_json():
    latency = np.ones(5)  # does not vary: there is no correlation
    found = prototypicality(made(5), {"m": np.arange(5.0)}, latency=latency, draws=5)
    told = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert told["measures"]["m"]["rho"]["value"] is None
    assert told["measures"]["m"]["left_out"] == 0
    assert math.isnan(found.headline["rho m"])
    apart = rho_difference(np.arange(5.0), np.arange(5.0)[::-1], np.arange(5.0), draws=5)
    assert json.loads(json.dumps(apart.to_json(), allow_nan=False))["z"] is None  # infinite
    assert apart.headline == {"rho a": -1.0, "rho b": 1.0, "rho a - rho b": -2.0}


def test_measures_that_do_not_fit_the_trace_are_refused():
    with pytest.raises(InputError, match=r"c-score has shape \(4,\) for 5 items"):
        prototypicality(made(5), {"c-score": np.zeros(4)}, latency=np.zeros(5))
    with pytest.raises(InputError, match=r"latency has shape \(4,\) for 5 items"):
        prototypicality(made(5), {"c-score": np.zeros(5)}, latency=np.zeros(4))
    with pytest.raises(InputError, match="none of 5 items has a score"):
        prototypicality(made(5), {"c-score": np.full(5, math.nan)}, latency=np.zeros(5))


def meng_of(z_a, z_b, r_x, r2, n):
    """The test as a confidence limit would state it: the difference in units of its standard error."""
    f = min(1, (1 - r_x) / (2 * (1 - r2)))
    h = 1 + r2 / (1 - r2) * (1 - f)  # the paper's other way to write h
    return (z_a - z_b) / math.sqrt(2 * (1 - r_x) * h / (n - 3))


def test_the_difference_of_two_correlations_worked_by_hand():
    a, b = np.array([1.0, 2, 3, 4, 5, 6]), np.array([2.0, 1, 4, 3, 6, 5])
    measure = -np.array([1.0, 3, 2, 4, 6, 5])
    found = rho_difference(a, b, measure, draws=5)
    # squared rank differences: 4 with a, 10 with b, 6 between a and b; rho = 1 - 6 d / 210
    rhos = (1 - 24 / 210, 1 - 60 / 210, 1 - 36 / 210)
    assert (found.rho_a, found.rho_b, found.rho_ab) == pytest.approx(rhos)
    fisher = [0.5 * math.log((1 + r) / (1 - r)) for r in rhos[:2]]
    z = meng_of(*fisher, rhos[2], (rhos[0] ** 2 + rhos[1] ** 2) / 2, 6)
    assert found.z == pytest.approx(z)
    assert found.p == pytest.approx(2 * stats.norm.sf(z))
    assert found.difference.value == pytest.approx(36 / 210)


def test_two_models_that_agree_do_not_differ():
    a = np.array([1.0, 5.0, 2.0, math.inf, 3.0])
    found = rho_difference(a, a, np.arange(5.0), draws=20)
    assert (found.z, found.p, found.difference.value, found.difference.low, found.difference.high) == (0, 1, 0, 0, 0)


def test_swapping_the_models_turns_the_sign():
    a, b, measure = np.random.default_rng(0).normal(size=(3, 50))
    one, other = rho_difference(a, b, measure, draws=20), rho_difference(b, a, measure, draws=20)
    assert (one.z, one.p, one.difference.low) == pytest.approx((-other.z, other.p, -other.difference.high))


def drawn(random, items, r_a, r_b, r_x):
    cov = np.array([[1, r_x, r_a], [r_x, 1, r_b], [r_a, r_b, 1]])
    a, b, measure = random.multivariate_normal(np.zeros(3), cov, items).T
    return -a, -b, measure


def test_equal_correlations_are_called_different_in_about_one_case_of_twenty():
    random = np.random.default_rng(0)
    p = [rho_difference(*drawn(random, 200, 0.4, 0.4, 0.6), draws=2).p for _ in range(1500)]
    # 95 % of such counts lie within 0.039 and 0.061; ranks make the test a little bolder
    assert 0.035 < np.mean(np.array(p) < 0.05) < 0.075


def test_different_correlations_are_told_apart_by_test_and_interval():
    found = rho_difference(*drawn(np.random.default_rng(0), 2000, 0.5, 0.35, 0.3), draws=200)
    assert found.p < 0.001
    assert found.difference.low > 0
    assert found.rho_a > found.rho_b


def test_the_bootstrap_error_of_the_difference_is_that_of_new_samples():
    random = np.random.default_rng(0)
    fresh = [rho_difference(*drawn(random, 300, 0.5, 0.3, 0.4), draws=2).difference.value for _ in range(400)]
    once = rho_difference(*drawn(random, 300, 0.5, 0.3, 0.4), draws=400).difference
    assert once.sem == pytest.approx(np.std(fresh), rel=0.2)


def test_differences_that_cannot_be_tested_are_refused():
    with pytest.raises(InputError, match=r"3 items have a score and the test of a difference needs 4"):
        rho_difference(np.arange(5.0), np.arange(5.0), np.array([1, 2, 3, math.nan, math.nan]))
    with pytest.raises(InputError, match=r"latency_b has shape \(3,\) for 4 items"):
        rho_difference(np.zeros(4), np.zeros(3), np.zeros(4))
