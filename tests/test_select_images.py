"""Which images are presented: the network's own test or validation images, or those of other data."""

import os
from dataclasses import replace

import pytest
import torch

from cascaded.data.sources import load
from cascaded.results.registry import has_test_split
from cascaded.traces.select import limit_images, select_images
from cascaded.training.data import load_batches
from cascaded.training.distributed import Distributed
from cascaded.training.load import load_run
from tests.pictures import image_folder
from tests.refused import refused
from tests.tiny_runs import tiny_run  # noqa: F401


@pytest.fixture
def run(tiny_run):  # noqa: F811
    return load_run(tiny_run())


@pytest.mark.parametrize("data", [None, "digits", os.path.join(".", "digits")])
@pytest.mark.parametrize("split", ["test", "train"])
def test_its_own_images_are_all_selected_in_their_order(run, data, split):
    images, items = select_images(run, data, split)
    expected = load("digits", split)
    assert (images.split, images.fingerprint()) == (split, expected.fingerprint())
    assert torch.equal(images.indices[items], expected.indices)
    assert select_images(run)[0].split == "test"
    assert has_test_split(run.folder, [])


@pytest.mark.parametrize("options", [{}, {"val_fraction": 0.3}, {"fold": (2, 3)}])
def test_validation_is_exactly_the_part_left_out_of_training(tiny_run, options):  # noqa: F811
    run = load_run(tiny_run(**options))
    feed = load_batches(run.config, Distributed(), torch.device("cpu"))
    images, items = select_images(run, None, "validation")
    assert images.split == "validation"
    assert torch.equal(items, feed.validation)
    assert not set(items.tolist()) & set(feed.train.tolist())
    source = load("digits", "train")
    assert torch.equal(images.images[items], source.images[feed.validation])
    assert torch.equal(images.indices[items], source.indices[feed.validation])


def test_a_maximum_takes_the_same_number_per_class_and_keeps_their_order(run):
    for split, count in (("test", 30), ("validation", 20)):
        images, items = select_images(run, None, split)
        some = limit_images(images, items, count)
        assert images.labels[some].bincount().tolist() == [count // 10] * 10
        assert torch.equal(some, some.sort().values)
        assert set(some.tolist()) <= set(items.tolist())
        for more in (None, len(items), 9999):
            assert torch.equal(limit_images(images, items, more), items)


def test_other_data_is_brought_to_the_size_of_the_network(run, tmp_path):
    place = image_folder(tmp_path / "other", ["test/ant", "test/bee"], size=(20, 16), gray=True)
    images, items = select_images(run, str(place), "test")
    assert images.images.shape == (6, 1, 8, 8)
    assert images.classes == ("ant", "bee")
    assert items.tolist() == list(range(6))


@pytest.mark.parametrize(
    ("options", "split", "message"),
    [
        ({"val_fraction": 0.0}, "validation", "was trained without a validation split: add test images, or train with"),
        ({}, "tset", "digits has no split 'tset', there are train, test: use one of them"),
    ],
)
def test_a_split_that_is_not_there_is_refused(tiny_run, options, split, message):  # noqa: F811
    refused(message, select_images, load_run(tiny_run(**options)), None, split)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("photos", "was trained on photos, a path that does not exist from here: run this"),
        ("my/own/photos", "was trained on my/own/photos, a path that does not exist from here: run this"),
        ("my/photos", "my/photos is on the hub, which .*; if it is a path, run this"),
    ],
)
def test_its_own_data_by_a_path_that_is_not_here_is_refused_with_where_it_is(run, monkeypatch, data, message):
    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", None)
    moved = replace(run, config=replace(run.config, data=data))
    message += f" command from the folder in which {run.folder} was trained$"
    for split in ("test", "validation"):
        refused(message, select_images, moved, None, split)
    refused("^there is no data set 'photo'", select_images, run, "photo")


def test_other_data_without_a_test_split_is_shown_by_its_validation_split(run, tmp_path):
    image_folder(tmp_path / "val", ["validation/ant", "validation/bee"], gray=True)
    images, items = select_images(run, str(tmp_path / "val"))
    assert (images.split, len(items)) == ("validation", 6)
    image_folder(tmp_path / "train", ["ant", "bee"], gray=True)
    refused("has no split 'test'", select_images, run, str(tmp_path / "train"))
