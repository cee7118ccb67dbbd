"""Floats that are already normalized, or were never divided by 255, are refused by every entry point."""

import pytest
import torch

import cascaded
from cascaded.errors import InputError
from tests.made_networks import made, pixels


def entry_points(net):
    """The functions that take images."""
    return {
        "forward": net,
        "normalized": net.prepare,
        "early exit": lambda images: cascaded.early_exit(net, images, 0.5),
    }


NORMALIZED, UNSCALED = (pixels() / 255 - 0.3) / 0.4, pixels().float()


@pytest.mark.parametrize("entry", ["forward", "normalized", "early exit"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("images", "interval"),
    [
        (NORMALIZED, r"from -0\.7\d* to 1\.7\d*"),
        (UNSCALED, "from 0 to 25[456]"),
        (pixels() / 255 + 0.1, r"from 0\.\d+ to 1\.\d+"),
        (torch.full((1, 1, 8, 8), torch.nan), "from nan to nan"),
        (torch.full((1, 1, 8, 8), torch.inf), "from inf to inf"),
    ],
)
def test_floats_outside_zero_to_one_are_refused_with_their_range(images, interval, dtype, entry):
    fix = r"bytes \(torch\.uint8\) or floats from 0 to 1: divide 0\.\.255 by 255, .*pass normalized=True"
    with pytest.raises(InputError, match=rf"^images are floats ({interval}), .*{fix}$"):
        entry_points(made())[entry](images.to(dtype))


def test_every_frame_of_a_sequence_is_checked():
    frames = (pixels() / 255).repeat(4, 1, 1, 1, 1)
    made()(frames)
    frames[3, 2, 0, 7, 7] = 2
    with pytest.raises(InputError, match="to 2, this network takes"):
        made()(frames)


@torch.no_grad()
def test_a_rounding_error_of_a_resize_is_accepted():
    images = pixels() / 255
    images[0, 0, 0, :2] = torch.tensor([-5e-4, 1 + 5e-4])
    torch.testing.assert_close(made()(images), made()(images.clamp(0, 1)), rtol=1e-2, atol=1e-2)


@torch.no_grad()
def test_normalized_images_give_the_same_outputs_with_normalized_true():
    net = made()
    torch.testing.assert_close(net(NORMALIZED, normalized=True), net(pixels()), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(net(NORMALIZED.double(), normalized=True), net(pixels()), rtol=1e-4, atol=1e-4)
    predictions = cascaded.early_exit(net, NORMALIZED, 1.0, normalized=True).predictions
    assert torch.equal(predictions, cascaded.early_exit(net, pixels(), 1.0).predictions)
    with pytest.raises(
        InputError, match=r"images are torch\.uint8, which are not normalized: leave normalized=True out"
    ):
        net(pixels(), normalized=True)
