"""Embedded data: scikit-learn's digits and photographs, and CIFAR-10 test images, pixel for pixel."""

import io
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from PIL import Image
from sklearn.datasets import load_digits

import cascaded.hub
from cascaded.data import load
from cascaded.data.embedded import CONTRAST, PATCHES, half, patch, patches, photographs
from tests.pictures import CIFAR10_TEST, REAL, needs_real


def test_digits_are_those_of_scikit_learn_and_a_fifth_of_every_class_is_the_test_set():
    pixels, labels = load_digits(return_X_y=True)
    train, test = load("digits"), load("digits", "test")
    for images in (train, test):
        rows = images.indices.numpy()
        assert images.images.shape[1:] == (1, 8, 8)
        np.testing.assert_array_equal(images.labels, labels[rows])
        np.testing.assert_array_equal(images.images.flatten(1), np.round(pixels[rows] * 255 / 16))
        assert images.classes == tuple("0123456789")
    assert sorted([*train.indices.tolist(), *test.indices.tolist()]) == list(range(1797))
    assert (np.abs(np.bincount(test.labels) - np.bincount(labels) / 5) <= 0.5).all()


def test_patches_have_contrast_no_labels_and_the_size_of_cluttered_digits_and_are_the_same_every_time():
    for split, count in PATCHES.items():
        images = load("photographs", split)
        assert images.images.shape == (count, 1, 28, 28)
        assert images.classes == ()
        assert set(images.labels.tolist()) == {-1}
        assert images.indices.tolist() == list(range(count))
        shades = images.images.float().flatten(1)
        assert (shades.std(dim=1) >= CONTRAST).all()
        assert len(shades.unique(dim=0)) == count
        assert np.array_equal(np.stack([pixels for _, pixels, _ in patches(split)]), images.images[:, 0])


def test_patches_of_a_split_come_from_its_half():
    """With the other half black, nothing changes."""
    for photograph in photographs():
        both = [np.asarray(half(photograph, split)) for split in ("validation", "test")]
        assert np.array_equal(np.concatenate(both, axis=1), np.asarray(photograph))
    for split in PATCHES:
        first = load("photographs", split).images[:6, 0].numpy()
        for number, pixels in enumerate(first):
            photograph = photographs()[number % 2].copy()
            left = photograph.width // 2 if split == "validation" else 0
            photograph.paste(0, (left, 0, left + photograph.width // 2, photograph.height))
            draws = np.random.default_rng([0, list(PATCHES).index(split), number])
            assert np.array_equal(patch(half(photograph, split), draws), pixels)


def test_each_class_has_30_validation_and_70_test_images():
    config = Path(cascaded.hub.__file__).parent / "networks" / "cifar10-td0" / "config.json"
    for split, count in (("validation", 30), ("test", 70)):
        images = load("cifar10-sample", split)
        assert images.images.shape == (10 * count, 3, 32, 32)
        assert list(images.classes) == json.loads(config.read_text())["inputs"]["classes"]  # a shipped network's
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


def test_digits_can_be_resized_classes_selected_and_gray_images_get_three_equal_channels():
    images = load("digits", image_size=16, classes=["7", "1"])
    assert images.images.shape[1:] == (1, 16, 16)
    assert images.classes == ("7", "1")
    assert (images.labels == 0).sum() == 143
    gray, color = load("digits", "test", image_size=32), load("digits", "test", image_size=32, channels=3)
    assert color.images.shape == (len(gray), 3, 32, 32)
    assert all(torch.equal(color.images[:, channel], gray.images[:, 0]) for channel in range(3))
    assert load("cifar10-sample", "test", channels=1).images.shape[1] == 3  # color is not thrown away
