"""Held-out and smaller sets: balanced, drawn from a seed, and nothing in both."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cascaded.data import hold_out, limit
from cascaded.data.split import fold
from cascaded.errors import InputError
from tests.pictures import labeled

some_labels = st.lists(st.integers(0, 4), min_size=20, max_size=80)
seeds = st.integers(0, 2**31)


def counts(images):
    return images.labels.bincount(minlength=5)


@given(some_labels, st.floats(0.1, 0.9), seeds)
def test_both_parts_cover_everything_once_and_in_order(labels, share, seed):
    images = labeled(labels)
    train, held = hold_out(images, share, seed)
    for part in (train, held):
        assert part.indices.tolist() == sorted(part.indices.tolist())
        assert part.labels.tolist() == [labels[index] for index in part.indices.tolist()]
        assert part.images.flatten().tolist() == part.indices.tolist()
    assert sorted([*train.indices.tolist(), *held.indices.tolist()]) == list(range(len(labels)))


@given(some_labels, st.floats(0.1, 0.9), seeds)
def test_the_same_share_of_every_class_is_held_out(labels, share, seed):
    images = labeled(labels)
    _, held = hold_out(images, share, seed)
    assert ((counts(held) - share * counts(images)).abs() <= 0.5 + 1e-6).all()


@given(some_labels, seeds)
def test_the_same_seed_holds_out_the_same(labels, seed):
    first, second = (hold_out(labeled(labels), 0.3, seed)[1].indices.tolist() for _ in range(2))
    assert first == second


def test_another_seed_holds_out_others():
    images = labeled([0, 1] * 50)
    assert hold_out(images, seed=0)[1].indices.tolist() != hold_out(images, seed=1)[1].indices.tolist()


def test_ten_percent_of_cifar10_are_five_hundred_a_class():
    labels = torch.arange(10).repeat(5000)[torch.randperm(50_000, generator=torch.Generator().manual_seed(0))]
    train, held = hold_out(labeled(labels))
    assert train.labels.bincount().tolist() == [4500] * 10
    assert held.labels.bincount().tolist() == [500] * 10


@given(some_labels, seeds, st.data())
def test_smaller_sets_are_nested(labels, seed, data):
    images = labeled(labels)
    large = data.draw(st.integers(1, len(labels)))
    small = data.draw(st.integers(1, large))
    more, fewer = (limit(images, items, seed).indices.tolist() for items in (large, small))
    assert (len(more), len(fewer)) == (large, small)
    assert set(fewer) <= set(more)
    assert more == sorted(more)


@given(st.integers(2, 5), st.integers(4, 10), seeds, st.data())
def test_classes_of_a_smaller_set_differ_by_at_most_one(classes, each, seed, data):
    images = labeled(list(range(classes)) * each)
    some = limit(images, data.draw(st.integers(1, classes * each)), seed)
    there = some.labels.bincount(minlength=classes)
    assert there.max() - there.min() <= 1


def test_a_smaller_set_depends_on_its_seed():
    images = labeled([0, 1] * 50)
    assert limit(images, 20, seed=0).indices.tolist() != limit(images, 20, seed=1).indices.tolist()
    assert limit(images, 20, seed=1).indices.tolist() == limit(images, 20, seed=1).indices.tolist()


def test_images_without_labels_can_be_divided_too():
    images = labeled([-1] * 10, classes=())
    train, held = hold_out(images, 0.2)
    assert (len(train), len(held)) == (8, 2)
    assert len(limit(images, 3)) == 3


def test_impossible_parts_are_refused():
    images = labeled([0, 1, 2])
    for share in (0, 1, -0.5, float("nan")):
        with pytest.raises(InputError, match="give a fraction above 0"):
            hold_out(images, share)
    with pytest.raises(InputError, match="of 3 images in 3 classes: it leaves 0 for validation and 3 for training"):
        hold_out(images, 0.1)
    with pytest.raises(InputError, match="of 1 image in 1 class: it leaves 0 for validation and 1 for training"):
        hold_out(labeled([0]), 0.1)
    for items in (0, 4):
        with pytest.raises(InputError, match=f"the number of images is {items}, there are 3"):
            limit(images, items)


@given(some_labels, st.integers(2, 4))
def test_folds_do_not_overlap_hold_everything_and_have_the_same_share_of_every_class(labels, folds):
    labels = torch.tensor(labels)
    parts = [fold(labels, number, folds) for number in range(1, folds + 1)]
    for left, held in parts:
        assert sorted([*left.tolist(), *held.tolist()]) == list(range(len(labels)))
        for each in labels.unique():
            share = (labels == each).sum() / folds
            assert abs((labels[held] == each).sum() - share) < 1
    assert sorted(torch.cat([held for _, held in parts]).tolist()) == list(range(len(labels)))


def test_folds_that_are_none_are_refused():
    with pytest.raises(InputError, match="the fold is 3 of 2: give at least 2 folds"):
        fold(torch.zeros(9, dtype=torch.int64), 3, 2)
    with pytest.raises(InputError, match="there are 9 folds, the largest class has 2 images: use fewer folds"):
        fold(torch.zeros(2, dtype=torch.int64), 9, 9)
