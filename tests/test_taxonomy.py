"""Taxonomic compliance against a loop over items, and the two chance levels."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascaded.analysis.taxonomy import taxonomic_compliance
from cascaded.errors import InputError
from cascaded.traces.trace import Trace
from tests.made_traces import facts


def said(answers, labels, coarse_of):
    """A trace that gives these answers, (time, items)."""
    logits = np.eye(len(coarse_of))[np.array(answers)]
    return Trace(logits, np.array(labels, dtype=np.int64), **facts(coarse_of=tuple(coarse_of)))


@st.composite
def traces(draw):
    classes = draw(st.integers(2, 6))
    time, items = draw(st.integers(1, 5)), draw(st.integers(1, 10))
    generator = np.random.default_rng(draw(st.integers(0, 2**16)))
    coarse_of = draw(st.lists(st.integers(0, 3), min_size=classes, max_size=classes))
    return said(generator.integers(classes, size=(time, items)), generator.integers(classes, size=items), coarse_of)


@given(traces())
def test_compliance_is_counted_item_by_item(trace):
    result, coarse = taxonomic_compliance(trace), trace.provenance.coarse_of
    for t in range(trace.steps):
        wrong = [
            coarse[answer] == coarse[label]
            for answer, label in zip(trace.logits[t].argmax(axis=-1).tolist(), trace.labels.tolist(), strict=True)
            if answer != label
        ]
        assert result.wrong[t] == len(wrong)
        assert result.compliance[t] == pytest.approx(np.mean(wrong) if wrong else math.nan, nan_ok=True)


@given(traces(), st.integers(0, 2**16))
def test_the_order_of_items_changes_nothing(trace, seed):
    order = np.random.default_rng(seed).permutation(trace.items)
    assert taxonomic_compliance(trace).to_json() == taxonomic_compliance(trace.select(order)).to_json()


@given(traces())
def test_chance_is_what_wrong_answers_reach_that_are_drawn_evenly(trace):
    coarse = trace.provenance.coarse_of
    shares = [
        np.mean([coarse[other] == coarse[label] for other in range(trace.classes) if other != label])
        for label in trace.labels.tolist()
    ]
    assert taxonomic_compliance(trace).chance == pytest.approx(np.mean(shares))


def test_a_case_worked_by_hand():
    # classes 0 and 1 are one kind, 2 and 3 another
    answers = [[3, 3, 0], [1, 3, 2], [0, 0, 2]]
    result = taxonomic_compliance(said(answers, [0, 0, 2], [0, 0, 1, 1]))
    # step 1: three wrong, none near; step 2: two wrong, one near; step 3: none wrong
    assert result.wrong.tolist() == [3, 2, 0]
    assert result.to_json()["compliance"] == [0, 0.5, None]
    assert result.first_step() == result.first_step(0.5) == 2
    assert math.isnan(result.first_step(0.6))
    assert result.headline["mean compliance"] == 0.25
    assert math.isnan(result.headline["compliance at last step"])
    assert result.headline["first step at 0.35"] == 2
    json.dumps(result.to_json(), allow_nan=False)


def test_chance_on_cifar100_is_one_in_twenty_or_four_in_ninety_nine():
    trace = said([np.zeros(100, dtype=int)], np.arange(100), [k // 5 for k in range(100)])
    result = taxonomic_compliance(trace)
    assert result.chance_coarse == pytest.approx(0.05)
    assert result.chance == pytest.approx(4 / 99)
    # the other four of the answer's own kind: 4 of 99 wrong answers are near
    assert result.compliance == pytest.approx([4 / 99])


def test_one_class_cannot_be_mistaken():
    result = taxonomic_compliance(said([[0]], [0], [0]))
    assert math.isnan(result.chance)
    assert math.isnan(result.headline["mean compliance"])


def test_data_with_one_level_are_refused():
    trace = said([[0, 1]], [0, 1], [0, 1])
    with pytest.raises(InputError, match="cifar10 has one level of classes, compliance needs two: record data such as"):
        taxonomic_compliance(Trace(trace.logits, trace.labels, **facts(data="cifar10")))
    with pytest.raises(InputError, match="has 2 classes and tells the coarse class of 3"):
        taxonomic_compliance(Trace(trace.logits, trace.labels, **facts(coarse_of=(0, 1, 1))))
    with pytest.raises(InputError, match="svhn"):
        taxonomic_compliance(Trace(trace.logits, trace.labels, **facts(data="svhn", in_distribution=False)))
