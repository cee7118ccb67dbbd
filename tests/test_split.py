"""Images as tensors; held-out and smaller sets: balanced, drawn from a seed, and nothing in both."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cascaded.data import Images, hold_out, limit
from cascaded.data.split import fold
from tests.pictures import labeled
from tests.refused import refused

some_labels = st.lists(st.integers(0, 4), min_size=20, max_size=80)
seeds = st.integers(0, 2**31)


@given(some_labels, st.floats(0.1, 0.9), seeds)
def test_both_parts_cover_everything_once_in_order_and_with_the_same_share_of_every_class(labels, share, seed):
    train, held = hold_out(labeled(labels), share, seed)
    assert held.indices.tolist() == hold_out(labeled(labels), share, seed)[1].indices.tolist()
    there = torch.tensor(labels).bincount()
    assert ((held.labels.bincount(minlength=len(there)) - share * there).abs() <= 0.5 + 1e-6).all()
    for part in (train, held):
        assert part.indices.tolist() == sorted(part.indices.tolist())
        assert part.labels.tolist() == [labels[index] for index in part.indices.tolist()]
        assert part.images.flatten().tolist() == part.indices.tolist()
    assert sorted([*train.indices.tolist(), *held.indices.tolist()]) == list(range(len(labels)))


def test_ten_percent_of_cifar10_are_five_hundred_a_class():
    labels = torch.arange(10).repeat(5000)[torch.randperm(50_000, generator=torch.Generator().manual_seed(0))]
    train, held = hold_out(labeled(labels))
    assert train.labels.bincount().tolist() == [4500] * 10
    assert held.labels.bincount().tolist() == [500] * 10


def test_other_seeds_give_other_images():
    images = labeled([0, 1] * 50)
    for part in (lambda seed: hold_out(images, seed=seed)[1], lambda seed: limit(images, 20, seed)):
        assert part(0).indices.tolist() != part(1).indices.tolist()


@given(st.one_of(some_labels, st.integers(4, 10).map(lambda each: list(range(5)) * each)), seeds, st.data())
def test_smaller_sets_are_nested_and_balanced(labels, seed, data):
    images = labeled(labels)
    large = data.draw(st.integers(1, len(labels)))
    small = data.draw(st.integers(1, large))
    more, fewer = (limit(images, items, seed).indices.tolist() for items in (large, small))
    assert (len(more), len(fewer)) == (large, small)
    assert set(fewer) <= set(more)
    assert more == sorted(more)
    if len(set(torch.tensor(labels).bincount().tolist())) == 1:
        there = limit(images, small, seed).labels.bincount(minlength=max(labels) + 1)
        assert there.max() - there.min() <= 1


def test_images_without_labels_can_be_divided_too():
    images = labeled([-1] * 10, classes=())
    train, held = hold_out(images, 0.2)
    assert (len(train), len(held)) == (8, 2)
    assert len(limit(images, 3)) == 3


def test_impossible_parts_are_refused():
    images = labeled([0, 1, 2])
    for share in (0, 1, -0.5, float("nan")):
        refused("give a fraction above 0", hold_out, images, share)
    refused("of 3 images in 3 classes: it leaves 0 for validation and 3 for training", hold_out, images, 0.1)
    refused("of 1 image in 1 class: it leaves 0 for validation and 1 for training", hold_out, labeled([0]), 0.1)
    refused("so add images", hold_out, images, 0.1)
    few = labeled([0, 0, 0, 1])
    refused(r"so give one that leaves some for both, e\.g\. 0\.33", hold_out, few, 0.1)
    assert len(hold_out(few, 0.33)[1]) == 1
    for items in (0, 4):
        refused(f"the number of images is {items}, there are 3", limit, images, items)
    none = torch.zeros(2, dtype=torch.int64)
    refused("the fold is 3 of 2: give at least 2 folds", fold, none, 3, 2)
    refused("there are 9 folds, the largest class has 2 images: use fewer folds", fold, none, 9, 9)


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


def test_selected_images_keep_their_labels_and_their_rows_in_the_source():
    images = labeled([0, 1, 2, 0, 1])
    some = Images(**{**vars(images), "coarse": torch.arange(5) // 2, "coarse_classes": ("x", "y", "z")})
    some = some.select(torch.tensor([3, 1]))
    assert some.labels.tolist() == [0, 1]
    assert some.indices.tolist() == some.images.flatten().tolist() == [3, 1]
    assert some.coarse.tolist() == [1, 0]
    assert some.select(torch.tensor([False, True])).indices.tolist() == [1]
    refused("a mean needs one", some.select(torch.tensor([], dtype=torch.int64)).statistics)
    refused("3 images, 2 labels, 2 indices", labeled, [0, 1], pixels=torch.zeros(3, 1, 1, 1, dtype=torch.uint8))


@pytest.mark.parametrize("items", [1, 5, 5000])  # 5000: more than one chunk
def test_statistics_are_those_of_all_pixels_at_once(items):
    pixels = torch.randint(0, 256, (items, 3, 4, 5), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    mean, std = labeled([0] * items, pixels=pixels).statistics()
    expected = pixels.double() / 255
    torch.testing.assert_close(torch.tensor(mean).double(), expected.mean((0, 2, 3)))
    torch.testing.assert_close(torch.tensor(std).double(), expected.std((0, 2, 3), correction=0))
