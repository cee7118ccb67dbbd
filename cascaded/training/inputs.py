"""What a network expects; importing this loads neither torch nor the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cascaded.errors import InputError

TOLERANCE = 1e-3
"""How far floats may lie outside 0..1: rounding of a resize or of half precision, a quarter of a gray level."""


@dataclass(frozen=True)
class Inputs:
    """What a network expects and what its outputs mean, so that it can be used without its training images.

    Attributes:
        shape: Channels, height and width of an image.
        mean: Mean per channel over the training images, from 0 to 1.
        std: Standard deviation per channel.
        classes: Class names, in the order of the logits.
    """

    shape: tuple[int, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    classes: tuple[str, ...]

    def __post_init__(self):
        if len(self.shape) != 3 or min(self.shape) < 1:
            raise InputError(f"shape is {list(self.shape)}: give channels, height and width")
        sizes_fit = all(len(each) == self.shape[0] for each in (self.mean, self.std))
        # single precision has to hold them; neither is true for NaN
        if not (sizes_fit and max(map(abs, self.mean)) < 1e30 and min(self.std) > 1e-30 and max(self.std) < 1e30):
            raise InputError(
                f"mean {list(self.mean)} and std {list(self.std)} are not of {self.shape[0]} channels: give finite "
                "numbers, one per channel"
            )


def check_span(low: float, high: float, byte: str, if_normalized: str) -> None:
    """Refuse floats outside 0..1, which may be normalized already.

    Args:
        low: The smallest pixel.
        high: The largest pixel.
        byte: How bytes are called, for the error.
        if_normalized: What to do with images that are normalized already, for the error.
    """
    if not (low >= -TOLERANCE and high <= 1 + TOLERANCE):  # neither is true for NaN
        raise InputError(
            f"images are floats from {low:.4g} to {high:.4g}, this network takes bytes ({byte}) or floats from 0 to 1: "
            f"divide 0..255 by 255, clamp what a resize overshot, or if they are normalized already {if_normalized}"
        )


def describe_shape(shape: Sequence[int]) -> str:
    """`3 channels of 32 x 32`."""
    if len(shape) != 3:
        return " x ".join(map(str, shape)) + " without channels"
    channels, height, width = shape
    return f"{channels} channel{'s' if channels > 1 else ''} of {height} x {width}"


def shape_fix(found: tuple[int, ...], shape: tuple[int, ...]) -> str:
    """What to do with images whose shape is not that of a batch of images of channels, height and width."""
    if found == shape:
        return "give a batch, images[None]"
    if found[1:] == shape:
        return "give at least one"
    if len(found) > 3 and found[-3:] == (*shape[1:], shape[0]):
        return "move the channels before height and width"
    return "resize them to that shape"
