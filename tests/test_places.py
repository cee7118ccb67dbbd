"""Mean IoU and bits per character per step, against loops over pixels and characters."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cascaded.analysis.places import bits_per_character, mean_iou
from cascaded.errors import InputError


def slow_iou(predicted, labels, classes):
    """Of one step, with sets of pixels."""
    scores = []
    for c in range(classes):
        found = {place for place, value in enumerate(predicted.flatten().tolist()) if value == c}
        true = {place for place, value in enumerate(labels.flatten().tolist()) if value == c}
        ignored = {place for place, value in enumerate(labels.flatten().tolist()) if value == -100}
        if (found - ignored) | true:
            scores.append(len(found & true) / len((found - ignored) | true))
    return sum(scores) / len(scores)


@given(st.integers(0, 2**16), st.integers(1, 4), st.integers(2, 5))
def test_mean_iou_is_that_of_sets_of_pixels(seed, time, classes):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (2, 3, 4), generator=generator)
    labels[0, 0, :2] = -100
    predictions = torch.randint(classes, (time, 2, 3, 4), generator=generator)
    expected = [slow_iou(step, labels, classes) for step in predictions]
    assert mean_iou(predictions, labels, classes).tolist() == pytest.approx(expected)


def test_mean_iou_by_hand():
    labels = torch.tensor([[0, 0, 1, 1]])
    predictions = torch.tensor([[[0, 1, 1, 1]], [[0, 0, 1, 1]], [[1, 1, 0, 0]]])
    # class 0: 1 of 2, class 1: 2 of 3; class 2 occurs nowhere
    assert mean_iou(predictions, labels, 3).tolist() == pytest.approx([(1 / 2 + 2 / 3) / 2, 1, 0])


def test_predictions_of_other_pixels_are_refused():
    with pytest.raises(InputError, match=r"predictions have shape \(2, 3, 4\), labels \(3, 5\)"):
        mean_iou(torch.zeros(2, 3, 4).long(), torch.zeros(3, 5).long(), 2)


@given(st.integers(0, 2**16), st.integers(1, 4))
def test_bits_per_character_are_those_of_a_loop_over_characters(seed, time):
    generator = torch.Generator().manual_seed(seed)
    trace = torch.randn(time, 2, 5, 7, generator=generator, dtype=torch.float64)
    labels = torch.randint(7, (2, 5), generator=generator)
    labels[1, 3] = -100
    expected = []
    for step in trace.softmax(dim=-1):
        used = [(b, i) for b in range(2) for i in range(5) if labels[b, i] != -100]
        expected.append(-sum(math.log2(step[b, i, labels[b, i]]) for b, i in used) / len(used))
    assert bits_per_character(trace, labels).tolist() == pytest.approx(expected)


def test_a_uniform_guess_among_32_characters_is_five_bits():
    assert bits_per_character(torch.zeros(3, 1, 4, 32), torch.randint(32, (1, 4))).tolist() == pytest.approx([5] * 3)
