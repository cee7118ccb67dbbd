"""Images as tensors: parts of them, and their mean and deviation."""

import pytest
import torch

from cascaded.data import Images
from cascaded.errors import InputError
from tests.pictures import labeled


def test_selected_images_keep_their_labels_and_their_rows_in_the_source():
    images = labeled([0, 1, 2, 0, 1])
    some = images.select(torch.tensor([3, 1]))
    assert len(some) == 2
    assert some.labels.tolist() == [0, 1]
    assert some.indices.tolist() == [3, 1]
    assert some.images.flatten().tolist() == [3, 1]
    assert some.select(torch.tensor([False, True])).indices.tolist() == [1]


def test_coarse_labels_are_selected_too():
    images = Images(
        "made", "train", torch.zeros(3, 1, 1, 1, dtype=torch.uint8), torch.arange(3), ("a", "b", "c"), torch.arange(3),
        torch.tensor([0, 0, 1]), ("x", "y"),
    )  # fmt: skip
    selected = images.select(torch.tensor([2])).coarse
    assert selected is not None
    assert selected.tolist() == [1]


@pytest.mark.parametrize("items", [1, 5, 5000])  # 5000: more than one chunk
def test_statistics_are_those_of_all_pixels_at_once(items):
    pixels = torch.randint(0, 256, (items, 3, 4, 5), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    mean, std = labeled([0] * items, pixels=pixels).statistics()
    expected = pixels.double() / 255
    torch.testing.assert_close(torch.tensor(mean).double(), expected.mean((0, 2, 3)))
    torch.testing.assert_close(torch.tensor(std).double(), expected.std((0, 2, 3), correction=0))


def test_as_many_labels_as_images():
    with pytest.raises(InputError, match="3 images, 2 labels, 2 indices"):
        labeled([0, 1], pixels=torch.zeros(3, 1, 1, 1, dtype=torch.uint8))


def test_no_images_have_no_mean():
    with pytest.raises(InputError, match="a mean needs one"):
        labeled([0, 1]).select(torch.tensor([], dtype=torch.int64)).statistics()
