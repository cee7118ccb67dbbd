"""Data sets by name; with real CIFAR images if they are available."""

import io
import random
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from cascaded.data import SOURCES, augmentation, load
from cascaded.data.augment import Augment
from cascaded.data.columns import Columns
from cascaded.data.human import COUNTS, CSCORES
from cascaded.data.open import locate
from cascaded.shell import program
from tests.pictures import (
    CIFAR10,
    CIFAR10_TEST,
    CIFAR100_TEST,
    REAL,
    TINY_TEST,
    needs_real,
)
from tests.pictures import own_places as own_places
from tests.refused import refused


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("cifra10", {}, "there is no data set 'cifra10': did you mean cifar10\\?"),
        ("xyz", {}, f"there is no data set 'xyz': see `{re.escape(program())} data list`"),
        ("nowhere/at/all", {}, "there is no file or folder nowhere/at/all: check the path"),
        ("./nothing", {}, "there is no file or folder ./nothing"),
        ("nothing.parquet", {}, "there is no file or folder nothing.parquet"),
        ("imagenet", {}, "too many classes to load all: choose some with --classes, or use --data terriers"),
        ("cifar10", {"split": "validation"}, "no split 'validation', there are train, test: use cascaded.data.hold"),
        ("digits", {"split": "extra"}, "digits has no split 'extra', there are train, test: use one of them"),
        ("lsun-crop", {"split": "train"}, "lsun-crop has no split 'train', there are validation, test"),
        ("photographs", {"split": "train"}, "photographs has no split 'train', there are validation, test"),
        ("digits", {"image_size": 0}, "image_size is 0"),
        ("digits", {"classes": "7"}, "classes is the string '7'"),
        ("digits", {"classes": ["seven"]}, "no class 'seven' among the 10 classes"),
    ],
)
def test_names_splits_and_options_that_do_not_exist_are_refused_with_a_fix(name, options, message):
    refused(message, load, name, **options)


@pytest.mark.parametrize("kind", ["image", "label"])
def test_embedded_data_has_no_columns_to_choose(kind):
    for name in [name for name, source in SOURCES.items() if source.hub is None]:
        message = f"is embedded and has no column 'foo': leave --{kind}-column out"
        refused(message, load, name, "test", **{f"{kind}_column": "foo"})


def test_augmentation_per_source_and_in_proportion_for_others():
    assert augmentation("cifar10", 32) == Augment(4, True, 8)
    assert augmentation("tinyimagenet", 64) == Augment(11, True, 0)
    assert augmentation("digits", 8) == Augment(1, False, 0)
    assert augmentation("digits", 16) == Augment(2, False, 0)
    assert augmentation("terriers", 224) == augmentation("imagenet", 224) == Augment(0, True, 0, area=0.08, border=16)
    assert augmentation("terriers", 56) == Augment(0, True, 0, area=0.08, border=4)
    assert augmentation("cifar10", 64) == augmentation(Path("my/folder"), 64) == Augment(8, True, 16)


@pytest.fixture
def cifar10_test(monkeypatch):
    """The test images of CIFAR-10; nothing is decoded yet."""
    monkeypatch.setenv("CASCADED_DATA", str(REAL))
    return locate(SOURCES["cifar10"], "test").open(Columns())


@needs_real(CIFAR10_TEST)
def test_cifar10_test_images_are_pillows_to_the_pixel(cifar10_test):
    table = pq.read_table(Path(str(REAL)) / CIFAR10_TEST)
    labels = table["label"].to_pylist()
    assert [(row.index, row.label) for row in cifar10_test.rows()] == list(enumerate(labels))
    some = load("cifar10", "test", classes=["cat", "ship"])  # decoding the other eight takes longer and shows no more
    assert some.indices.tolist() == [row for row, label in enumerate(labels) if label in (3, 8)]
    assert some.labels.tolist() == [(3, 8).index(labels[row]) for row in some.indices]
    for place in [0, 1, 1_999, *np.random.default_rng(0).integers(0, 2_000, 200).tolist()]:
        png = table["img"][int(some.indices[place])]["bytes"].as_py()
        pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))
        assert torch.equal(some.images[place].permute(1, 2, 0), torch.from_numpy(pixels.copy()))


@needs_real(CIFAR10_TEST, COUNTS)
def test_cifar10_test_images_fit_the_human_judgements_of_cifar10h(cifar10_test):
    counts = np.load(Path(str(REAL)) / COUNTS, allow_pickle=False)
    labels = [row.label for row in cifar10_test.rows()]
    assert (counts.argmax(1) == labels).sum() == 9_921
    assert cifar10_test.classes[3] == "cat"


@needs_real(CIFAR10, CSCORES)
def test_cifar10_training_images_stand_in_the_order_of_the_c_scores(monkeypatch):
    monkeypatch.setenv("CASCADED_DATA", str(REAL))
    scores = np.load(Path(str(REAL)) / CSCORES, allow_pickle=False)
    labels = [row.label for row in locate(SOURCES["cifar10"], "train").open(Columns()).rows()]
    assert labels == scores["labels"].tolist()


@needs_real(CIFAR100_TEST)
def test_cifar100_has_coarse_labels_that_follow_from_the_fine_ones(monkeypatch):
    monkeypatch.setenv("CASCADED_DATA", str(REAL))
    images = load("cifar100", "test", classes=["beaver", "dolphin", "maple_tree"])
    assert images.labels.bincount().tolist() == [100, 100, 100]
    assert len(images.coarse_classes) == 20
    pairs = {*zip(images.labels.tolist(), images.coarse.tolist(), strict=True)}
    groups = {images.classes[label]: images.coarse_classes[coarse] for label, coarse in pairs}
    assert groups == {"beaver": "aquatic_mammals", "dolphin": "aquatic_mammals", "maple_tree": "trees"}
    coarse = load("cifar100", "test", label_column="coarse_label", classes=["trees", "fish"])
    assert coarse.labels.bincount().tolist() == [500, 500]


@needs_real(TINY_TEST)
def test_tiny_images_are_cropped_or_resized(monkeypatch):
    monkeypatch.setenv("CASCADED_DATA", str(REAL))
    some = ["n01443537", "n01629819"]
    whole, crop, small = (load(f"tinyimagenet{fit}", "test", classes=some) for fit in ("", "-crop", "-resize"))
    places = [(draw.randint(0, 32), draw.randint(0, 32)) for draw in map(random.Random, whole.indices.tolist())]
    assert len(set(places)) == 20
    for cropped, image, (left, top) in zip(crop.images, whole.images, places, strict=True):
        assert torch.equal(cropped, image[:, top : top + 32, left : left + 32])
    assert small.images.shape == (20, 3, 32, 32)
    averaged = torch.nn.functional.avg_pool2d(whole.images.float(), 2)
    assert (small.images - averaged).abs().mean() < 8  # Pillow's filter is wider, the picture is the same
    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", lambda *_, **__: 1 / 0)
    refused(r"tiny-imagenet is on the hub.* \(it contains test.*\)", load, "tinyimagenet")
