"""Augmentation: no two epochs see the same pixels.

Whole batches on their device, a draw of its own for each image, all randomness from the generator that is passed.
Crop and flip move bytes, which is cheap; only what follows needs floating point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float32, Shaped, UInt8
from torch import Generator, Tensor

from cascaded.data.geometry import window
from cascaded.data.noise import Noise
from cascaded.data.sampling import squares, uniform, whole
from cascaded.errors import InputError
from cascaded.progress import counted


def reflect_crop(
    images: Shaped[Tensor, "batch channels height width"], pad: int, generator: Generator
) -> Shaped[Tensor, "batch channels height width"]:
    """Pad each image with its own reflection and crop it back to size, at any of the (2 pad + 1)^2 places."""
    batch, _, height, width = images.shape
    if not 0 <= pad < min(height, width):
        reach = min(height, width) - 1
        raise InputError(f"pad is {pad}, images are {height} x {width}: their reflection reaches from 0 to {reach}")
    down, right = whole((2, batch), -pad, pad, generator, images.device)
    return window(images, down, right)


def flip(
    images: Shaped[Tensor, "batch channels height width"], generator: Generator
) -> Shaped[Tensor, "batch channels height width"]:
    """Mirror every other image, on average, left to right."""
    mirrored = uniform((len(images), 1, 1, 1), 0, 1, generator, images.device) < 0.5
    return torch.where(mirrored, images.flip(-1), images)


def white(images: Tensor) -> int:
    """The number that means white: 255 in bytes, 1 in floats."""
    if images.dtype != torch.uint8 and not images.is_floating_point():
        raise InputError(f"images are {images.dtype}: give bytes (torch.uint8, 0 to 255) or floats from 0 to 1")
    return 1 if images.is_floating_point() else 255


def normalise(
    images: Shaped[Tensor, "batch channels height width"],
    mean: Float[Tensor, "channels"] | Sequence[float],
    std: Float[Tensor, "channels"] | Sequence[float],
) -> Float32[Tensor, "batch channels height width"]:
    """Bytes, or floats in 0..1, to what a network takes: per channel a mean of zero and a deviation of one.

        (x - mean) / std        x in 0..1

    Mean and deviation are those of a training set, of pixels in 0..1 too.
    """
    per_channel = {"dtype": torch.float32, "device": images.device}
    mean, std = torch.as_tensor(mean, **per_channel), torch.as_tensor(std, **per_channel)
    if not mean.shape == std.shape == images.shape[1:2]:
        raise InputError(
            f"images have {counted(images.shape[1], 'channel')}, mean and deviation have shapes {tuple(mean.shape)}, "
            f"{tuple(std.shape)}: give one number a channel"
        )
    if not (std > 0).all():
        raise InputError(f"deviations are {std.tolist()}: a channel that never changes cannot be normalised, drop it")
    scale = white(images)  # of the few statistics, not of the many pixels
    return images.sub(scale * mean[:, None, None]).div_(scale * std[:, None, None]).float()


def cut_out(
    images: Float[Tensor, "batch channels height width"], size: int, generator: Generator
) -> Float[Tensor, "batch channels height width"]:
    """Set a square of each image to 0, anywhere inside it."""
    batch, _, height, width = images.shape
    if not 0 <= size <= min(height, width):
        raise InputError(f"cutout is {size}, images are {height} x {width}: cut at most {min(height, width)}")
    return images * ~squares((batch,), size, height, width, generator, images.device)


@dataclass(frozen=True)
class Augment:
    """The paper's augmentation of CIFAR images; zero, False or None leaves a part out.

    Attributes:
        pad: How far a crop may leave the image, over its reflections. (64 px images of TinyImageNet: 11.)
        flip: Whether half of the images are mirrored.
        cutout: Side of the square that is cut out. (0 for TinyImageNet, and for networks that learn a noise: a square
            that is missing would prepare them for occlusion alone.)
        noise: A noise to learn, a draw an image.
    """

    pad: int = 4
    flip: bool = True
    cutout: int = 8
    noise: Noise | None = None

    def __call__(
        self,
        images: UInt8[Tensor, "batch channels height width"],
        mean: Float[Tensor, "channels"] | Sequence[float],
        std: Float[Tensor, "channels"] | Sequence[float],
        generator: Generator,
    ) -> Float32[Tensor, "batch channels height width"]:
        """Crop, flip, noise, normalise, cut out: cut last, so that what is missing has the mean colour."""
        if self.pad:
            images = reflect_crop(images, self.pad, generator)
        if self.flip:
            images = flip(images, generator)
        if self.noise:
            images = self.noise(images / white(images), generator)
        normal = normalise(images, mean, std)
        return cut_out(normal, self.cutout, generator) if self.cutout else normal
