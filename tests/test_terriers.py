"""Ten terriers of ImageNet, on generated files of its layout: breeds, split and crops."""

from collections import Counter

import numpy as np
import pytest
import torch

from cascaded.data import SOURCES, hold_out, load
from cascaded.data.augment import flip, normalize, resized_crop
from cascaded.data.open import Hub, locate
from cascaded.training.config import RunConfig
from cascaded.training.data import load_batches
from cascaded.training.distributed import Distributed
from cascaded.training.seeds import generator_at
from tests.pictures import encoded, own_places, parquet_file, picture  # noqa: F401
from tests.refused import refused

COUNTS = {
    "tench, Tinca tinca": 40,
    **{f"breed {number} terrier, terrier {number}": 20 + number % 7 for number in range(10)},
    "Airedale, Airedale terrier": 19,
    "Lhasa, Lhasa apso": 31,
    "toy Terrier": 30,
}
LEFT_OUT = ("breed 7 terrier, terrier 7", "Airedale, Airedale terrier")  # the last of three breeds of 20, and one of 19
BREEDS = [name for name in COUNTS if "errier" in name and name not in LEFT_OUT]
CPU = torch.device("cpu")


@pytest.fixture
def labels(monkeypatch, tmp_path):
    """The labels of the training images; in the files beside them nothing is a terrier, or labeled at all."""
    labels = np.repeat(np.arange(len(COUNTS)), list(COUNTS.values()))
    labels = np.random.default_rng(0).permutation(labels).tolist()
    pixels = [encoded(picture(row, size=(40, 32) if row % 2 else (32, 33))) for row in range(len(labels))]
    folder = tmp_path / "data" / "imagenet"
    options = {"names": list(COUNTS), "image": "image"}
    parquet_file(folder / "train-00000-of-00001.parquet", pixels, labels, **options)
    parquet_file(folder / "validation-00000-of-00001.parquet", pixels[:40], [0] * 40, **options)
    parquet_file(folder / "test-00000-of-00001.parquet", pixels[:40], [-1] * 40, **options)
    monkeypatch.setenv("CASCADED_DATA", str(tmp_path / "data"))
    return labels


def test_they_are_the_ten_most_numerous_breeds_and_a_tenth_of_every_breed_is_the_test_set(labels):
    train, test = (load("terriers", split, image_size=28) for split in ("train", "test"))
    assert train.classes == test.classes == tuple(BREEDS)
    rows = {row for row, label in enumerate(labels) if list(COUNTS)[label] in BREEDS}
    assert {*train.indices.tolist(), *test.indices.tolist()} == rows
    assert len(train) + len(test) == len(rows)
    for images in (train, test):
        assert [list(COUNTS)[labels[row]] for row in images.indices] == [BREEDS[label] for label in images.labels]
    counts = Counter(test.labels.tolist())
    assert [counts[label] for label in range(10)] == [round(COUNTS[name] / 10) for name in BREEDS]
    left, validation = hold_out(train)  # and a tenth of every breed that is left is the validation split
    assert len(validation) == sum(round((COUNTS[name] - counts[label]) / 10) for label, name in enumerate(BREEDS))
    assert not {*left.indices.tolist()} & {*validation.indices.tolist()}


def test_given_classes_replace_the_breeds_and_imagenet_itself_has_all_of_its_training_images(labels):
    given = load("terriers", "train", image_size=28, classes=["Lhasa"])
    assert given.classes == ("Lhasa, Lhasa apso",)
    assert len(given) == 28
    assert len(load("imagenet", "train", image_size=28, classes=["Lhasa"])) == 31


def test_test_images_are_the_center_of_the_resized_image_and_training_crops_may_contain_its_border(labels):
    for split in ("train", "test"):
        images = load("terriers", split, image_size=28)  # as 224: an eighth is cut off from 32, of which 40 x 32 is 32
        for image, bordered, row in zip(images.images, images.bordered, images.indices.tolist(), strict=True):
            if row % 2:
                pixels = torch.from_numpy(picture(row, size=(40, 32))).permute(2, 0, 1)
                assert torch.equal(bordered, pixels[:, :, 4:36])
                assert torch.equal(image, pixels[:, 2:30, 6:34])
            assert torch.equal(image, bordered[:, 2:30, 2:30])
    some = images.select(torch.tensor([3, 1]))
    assert torch.equal(some.bordered, images.bordered[[3, 1]])


def test_training_takes_random_resized_crops_and_validation_centers(labels):
    config = RunConfig("terriers", image_size=28, batch_size=50)
    batches = load_batches(config, Distributed(), CPU)
    items = batches.train[torch.randperm(len(batches.train), generator=generator_at(0, "order", 0))[:50]]
    bordered, generator = batches.images.bordered[items], generator_at(0, "augment", 0)
    crops = resized_crop(normalize(flip(bordered, generator), *batches.statistics), 0.08, generator, border=2)
    images, _ = batches.at(0)
    assert images.shape == (50, 3, 28, 28)
    assert torch.equal(images, crops)
    assert batches.inputs.shape == (3, 28, 28)
    batch, labels = next(batches.eval_batches(batches.images, batches.validation))
    expected = normalize(batches.images.images[batches.validation], *batches.statistics)
    assert torch.equal(batch, expected)
    assert labels.tolist() == batches.images.labels[batches.validation].tolist()


def test_without_the_training_images_they_are_streamed_from_the_hub(monkeypatch, tmp_path):
    monkeypatch.setenv("CASCADED_DATA", str(tmp_path))
    parquet_file(tmp_path / "imagenet" / "test-0.parquet", [encoded(picture())], [-1], list(COUNTS))
    found = locate(SOURCES["terriers"], "test")
    assert isinstance(found, Hub)
    assert found.part.take == "tenth"
    assert "put train-*.parquet into $CASCADED_DATA/imagenet/ (it contains test)" in found.fix
    ids = [f"n0209{number}" for number in range(12)]
    parquet_file(tmp_path / "imagenet" / "train-0.parquet", [encoded(picture())] * 12, list(range(12)), ids)
    refused("0 of the 12 classes have 'terrier' in their name, 10 are needed", load, "terriers")
