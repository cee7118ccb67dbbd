"""The generated segmentation set: masks that are known, splits that differ, shapes that are what they are called."""

import numpy as np
import pytest
import torch

from cascaded.data.shapes import CLASSES, SIDE, SIDES, polygon, shapes
from cascaded.errors import InputError


def test_images_and_masks_have_one_class_per_pixel():
    images, masks = shapes("validation", 20)
    assert images.shape == (20, 1, SIDE, SIDE)
    assert images.dtype == torch.float32
    assert masks.shape == (20, SIDE, SIDE)
    assert masks.unique().tolist() == list(range(len(CLASSES)))


def test_an_image_depends_on_seed_split_and_row_only():
    few, many, test = shapes("train", 3), shapes("train", 5), shapes("test", 3)
    for short, long in zip(few, many, strict=True):
        assert torch.equal(short, long[:3])
    assert not torch.equal(few[0], test[0])
    assert not torch.equal(few[0], shapes("train", 3, seed=1)[0])


def test_gray_values_tell_shapes_from_the_background_but_not_from_each_other():
    images, masks = shapes("train", 200)
    values = [images[:, 0][masks == label] for label in range(len(CLASSES))]
    means, scatter = [float(each.mean()) for each in values], float(values[1].std())
    assert abs(means[0]) < 0.01
    assert min(means[1:]) > 0.5
    assert max(means[1:]) - min(means[1:]) < 0.2 * scatter


@pytest.mark.parametrize(("name", "sides"), SIDES.items())
def test_a_polygon_has_the_area_of_its_disc_whatever_its_angle(name, sides):
    areas = [polygon(sides, np.array([16.0, 16.0]), 8.0, angle).sum() for angle in (0.0, 0.4, 1.1)]
    assert areas == pytest.approx([np.pi * 64] * 3, rel=0.05)


def test_a_square_is_the_pixels_between_its_edges():
    found = polygon(4, np.array([10.0, 20.0]), 6 / np.sqrt(np.pi), 0.0)  # an area of 36
    expected = np.zeros((SIDE, SIDE), bool)
    expected[7:13, 17:23] = True
    assert np.array_equal(found, expected)


@pytest.mark.parametrize(("arguments", "message"), [(("tests",), "did you mean test"), (("test", 0), "items is 0")])
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        shapes(*arguments)
