"""Which images a network is shown: what it learned from, what it did not, and what it was never meant for."""

import os

import pytest
import torch

from cascaded.data.sources import load
from cascaded.errors import InputError
from cascaded.traces.shown import shown_images
from cascaded.training.data import make_feed
from cascaded.training.distributed import Team
from cascaded.training.load import load_run
from tests.pictures import image_folder
from tests.tiny_runs import tiny_run  # noqa: F401


@pytest.fixture
def run(tiny_run):  # noqa: F811
    return load_run(tiny_run())


@pytest.mark.parametrize("data", [None, "digits", os.path.join(".", "digits")])
@pytest.mark.parametrize("split", ["test", "train"])
def test_its_own_images_are_all_shown_in_their_order(run, data, split):
    images, items = shown_images(run, data, split)
    expected = load("digits", split)
    assert (images.split, images.fingerprint()) == (split, expected.fingerprint())
    assert torch.equal(images.indices[items], expected.indices)


@pytest.mark.parametrize("options", [{}, {"held_out": 0.3}, {"fold": (2, 3)}])
def test_validation_is_exactly_what_training_held_out(tiny_run, options):  # noqa: F811
    run = load_run(tiny_run(**options))
    feed = make_feed(run.spec, Team(), torch.device("cpu"))
    images, items = shown_images(run, None, "validation")
    assert images.split == "validation"
    assert torch.equal(items, feed.validation)
    assert not set(items.tolist()) & set(feed.train.tolist())
    source = load("digits", "train")
    assert torch.equal(images.images[items], source.images[feed.validation])
    assert torch.equal(images.indices[items], source.indices[feed.validation])


def test_a_limit_takes_as_many_of_every_class_and_keeps_their_order(run):
    images, items = shown_images(run, None, "test", limit=30)
    assert images.labels[items].bincount().tolist() == [3] * 10
    assert torch.equal(items, items.sort().values)
    images, items = shown_images(run, None, "validation", limit=20)
    assert images.labels[items].bincount().tolist() == [2] * 10
    assert set(items.tolist()) <= set(shown_images(run, None, "validation")[1].tolist())


def test_other_data_is_brought_to_the_size_of_the_network(run, tmp_path):
    place = image_folder(tmp_path / "other", ["test/ant", "test/bee"], size=(20, 16), grey=True)
    images, items = shown_images(run, str(place), "test")
    assert images.images.shape == (6, 1, 8, 8)
    assert images.classes == ("ant", "bee")
    assert items.tolist() == list(range(6))


def test_other_channels_are_refused_with_both_shapes(run, tmp_path):
    place = image_folder(tmp_path / "coloured", ["test/ant", "test/bee"])
    with pytest.raises(InputError) as raised:
        shown_images(run, str(place), "test")
    told = f"{place} has 3 channels of 8 x 8, {run.folder} was trained on 1 channel of 8 x 8: record other data"
    assert str(raised.value) == told


def test_a_run_that_held_nothing_out_has_no_validation(tiny_run):  # noqa: F811
    run = load_run(tiny_run(held_out=0.0))
    with pytest.raises(
        InputError, match=r"held no training images out.*: train it with --held-out 0\.1, or record --split"
    ):
        shown_images(run, None, "validation")


def test_a_split_that_is_not_there_is_refused(run):
    with pytest.raises(InputError, match=r"digits has no split 'tset', there are train, test: use one of them"):
        shown_images(run, None, "tset")


def test_more_images_than_there_are_are_refused(run):
    with pytest.raises(InputError, match="360 images are asked for, there are 359: keep 1 to 359"):
        shown_images(run, None, "test", limit=360)
