"""The embedded CIFAR-10 sample holds the original test images, pixel for pixel."""

import io
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from PIL import Image

import cascaded.hub
from cascaded.data import load
from tests.pictures import CIFAR10_TEST, REAL, needs_real

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def test_each_class_has_30_validation_and_70_test_images():
    for split, count in (("validation", 30), ("test", 70)):
        images = load("cifar10-sample", split)
        assert images.images.shape == (10 * count, 3, 32, 32)
        assert images.classes == CLASSES
        assert images.labels.bincount().tolist() == [count] * 10
        assert images.indices.tolist() == sorted(images.indices.tolist())


@needs_real(CIFAR10_TEST)
def test_the_images_are_the_first_hundred_of_each_class_pixel_for_pixel():
    original = pq.read_table(Path(str(REAL)) / CIFAR10_TEST)
    labels = original["label"].to_numpy()
    first = {"validation": slice(0, 30), "test": slice(30, 100)}
    for split, rows in first.items():
        images = load("cifar10-sample", split)
        expected = np.sort(np.concatenate([np.flatnonzero(labels == number)[rows] for number in range(10)]))
        assert images.indices.tolist() == expected.tolist()
        assert images.labels.tolist() == labels[expected].tolist()
        for pixels, row in zip(images.images, expected.tolist(), strict=True):
            image = Image.open(io.BytesIO(original["img"][row]["bytes"].as_py())).convert("RGB")
            assert torch.equal(pixels.permute(1, 2, 0), torch.from_numpy(np.array(image)))


def test_grey_images_get_three_equal_channels_for_a_network_of_colour_images():
    grey, colour = load("digits", "test", image_size=32), load("digits", "test", image_size=32, channels=3)
    assert colour.images.shape == (len(grey), 3, 32, 32)
    assert all(torch.equal(colour.images[:, channel], grey.images[:, 0]) for channel in range(3))
    assert load("cifar10-sample", "test", channels=1).images.shape[1] == 3  # colour is not thrown away


def test_classes_are_those_of_the_shipped_cifar10_networks():
    config = Path(cascaded.hub.__file__).parent / "networks" / "cifar10-td0" / "config.json"
    assert json.loads(config.read_text())["inputs"]["classes"] == list(load("cifar10-sample", "test").classes)
