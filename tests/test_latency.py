"""Selection latency against the paper's definition read literally, and orders that do not depend on the trace's."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascaded.analysis.latency import by_latency, extremes, selection_latency, selection_latency_rows
from cascaded.analysis.outputs import softmax
from cascaded.analysis.statistics import draw_items
from cascaded.errors import InputError
from cascaded.traces.trace import Trace
from tests.hand_made import curve_of, trace_of, value_of


@st.composite
def traces(draw):
    """A trace with ties: logits are whole numbers."""
    time, items, classes = draw(st.integers(1, 6)), draw(st.integers(1, 12)), draw(st.integers(2, 4))
    generator = np.random.default_rng(draw(st.integers(0, 2**16)))
    logits = generator.integers(-1, draw(st.sampled_from([1, 3, 6])), (time, items, classes)).astype(np.float32)
    return Trace(logits, generator.integers(classes, size=items), generator.permutation(100)[:items])


def of(probabilities, labels=None):
    """A trace that gives these probabilities, (time, items, classes)."""
    p = np.array(probabilities, dtype=float)
    return Trace(np.log(p), np.zeros(p.shape[1], dtype=np.int64) if labels is None else np.array(labels))


def literal(trace, theta):
    """min { t | exists j: y[t',j] > theta for all t' >= t }, by trying."""
    y, found = softmax(trace.logits), []
    for i in range(trace.items):
        held = [
            t + 1
            for t in range(trace.steps)
            if any(all(y[later, i, j] > theta for later in range(t, trace.steps)) for j in range(trace.classes))
        ]
        found.append(min(held, default=math.inf))
    return found


@given(traces(), st.floats(0, 1, exclude_max=True))
def test_latency_is_the_papers_definition(trace, theta):
    latency = selection_latency(trace, theta=theta)
    assert latency.steps.tolist() == literal(trace, theta)
    last = softmax(trace.logits[-1]).max(axis=-1)
    assert latency.unsettled_fraction == (last <= theta).mean()


def test_a_case_worked_by_hand():
    # item 0 is sure from step 2 on, item 1 always, item 2 changes its mind at the end, item 3 never is
    first = [[(0.6, 0.4), (0.9, 0.1), (0.9, 0.1), (0.5, 0.5)]]
    then = [[(0.8, 0.2), (0.9, 0.1), (0.9, 0.1), (0.6, 0.4)], [(0.8, 0.2), (0.9, 0.1), (0.1, 0.9), (0.6, 0.4)]]
    latency = selection_latency(of(first + then), theta=0.7)
    assert latency.steps.tolist() == [2, 1, 3, math.inf]
    assert latency.selected.tolist() == [0, 0, 1, 0]
    assert latency.confidence == pytest.approx([0.8, 0.9, 0.9, 0.6])
    rows = selection_latency_rows(latency)
    expected = {"theta": 0.7, "latency_median": 2, "latency": 2, "unsettled_fraction": 0.25}
    assert {metric: value_of(rows, metric) for metric in expected} == pytest.approx(expected)
    assert curve_of(rows, "settled") == {1: 0.25, 2: 0.5, 3: 0.75}


def test_below_one_half_one_and_the_same_class_must_hold():
    # some class is above .3 at every step, but none is throughout: the second holds from step 2 on
    latency = selection_latency(of([[(0.6, 0.1, 0.3)], [(0.4, 0.35, 0.25)], [(0.25, 0.35, 0.4)]]), theta=0.3)
    assert latency.steps.tolist() == [2]
    assert latency.selected.tolist() == [1]  # although the third is likelier at the end


@given(traces())
def test_what_holds_above_one_half_is_the_last_answer(trace):
    assert np.array_equal(selection_latency(trace, theta=0.5).selected, trace.logits[-1].argmax(axis=-1))


@given(traces(), st.floats(0, 0.8), st.floats(0, 0.19))
def test_a_higher_theta_takes_no_less_time(trace, theta, more):
    assert (selection_latency(trace, theta=theta + more).steps >= selection_latency(trace, theta=theta).steps).all()


@given(traces(), st.integers(0, 2**16))
def test_the_order_of_items_changes_nothing(trace, seed):
    order = np.random.default_rng(seed).permutation(trace.items)
    one, other = selection_latency(trace), selection_latency(trace.select(order))
    assert one.theta == other.theta
    assert np.array_equal(one.steps[order], other.steps)


@given(st.integers(1, 40), st.floats(0, 1, exclude_max=True), st.integers(0, 2**16))
def test_theta_is_chosen_so_that_the_share_asked_for_fails(items, failing, seed):
    logits = np.random.default_rng(seed).normal(size=(3, items, 4))  # no ties
    latency = selection_latency(Trace(logits, np.zeros(items, dtype=np.int64)), unsettled_fraction=failing)
    assert round(latency.unsettled_fraction * items) == round(failing * items)


def test_ties_fail_together_and_the_true_share_is_told():
    p = [[(0.9, 0.1)] * 3 + [(0.7, 0.3)] * 2]
    latency = selection_latency(of(p), unsettled_fraction=0.2)
    assert latency.theta == pytest.approx(0.7)
    assert value_of(selection_latency_rows(latency), "unsettled_fraction") == 0.4
    assert selection_latency(of(p), unsettled_fraction=0).unsettled_fraction == 0


def test_those_that_are_wholly_sure_do_not_fail():
    latency = selection_latency(
        Trace(np.tile([100.0, 0], (2, 5, 1)), np.zeros(5, dtype=np.int64)), unsettled_fraction=0.4
    )
    assert latency.theta < 1
    assert latency.steps.tolist() == [1] * 5


def test_where_all_fail_no_latency_is_known():
    rows = selection_latency_rows(selection_latency(of([[(0.6, 0.4)]]), theta=0.9))
    assert math.isnan(value_of(rows, "latency_median"))
    assert math.isnan(value_of(rows, "latency"))
    assert value_of(rows, "unsettled_fraction") == 1


@given(traces(), st.integers(0, 2**16))
def test_draws_are_the_numbers_of_the_drawn_items(trace, seed):
    latency = selection_latency(trace, theta=0.5)
    rows = selection_latency_rows(latency, draws=3, seed=seed)
    for drawn, items in enumerate(draw_items(trace.items, 3, seed)):
        again = selection_latency_rows(selection_latency(trace.select(items), theta=0.5), draws=2)
        for metric in ("latency", "latency_median", "unsettled_fraction"):
            draws = rows[rows.metric == metric].iloc[0].draws
            assert draws[drawn] == pytest.approx(value_of(again, metric), nan_ok=True)


def by_hand():
    """Latencies 1 1 2 3 and one failure; the second is surer than the first."""
    yes, no, surer = (0.8, 0.2), (0.6, 0.4), (0.95, 0.05)
    steps = [[yes, surer, no, no, no], [yes, surer, yes, no, no], [yes, surer, yes, yes, no]]
    return of(steps, labels=[0, 0, 1, 1, 0])


def of_class(trace, order, label):
    return order[trace.labels[order] == label].tolist()


def test_an_order_worked_by_hand():
    trace = by_hand()
    order = by_latency(trace, selection_latency(trace, theta=0.7))
    assert order[:2].tolist() == [1, 0]
    assert order[::-1][:2].tolist() == [4, 3]
    assert of_class(trace, order, 1) == [2, 3]
    assert of_class(trace, order, 0)[::-1][:2] == [4, 0]


def test_a_gallery_has_the_highest_finite_latencies_and_those_that_never_settle_apart():
    trace = by_hand()
    latency = selection_latency(trace, theta=0.7)
    order = by_latency(trace, latency)
    rows = {name: items.tolist() for name, items in extremes(latency, order, 3).items()}
    assert rows == {"fastest": [1, 0, 2], "slowest": [3, 2, 0], "never": [4]}
    of_class_0 = extremes(latency, order[trace.labels[order] == 0], 1)
    assert [items.tolist() for items in of_class_0.values()] == [[1], [0], [4]]


def test_an_order_of_correct_items_has_no_other():
    trace = by_hand()  # the selected class is always the first
    assert by_latency(trace, selection_latency(trace, theta=0.7), only_correct=True).tolist() == [1, 0, 4]


@given(traces(), st.booleans(), st.integers(0, 2**16))
def test_the_order_by_latency_does_not_depend_on_that_of_the_trace(trace, only_correct, seed):
    other = trace.select(np.random.default_rng(seed).permutation(trace.items))
    found = [
        one.indices[by_latency(one, selection_latency(one, theta=0.5), only_correct)].tolist() for one in (trace, other)
    ]
    assert found[0] == found[1]


@given(traces())
def test_latencies_never_fall_along_the_order(trace):
    latency = selection_latency(trace, theta=0.5)
    order = by_latency(trace, latency)
    assert latency.steps[order].tolist() == sorted(latency.steps)
    assert sorted(order.tolist()) == list(range(trace.items))


def test_bad_input_is_refused():
    trace = of([[(0.6, 0.4), (0.7, 0.3)]])
    for theta in (-0.1, 1.0, math.nan):
        with pytest.raises(InputError, match="give 0 or more and less than 1"):
            selection_latency(trace, theta=theta)
    for failing in (-0.1, 1.0, math.nan):
        with pytest.raises(InputError, match="unsettled_fraction is"):
            selection_latency(trace, unsettled_fraction=failing)
    latency = selection_latency(trace)
    with pytest.raises(InputError, match="the trace has 1 items, the latency is of 2"):
        by_latency(trace.select(np.array([0])), latency)
    noisy = trace_of(trace.logits, trace.labels, noise="focus", protocol="persistent", trials=2)
    with pytest.raises(InputError, match="2 trials per image: take one of them"):
        by_latency(noisy, latency)
    strange = trace_of(trace.logits, trace.labels, data="svhn", in_distribution=False)
    with pytest.raises(InputError, match="svhn"):
        by_latency(strange, latency, only_correct=True)
    assert by_latency(strange, latency).tolist() == [1, 0]
