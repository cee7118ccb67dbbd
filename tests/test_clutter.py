"""Cluttered digits: what they are made of is known, and so is how hard they are to read."""

import numpy as np
import pytest

from cascaded.data import hold_out, load
from cascaded.data.clutter import (
    CANVASES,
    canvas_of_row,
    clutter,
    digit_of_row,
    digits,
    large_digits,
    make_canvas,
    place,
    place_beside,
)
from cascaded.data.split import divided
from tests.refused import refused

SPLITS = ("train", "test")


def fits(digit, canvas):
    """Whether a digit is on a canvas somewhere: pieces add ink and take none away."""
    windows = np.lib.stride_tricks.sliding_window_view(canvas, digit.shape)
    return (digit <= windows + 1 / 255).all(axis=(-2, -1)).any()


def test_a_canvas_is_its_digit_and_more_ink_and_the_clutter_is_what_is_more():
    for split in SPLITS:
        (large, _), chosen = large_digits(split), digit_of_row(split)
        for row in range(0, len(chosen), 97):
            (canvas, share), digit = canvas_of_row(split, row), large[chosen[row]]
            assert fits(digit, canvas)
            assert share == pytest.approx(1 - digit.sum() / canvas.sum())


def test_images_run_from_bare_to_crowded():
    shares, rows = clutter("test"), np.array([700, 3, 41])
    assert np.array_equal(clutter("test", rows), shares[rows])
    refused("cluttered-digits has no split 'validation': use train or test", clutter, "validation")
    assert 0.1 < (shares == 0).mean() < 0.3
    assert 0.15 < shares.mean() < 0.3
    assert shares.max() > 0.4


def test_loaded_images_are_the_canvases_with_the_labels_of_their_digits():
    images, chosen = load("cluttered-digits", "test"), digit_of_row("test")
    assert images.indices.tolist() == list(range(len(chosen)))
    assert images.labels.tolist() == large_digits("test")[1][chosen].tolist()
    assert images.classes == tuple("0123456789")
    for row in (len(chosen) - 1, 0, 300):  # each is drawn from its row alone, in any order
        canvas, _ = canvas_of_row("test", row)
        assert np.array_equal((canvas * 255).round(), images.images[row, 0])


def test_pieces_are_of_other_digits_and_lie_on_little_of_the_digit():
    ink = np.zeros((2, 16, 16))
    ink[0, 4:12, 4:12] = 1
    bare = [make_canvas(ink, 0, np.random.default_rng(seed))[1] for seed in range(20)]
    assert set(bare) == {0.0}  # the only other digit is empty, and the digit's own pieces are not used
    ink[1] = 1
    canvas, share = zip(*(make_canvas(ink, 0, np.random.default_rng(seed)) for seed in range(40)), strict=True)
    assert max(share) > 0.5
    assert all(fits(ink[0], each) for each in canvas)
    digit = place(ink[0], (6, 6))
    there = [place_beside(digit, np.ones((8, 8)), np.random.default_rng(seed)) for seed in range(40)]
    assert all((digit * each).sum() <= 0.1 * digit.sum() for each in there)
    assert any((digit * each).sum() > 0 for each in there)


def test_digits_of_training_and_test_images_are_those_of_the_two_splits_of_digits():
    for split in SPLITS:
        own = [label for _, _, label in digits(split)]
        assert large_digits(split)[1].tolist() == own
        assert set(digit_of_row(split).tolist()) == set(range(len(own)))
        assert len(digit_of_row(split)) == CANVASES[split] * len(own)


def test_no_digit_is_both_learned_and_held_out():
    images = load("cluttered-digits")
    left, held = (set(digit_of_row("train")[part].tolist()) for part in divided(images))
    assert not left & held
    assert {len(part) for part in hold_out(images)} == {5177, 575}
