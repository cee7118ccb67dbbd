"""Headlines as functions of drawn items: of all items once they are the headline, of a draw that draw's headline."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascaded.analysis import persistent_noise, selection_latency, speed_accuracy, taxonomic_compliance, transient_noise
from cascaded.analysis.resampling import (
    of_persistent_noise,
    of_selection_latency,
    of_speed_accuracy,
    of_taxonomic_compliance,
    of_transient_noise,
)
from tests.made_traces import made_trace, noisy_trace

TRACE = made_trace(coarse_of=(0, 0, 1, 1))
draws = st.lists(st.integers(0, TRACE.items - 1), min_size=5, max_size=60).map(np.array)


def check(statistics, headline, numbers):
    assert statistics
    for name, statistic in statistics.items():
        assert statistic(numbers) == pytest.approx(headline[name], nan_ok=True, abs=1e-12), name


@given(draws)
def test_speed_and_accuracy_of_a_draw_are_those_of_the_trace_with_these_items(numbers):
    scores = np.random.default_rng(1).uniform(size=TRACE.logits.shape[:2])
    statistics = of_speed_accuracy(TRACE, stopper=scores)
    assert set(statistics) == {"accuracy", "area threshold", "area deadline", "area stopper"} | {
        f"{name} above deadline" for name in ("threshold", "stopper")
    }
    check(statistics, speed_accuracy(TRACE.select(numbers), stopper=scores[:, numbers]).headline, numbers)


@given(draws)
def test_latency_of_a_draw_keeps_theta(numbers):
    latency = selection_latency(TRACE)
    told = selection_latency(TRACE.select(numbers), theta=latency.theta).headline
    check(of_selection_latency(latency), told, numbers)


@given(draws)
def test_compliance_of_a_draw_is_that_of_the_trace_with_these_items(numbers):
    check(of_taxonomic_compliance(TRACE), taxonomic_compliance(TRACE.select(numbers)).headline, numbers)


def test_noise_is_drawn_image_by_image_with_all_its_trials():
    trace, images = noisy_trace(trials=3), np.array([5, 5, 0, 7])
    check(of_persistent_noise(trace), persistent_noise(trace).headline, np.arange(8))
    whole = np.concatenate([images + 8 * trial for trial in range(3)])
    check(of_persistent_noise(trace), persistent_noise(trace.select(whole)).headline, images)
    traces = [noisy_trace("transient", frames) for frames in (1, 3)]
    check(of_transient_noise(traces), transient_noise(traces).headline, np.arange(8))
    drawn = [each.select(np.concatenate([images, images + 8])) for each in traces]
    check(of_transient_noise(traces), transient_noise(drawn).headline, images)
