"""The embedded digits are scikit-learn's, to the pixel."""

import numpy as np
import torch
from sklearn.datasets import load_digits

from cascaded.data import load
from tests.pictures import own_places  # noqa: F401


def test_digits_are_those_of_scikit_learn():
    pixels, labels = load_digits(return_X_y=True)
    for split in ("train", "test"):
        images = load("digits", split)
        rows = images.indices.numpy()
        assert images.images.shape[1:] == (1, 8, 8)
        np.testing.assert_array_equal(images.labels, labels[rows])
        np.testing.assert_array_equal(images.images.flatten(1), np.round(pixels[rows] * 255 / 16))
        assert images.classes == tuple("0123456789")


def test_a_fifth_of_every_digit_is_the_test_set_and_nothing_is_in_both():
    train, test = load("digits"), load("digits", "test")
    assert sorted(torch.cat([train.indices, test.indices]).tolist()) == list(range(1797))
    everything = train.labels.bincount() + test.labels.bincount()
    assert ((test.labels.bincount() - everything / 5).abs() <= 0.5).all()


def test_digits_can_be_enlarged_and_chosen_from_like_any_images():
    images = load("digits", image_size=16, classes=["7", "1"])
    assert images.images.shape[1:] == (1, 16, 16)
    assert images.classes == ("7", "1")
    assert (images.labels == 0).sum() == 143
