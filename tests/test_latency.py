"""Selection latency against the paper's definition read literally, and galleries that do not depend on order."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascaded.analysis.latency import gallery, selection_latency
from cascaded.analysis.outputs import softmax
from cascaded.errors import InputError
from cascaded.traces.trace import Trace
from tests.made_traces import facts


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
    assert latency.failed == (last <= theta).mean()


def test_a_case_worked_by_hand():
    # item 0 is sure from step 2 on, item 1 always, item 2 changes its mind at the end, item 3 never is
    first = [[(0.6, 0.4), (0.9, 0.1), (0.9, 0.1), (0.5, 0.5)]]
    then = [[(0.8, 0.2), (0.9, 0.1), (0.9, 0.1), (0.6, 0.4)], [(0.8, 0.2), (0.9, 0.1), (0.1, 0.9), (0.6, 0.4)]]
    latency = selection_latency(of(first + then), theta=0.7)
    assert latency.steps.tolist() == [2, 1, 3, math.inf]
    assert latency.chosen.tolist() == [0, 0, 1, 0]
    assert latency.confidence == pytest.approx([0.8, 0.9, 0.9, 0.6])
    expected = {"theta": 0.7, "median latency": 2, "mean latency": 2, "share failed": 0.25}
    assert latency.headline == pytest.approx(expected)
    told = latency.to_json()
    assert told["items at step"] == [1, 1, 1]
    assert json.loads(json.dumps(told, allow_nan=False)) == told


def test_below_one_half_one_and_the_same_class_must_hold():
    # some class is above .3 at every step, but none is throughout: the second holds from step 2 on
    latency = selection_latency(of([[(0.6, 0.1, 0.3)], [(0.4, 0.35, 0.25)], [(0.25, 0.35, 0.4)]]), theta=0.3)
    assert latency.steps.tolist() == [2]
    assert latency.chosen.tolist() == [1]  # although the third is likelier at the end


@given(traces())
def test_what_holds_above_one_half_is_the_last_answer(trace):
    assert np.array_equal(selection_latency(trace, theta=0.5).chosen, trace.logits[-1].argmax(axis=-1))


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
    latency = selection_latency(Trace(logits, np.zeros(items, dtype=np.int64)), failing=failing)
    assert round(latency.failed * items) == round(failing * items)


def test_ties_fail_together_and_the_true_share_is_told():
    p = [[(0.9, 0.1)] * 3 + [(0.7, 0.3)] * 2]
    latency = selection_latency(of(p), failing=0.2)
    assert latency.theta == pytest.approx(0.7)
    assert latency.headline["share failed"] == 0.4
    assert selection_latency(of(p), failing=0).failed == 0


def test_those_that_are_wholly_sure_do_not_fail():
    latency = selection_latency(Trace(np.tile([100.0, 0], (2, 5, 1)), np.zeros(5, dtype=np.int64)), failing=0.4)
    assert latency.theta < 1
    assert latency.steps.tolist() == [1] * 5


def test_where_all_fail_no_latency_is_known():
    headline = selection_latency(of([[(0.6, 0.4)]]), theta=0.9).headline
    assert math.isnan(headline["median latency"])
    assert math.isnan(headline["mean latency"])
    assert headline["share failed"] == 1


def by_hand():
    """Latencies 1 1 2 3 and one failure; the second is surer than the first."""
    yes, no, surer = (0.8, 0.2), (0.6, 0.4), (0.95, 0.05)
    steps = [[yes, surer, no, no, no], [yes, surer, yes, no, no], [yes, surer, yes, yes, no]]
    return of(steps, labels=[0, 0, 1, 1, 0])


def test_a_gallery_worked_by_hand():
    trace = by_hand()
    shown = gallery(trace, selection_latency(trace, theta=0.7), each=2)
    assert shown.overall.fastest.tolist() == [1, 0]
    assert shown.overall.slowest.tolist() == [4, 3]
    assert shown.by_class[1].fastest.tolist() == [2, 3]
    assert shown.by_class[0].slowest.tolist() == [4, 0]
    told = shown.to_json()
    assert told["overall"]["slowest"][0] == {
        "item": 4,
        "index": 4,
        "label": int(trace.labels[4]),
        "latency": None,
        "failed": True,
    }
    assert told["by class"]["1"]["fastest"][0] == {"item": 2, "index": 2, "label": 1, "latency": 2, "failed": False}
    json.dumps(told, allow_nan=False)


def test_a_gallery_of_right_answers_shows_no_other():
    trace = by_hand()  # the chosen class is always the first
    shown = gallery(trace, selection_latency(trace, theta=0.7), only_right=True, per_class=False)
    assert shown.overall.fastest.tolist() == [1, 0, 4]
    assert shown.by_class == {}


@given(traces(), st.integers(1, 5), st.booleans(), st.integers(0, 2**16))
def test_a_gallery_does_not_depend_on_the_order_of_items(trace, each, only_right, seed):
    other = trace.select(np.random.default_rng(seed).permutation(trace.items))
    shown = []
    for one in (trace, other):
        told = gallery(one, selection_latency(one, theta=0.5), each=each, only_right=only_right)
        ends = {label: (end.fastest, end.slowest) for label, end in [("all", told.overall), *told.by_class.items()]}
        shown.append({label: [one.indices[places].tolist() for places in end] for label, end in ends.items()})
    assert shown[0] == shown[1]


@given(traces(), st.integers(1, 5))
def test_nothing_outside_a_gallery_is_faster_than_its_fastest(trace, each):
    latency = selection_latency(trace, theta=0.5)
    for label, end in gallery(trace, latency, each=each).by_class.items():
        of_class = sorted(latency.steps[trace.labels == label])
        assert latency.steps[end.fastest].tolist() == of_class[:each]
        assert latency.steps[end.slowest].tolist() == of_class[::-1][:each]


def test_bad_input_is_refused():
    trace = of([[(0.6, 0.4), (0.7, 0.3)]])
    for theta in (-0.1, 1.0, math.nan):
        with pytest.raises(InputError, match="give 0 or more and less than 1"):
            selection_latency(trace, theta=theta)
    for failing in (-0.1, 1.0, math.nan):
        with pytest.raises(InputError, match="failing is"):
            selection_latency(trace, failing=failing)
    latency = selection_latency(trace)
    with pytest.raises(InputError, match="0 of the fastest"):
        gallery(trace, latency, each=0)
    with pytest.raises(InputError, match="the trace has 1 items, the latency is of 2"):
        gallery(trace.select(np.array([0])), latency)
    noisy = Trace(trace.logits, trace.labels, **facts(noise="focus", protocol="persistent", trials=2))
    with pytest.raises(InputError, match="in 2 trials: take one of them"):
        gallery(noisy, latency)
    strange = Trace(trace.logits, trace.labels, **facts(data="svhn", in_distribution=False))
    with pytest.raises(InputError, match="svhn"):
        gallery(strange, latency)
    assert gallery(strange, latency, per_class=False).overall.fastest.tolist() == [1, 0]
