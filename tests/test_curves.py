"""The exact sweep against a loop over every threshold, curves worked by hand, and what must not matter."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from cascaded.analysis.curves import Curve, deadline_curve, speed_accuracy, threshold_curve
from cascaded.analysis.statistics import draw_items
from cascaded.errors import InputError
from cascaded.traces.trace import Trace
from tests.hand_made import curve_of, trace_of, value_of
from tests.refused import refused


@st.composite
def judged(draw):
    """Scores with many ties (0 and 1 among them), answers, and costs that may stand still."""
    time, items = draw(st.integers(1, 6)), draw(st.integers(1, 8))
    generator = np.random.default_rng(draw(st.integers(0, 2**16)))
    scores = generator.integers(0, 7, (time, items)) / 6 if draw(st.booleans()) else generator.random((time, items))
    cost = np.cumsum(generator.integers(0, 3, time)).astype(float) + 1
    return scores, generator.random((time, items)) < 0.6, cost


@st.composite
def traces(draw):
    """A trace whose steps cost operations, the last one nothing."""
    time, items, classes = draw(st.integers(2, 6)), draw(st.integers(1, 8)), draw(st.integers(2, 4))
    generator = np.random.default_rng(draw(st.integers(0, 2**16)))
    logits = generator.normal(0, 2, (time, items, classes)).astype(np.float32)
    return trace_of(logits, generator.integers(classes, size=items), operations=(3,) * (time - 1) + (0,))


def stopped_above(theta, scores):
    """The step at which each item stops, one by one."""
    T, items = scores.shape
    return [next((t for t in range(T) if scores[t, i] > theta), T - 1) for i in range(items)]


def every_threshold(scores, right, cost):
    """A point for theta 0 and for each score at which an item stops elsewhere."""
    points, last = [], None
    for theta in sorted({0.0, *scores.flatten().tolist()}):
        steps = stopped_above(theta, scores)
        if steps != last:
            mean = np.mean([cost[t] for t in steps]), np.mean([right[t, i] for i, t in enumerate(steps)])
            points.append((*mean, theta))
        last = steps
    return np.array(points).T


@given(judged())
def test_the_sweep_is_a_loop_over_every_threshold(drawn):
    curve = threshold_curve(*drawn)
    cost, accuracy, threshold = every_threshold(*drawn)
    np.testing.assert_array_equal(curve.threshold, threshold)
    np.testing.assert_allclose(curve.cost, cost, rtol=1e-12)
    np.testing.assert_allclose(curve.accuracy, accuracy, rtol=1e-12, atol=1e-12)


@given(judged())
def test_waiting_longer_never_costs_less_and_ends_with_everything(drawn):
    _, right, cost = drawn
    curve = threshold_curve(*drawn)
    assert (np.diff(curve.cost) >= 0).all()
    assert curve.cost[-1] == pytest.approx(cost[-1])
    assert curve.accuracy[-1] == pytest.approx(right[-1].mean())


@given(judged())
def test_a_threshold_of_zero_stops_at_the_first_step(drawn):
    scores, right, cost = drawn
    curve = threshold_curve(scores / 2 + 0.5, right, cost)  # no score is 0
    assert curve.threshold[0] == 0
    assert curve.cost[0] == cost[0]
    assert curve.accuracy[0] == right[0].mean()


def test_a_curve_worked_by_hand():
    # two items, three steps; item 0 has records .5 and .8, item 1 has .6 alone
    scores = np.array([[0.5, 0.6], [0.8, 0.4], [0.3, 0.5]])
    right = np.array([[False, True], [True, True], [True, False]])
    curve = threshold_curve(scores, right, np.array([1.0, 2.0, 4.0]))
    # below .5 both stop at step 1; from .5 item 0 at step 2; from .6 item 1 at step 3; from .8 item 0 as well
    assert curve.threshold.tolist() == [0, 0.5, 0.6, 0.8]
    assert curve.cost.tolist() == [1, 1.5, 3, 4]
    assert curve.accuracy.tolist() == [0.5, 1, 0.5, 0.5]
    # trapezoids: .5 * .75, 1.5 * .75, 1 * .5
    assert curve.area() == pytest.approx((0.375 + 1.125 + 0.5) / 3)
    assert curve.area(1.5, 3) == pytest.approx(0.75)
    assert curve.cost_at(0.75) == 1.25
    assert curve.accuracy_at(1.75) == pytest.approx(1 - 0.25 / 1.5 * 0.5)


def test_a_deadline_stops_all_at_one_step():
    right = np.array([[False, False], [True, False], [True, True]])
    curve = deadline_curve(right, np.array([1.0, 2.0, 3.0]))
    assert curve.accuracy.tolist() == [0, 0.5, 1]
    assert curve.threshold.tolist() == [1, 2, 3]
    assert curve.area() == 0.5


@given(judged().map(lambda drawn: threshold_curve(*drawn)), st.floats(0.5, 20), st.floats(0.5, 20))
def test_the_area_is_the_mean_of_the_accuracy_over_the_span(curve, one, other):
    first, last = min(one, other), max(one, other)
    start = max(first, curve.cost[0])
    if last < curve.cost[0]:
        assert math.isnan(curve.area(first, last))
    elif last - start > 1e-3:
        middles = start + (np.arange(4000) + 0.5) / 4000 * (last - start)
        mean = np.mean([curve.accuracy_at(cost) for cost in middles])
        # a jump where costs stand still is hit or missed by one of the 4000
        assert curve.area(first, last) == pytest.approx(mean, abs=2e-3)
    else:
        assert curve.area(first, last) == pytest.approx(curve.accuracy_at(last), abs=1e-2)


@given(judged().map(lambda drawn: threshold_curve(*drawn)), st.integers(0, 99))
def test_the_cost_of_an_accuracy_is_the_first_that_buys_it(curve, percent):
    accuracy = percent / 100 + 0.001  # no point has just that
    points = np.arange(len(curve.cost))
    way = np.linspace(0, points[-1], 500 * points[-1] + 1)  # along the curve in small steps, up jumps as well
    cost, along = np.interp(way, points, curve.cost), np.interp(way, points, curve.accuracy)
    reached = np.flatnonzero(along >= accuracy)
    if len(reached):
        assert curve.cost_at(accuracy) == pytest.approx(cost[reached[0]], abs=np.diff(cost).max(initial=0) + 1e-9)
    else:
        assert math.isnan(curve.cost_at(accuracy))


def test_costs_that_stand_still_are_a_jump():
    curve = Curve(np.array([1.0, 2.0, 2.0, 3.0]), np.array([0.0, 0.5, 1.0, 1.0]), np.array([0.0, 0.1, 0.2, 0.3]))
    assert curve.area() == (0.25 + 1) / 2
    assert curve.area(1, 2) == 0.25
    assert curve.area(2, 2) == curve.accuracy_at(2) == 1
    assert curve.cost_at(0.75) == 2
    assert curve.area(1, 5) == (0.25 + 3) / 4  # nothing changes after the end
    assert curve.area(-1, 3) == curve.area()  # before the beginning there is no answer
    assert math.isnan(curve.accuracy_at(0.5))
    still = Curve(np.ones(2), np.array([0.25, 0.75]), np.zeros(2))
    assert still.area() == 0.75


@given(traces(), st.integers(0, 2**16))
def test_the_order_of_items_changes_nothing(trace, seed):
    order = np.random.default_rng(seed).permutation(trace.items)
    stopper = np.random.default_rng(seed).random((trace.steps, trace.items))
    one = speed_accuracy(trace, stopper=stopper, draws=2).drop(columns="draws")
    other = speed_accuracy(trace.select(order), stopper=stopper[:, order], draws=2).drop(columns="draws")
    assert_frame_equal(one, other)


@given(traces())
def test_a_perfect_trace_has_area_one(trace):
    logits = trace.logits.copy()
    logits[:, np.arange(trace.items), trace.labels] = 9
    rows = speed_accuracy(Trace(logits, trace.labels), draws=2)
    assert value_of(rows, "area", rule="threshold") == pytest.approx(1)
    assert value_of(rows, "area", rule="deadline") == pytest.approx(1)
    assert value_of(rows, "cost_to_95", rule="threshold") == 1


def test_confidence_beats_the_deadline_where_it_tells_who_is_right():
    # item 0 is right and sure at once, item 1 right and sure at the last step alone
    logits = np.array([[[4.0, 0], [0.1, 0]], [[4.0, 0], [0.2, 0]], [[4.0, 0], [0, 4.0]]])
    rows = speed_accuracy(Trace(logits, np.array([0, 1])), draws=2)
    assert value_of(rows, "accuracy") == 1
    assert value_of(rows, "accuracy_chance") == 1 / logits.shape[-1]
    # threshold: (1, .5), (2, 1) once item 1 waits to the end, then item 0 waits too
    at_cost = curve_of(rows, "accuracy_at_cost", rule="threshold", unit="steps")
    assert min(cost for cost, accuracy in at_cost.items() if accuracy == 1) == 2
    assert value_of(rows, "area", rule="threshold") > value_of(rows, "area", rule="deadline")
    won = value_of(rows, "area", rule="threshold") - value_of(rows, "area", rule="deadline")
    assert value_of(rows, "area_above_deadline", rule="threshold") == pytest.approx(won)
    assert curve_of(rows, "accuracy_at_cost", rule="deadline", unit="steps")[2.5] == 0.75
    assert value_of(rows, "cost_to_95", rule="deadline") == pytest.approx(2.9)
    assert value_of(rows, "cost_to_accuracy_50", rule="deadline") == 1
    assert curve_of(rows, "accuracy_per_step") == {1: 0.5, 2: 0.5, 3: 1}
    assert "stopper" not in set(rows.rule)


def test_a_stopper_that_knows_when_to_stop_has_the_best_curve():
    generator = np.random.default_rng(0)
    labels, settles = generator.integers(2, size=200), generator.integers(10, size=200)
    answers = np.where(np.arange(10)[:, None] >= settles, labels, 1 - labels)
    trace = Trace(np.eye(2)[answers], labels)
    rows = speed_accuracy(trace, stopper=(np.arange(10)[:, None] >= settles) * 0.9, draws=2)
    assert value_of(rows, "area", rule="stopper") > 0.95
    assert value_of(rows, "area", rule="deadline") < 0.6


def test_costs_are_in_the_unit_of_their_rows():
    trace = trace_of(np.zeros((3, 1, 2)), [0], operations=(5, 5, 0), updates=(1, 2, 3))
    rows = speed_accuracy(trace, draws=2)
    for unit, ends in (("steps", (1, 3)), ("operations", (5, 10))):
        for rule in ("threshold", "deadline"):
            at_cost = curve_of(rows, "accuracy_at_cost", rule=rule, unit=unit)
            assert (min(at_cost), max(at_cost)) == ends
    assert set(speed_accuracy(Trace(trace.logits, trace.labels), draws=2).unit.dropna()) == {"steps"}


@given(traces(), st.integers(0, 2**16))
def test_draws_are_the_numbers_of_the_drawn_items(trace, seed):
    rows = speed_accuracy(trace, draws=3, seed=seed)
    for drawn, items in enumerate(draw_items(trace.items, 3, seed)):
        again = speed_accuracy(trace.select(items), draws=2)
        for metric, rule in (("area", "threshold"), ("cost_to_95", "deadline"), ("area_above_deadline", "threshold")):
            row = rows[(rows.metric == metric) & (rows.rule == rule)].iloc[0]
            expected = value_of(again, metric, rule=rule)
            assert row.draws[drawn] == pytest.approx(expected, rel=1e-5, abs=1e-6, nan_ok=True)
        points = rows[(rows.metric == "accuracy_at_cost") & rows.draws.notna()]
        at_cost = curve_of(again, "accuracy_at_cost", rule="threshold", unit="steps")
        expected = [at_cost[x] for x in points.x]
        assert [each[drawn] for each in points.draws] == pytest.approx(expected, abs=1e-6)
        assert len(points) == min(21, -(-len(at_cost) // 5))


def test_bad_input_is_refused():
    right, cost = np.ones((2, 3), dtype=bool), np.array([1.0, 2.0])
    for scores in (np.full((2, 3), 1.5), np.full((2, 3), -0.5), np.full((2, 3), math.nan)):
        refused("from 0 to 1", threshold_curve, scores, right, cost)
    with pytest.raises(InputError, match=r"scores have shape \(3, 2\), the trace has \(time, items\) \(2, 3\)"):
        threshold_curve(np.ones((3, 2)), right, cost)
    refused(r"predictions have shape \(2, 3\) and costs \(3,\)", deadline_curve, right, np.arange(3.0))
    refused("costs fall", deadline_curve, right, cost[::-1])
    curve = deadline_curve(right, cost)
    refused("begins at 2 and ends at 1", curve.area, 2, 1)
