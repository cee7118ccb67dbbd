"""Taxonomic compliance against a loop over items, and the chance level."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascaded.analysis.statistics import draw_items
from cascaded.analysis.taxonomy import taxonomic_compliance
from cascaded.errors import InputError
from tests.hand_made import curve_of, trace_of, value_of
from tests.refused import refused


def predicted(answers, labels, coarse_of):
    """A trace with these predictions, (time, items)."""
    logits = np.eye(len(coarse_of))[np.array(answers)]
    return trace_of(logits, np.array(labels, dtype=np.int64), coarse_of=tuple(coarse_of))


@st.composite
def traces(draw):
    classes = draw(st.integers(2, 6))
    time, items = draw(st.integers(1, 5)), draw(st.integers(1, 10))
    generator = np.random.default_rng(draw(st.integers(0, 2**16)))
    coarse_of = draw(st.lists(st.integers(0, 3), min_size=classes, max_size=classes))
    return predicted(
        generator.integers(classes, size=(time, items)), generator.integers(classes, size=items), coarse_of
    )


@given(traces())
def test_compliance_is_counted_item_by_item(trace):
    compliance = curve_of(taxonomic_compliance(trace, draws=2), "compliance")
    coarse = trace.provenance.coarse_of
    for t in range(trace.steps):
        wrong = [
            coarse[answer] == coarse[label]
            for answer, label in zip(trace.logits[t].argmax(axis=-1).tolist(), trace.labels.tolist(), strict=True)
            if answer != label
        ]
        assert compliance[t + 1] == pytest.approx(np.mean(wrong) if wrong else math.nan, nan_ok=True)


@given(traces())
def test_chance_is_what_classes_drawn_evenly_reach(trace):
    coarse = trace.provenance.coarse_of
    shares = [np.mean([each == coarse[label] for each in coarse]) for label in trace.labels.tolist()]
    assert value_of(taxonomic_compliance(trace, draws=2), "compliance_chance") == pytest.approx(np.mean(shares))


def test_a_case_worked_by_hand():
    # classes 0 and 1 are one kind, 2 and 3 another
    answers = [[3, 3, 0], [1, 3, 2], [0, 0, 2]]
    rows = taxonomic_compliance(predicted(answers, [0, 0, 2], [0, 0, 1, 1]), draws=2)
    # step 1: three wrong, none near; step 2: two wrong, one near; step 3: none wrong
    assert curve_of(rows, "compliance") == pytest.approx({1: 0, 2: 0.5, 3: math.nan}, nan_ok=True)
    assert value_of(rows, "compliance_mean") == 0.25
    assert value_of(rows, "compliance_above_chance") == pytest.approx(0.25 - 1 / 2)
    assert value_of(rows, "first_step_at_0.35") == 2


def test_chance_on_cifar100_is_the_papers():
    trace = predicted([np.zeros(100, dtype=int)], np.arange(100), [k // 5 for k in range(100)])
    rows = taxonomic_compliance(trace, draws=2)
    assert value_of(rows, "compliance_chance") == pytest.approx(0.05)
    # the other four of the answer's own kind: 4 of 99 wrong answers are near
    assert value_of(rows, "compliance_mean") == pytest.approx(4 / 99)


def test_one_class_cannot_be_mistaken():
    rows = taxonomic_compliance(predicted([[0]], [0], [0]), draws=2)
    assert math.isnan(value_of(rows, "compliance_mean"))
    assert math.isnan(value_of(rows, "first_step_at_0.35"))


@given(traces(), st.integers(0, 2**16))
def test_draws_are_the_numbers_of_the_drawn_items(trace, seed):
    rows = taxonomic_compliance(trace, draws=3, seed=seed)
    for drawn, items in enumerate(draw_items(trace.items, 3, seed)):
        again = taxonomic_compliance(trace.select(items), draws=2)
        for metric in ("compliance_mean", "compliance_above_chance", "first_step_at_0.35"):
            draws = rows[rows.metric == metric].iloc[0].draws
            assert draws[drawn] == pytest.approx(value_of(again, metric), nan_ok=True, abs=1e-6)


def test_data_with_one_level_are_refused():
    trace = predicted([[0, 1]], [0, 1], [0, 1])
    with pytest.raises(InputError, match="cifar10 has one level of classes, compliance needs two: record data such as"):
        taxonomic_compliance(trace_of(trace.logits, trace.labels, data="cifar10"))
    with pytest.raises(InputError, match="has 2 classes and coarse_of has 3"):
        taxonomic_compliance(trace_of(trace.logits, trace.labels, coarse_of=(0, 1, 1)))
    refused("svhn", taxonomic_compliance, trace_of(trace.logits, trace.labels, data="svhn", in_distribution=False))
