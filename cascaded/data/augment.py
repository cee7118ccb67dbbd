"""Augmentation of batches on their device, with random numbers per image from the given generator.

Crop and flip move bytes, which is cheap; only the later operations need floating point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Float32, Shaped, UInt8
from torch import Generator, Tensor

from cascaded.data.geometry import window
from cascaded.data.noise import Noise
from cascaded.data.sampling import squares, uniform, whole
from cascaded.errors import InputError
from cascaded.progress import counted

TRIES = 10
"""Rectangles that are drawn for a random resized crop."""


def reflect_crop(
    images: Shaped[Tensor, "batch channels height width"], pad: int, generator: Generator
) -> Shaped[Tensor, "batch channels height width"]:
    """Pad each image with its reflection and crop it at one of the (2 pad + 1)^2 positions."""
    batch, _, height, width = images.shape
    if not 0 <= pad < min(height, width):
        raise InputError(f"pad is {pad}, images are {height} x {width}: give 0 to {min(height, width) - 1}")
    down, right = whole((2, batch), -pad, pad, generator, images.device)
    return window(images, down, right)


def resized_crop(
    images: Float[Tensor, "batch channels height width"], area: float, generator: Generator, border: int = 0
) -> Float[Tensor, "batch channels h w"]:
    """A random rectangle of each image, resized to its size without borders, bilinearly (Szegedy et al., 2015).

    Its area is uniform in area..1 of the image, the logarithm of its aspect ratio uniform in 3/4..4/3; a rectangle that
    does not fit into the image is drawn again, at most ten times, then the whole image is kept.
    """
    batch, device = len(images), images.device
    areas = uniform((TRIES, batch), area, 1, generator, device)
    ratios = uniform((TRIES, batch), math.log(3 / 4), math.log(4 / 3), generator, device).exp()
    sides = torch.stack([(areas * ratios).sqrt(), (areas / ratios).sqrt()], dim=-1)  # of width and height
    fits = (sides <= 1).all(-1)
    first = fits.int().argmax(0)  # the first that fits, or 0
    sides = torch.where(fits.any(0)[:, None], sides[first, torch.arange(batch, device=device)], 1.0)
    center = uniform((batch, 2), -1, 1, generator, device) * (1 - sides)
    theta = torch.cat([torch.diag_embed(sides), center[..., None]], dim=-1)
    size = [*images.shape[:2], *(side - 2 * border for side in images.shape[2:])]
    grid = F.affine_grid(theta.to(images), size, align_corners=False)
    return F.grid_sample(images, grid, padding_mode="border", align_corners=False)


def flip(
    images: Shaped[Tensor, "batch channels height width"], generator: Generator
) -> Shaped[Tensor, "batch channels height width"]:
    """Mirror each image left to right with probability 0.5."""
    mirrored = uniform((len(images), 1, 1, 1), 0, 1, generator, images.device) < 0.5
    return torch.where(mirrored, images.flip(-1), images)


def white(images: Tensor) -> int:
    """The value of white: 255 in bytes, 1 in floats."""
    if images.dtype != torch.uint8 and not images.is_floating_point():
        raise InputError(f"images are {images.dtype}: give bytes (torch.uint8, 0 to 255) or floats from 0 to 1")
    return 1 if images.is_floating_point() else 255


def pixels(images: Shaped[Tensor, "*lead height width"]) -> Float[Tensor, "*lead height width"]:
    """Bytes as floats in 0..1; floats stay as they are."""
    return images if images.is_floating_point() else images.float() / white(images)


def normalize(
    images: Shaped[Tensor, "batch channels height width"],
    mean: Float[Tensor, "channels"] | Sequence[float],
    std: Float[Tensor, "channels"] | Sequence[float],
) -> Float32[Tensor, "batch channels height width"]:
    """Normalize bytes, or floats in 0..1, to zero mean and unit standard deviation per channel.

        (x - mean) / std        x in 0..1

    Mean and standard deviation are those of the training set, of pixels in 0..1.
    """
    per_channel = {"dtype": torch.float32, "device": images.device}
    mean, std = torch.as_tensor(mean, **per_channel), torch.as_tensor(std, **per_channel)
    if not mean.shape == std.shape == images.shape[1:2]:
        raise InputError(
            f"images have {counted(images.shape[1], 'channel')}, mean and std have shapes {tuple(mean.shape)}, "
            f"{tuple(std.shape)}: give one number per channel"
        )
    if not (std > 0).all():
        raise InputError(f"std is {std.tolist()}: a constant channel cannot be normalized, remove it")
    scale = white(images)  # scale the few statistics, not the many pixels
    return images.sub(scale * mean[:, None, None]).div_(scale * std[:, None, None]).float()


def cut_out(
    images: Float[Tensor, "batch channels height width"], size: int, generator: Generator
) -> Float[Tensor, "batch channels height width"]:
    """Set a random square of each image to 0."""
    batch, _, height, width = images.shape
    if not 0 <= size <= min(height, width):
        raise InputError(f"cutout is {size}, images are {height} x {width}: cut at most {min(height, width)}")
    return images * ~squares((batch,), size, height, width, generator, images.device)


@dataclass(frozen=True)
class Augment:
    """The paper's augmentation of CIFAR images; zero, False or None turns an operation off.

    Attributes:
        pad: Padding of the random crop in pixels. (11 for the 64 px images of TinyImageNet.)
        flip: Whether images are mirrored at random.
        cutout: Side of the square that is set to 0. (0 for TinyImageNet, and for training with noise: a missing square
            would resemble occlusion, one of the noises.)
        area: Smallest fraction of the area that a random resized crop keeps; 1 turns it off. (0.08 for ImageNet.)
        border: Pixels on each side of the given images that are outside the image itself. A random resized crop may
            contain them; what is returned has none. (16 for the 224 px images of ImageNet.)
        noise: A noise to train with.
    """

    pad: int = 4
    flip: bool = True
    cutout: int = 8
    area: float = 1.0
    border: int = 0
    noise: Noise | None = None

    def __call__(
        self,
        images: UInt8[Tensor, "batch channels height width"],
        mean: Float[Tensor, "channels"] | Sequence[float],
        std: Float[Tensor, "channels"] | Sequence[float],
        generator: Generator,
    ) -> Float32[Tensor, "batch channels h w"]:
        """Crop, flip, normalize, add noise, cut out: masked and missing pixels are 0, the mean color."""
        if self.pad:
            images = reflect_crop(images, self.pad, generator)
        if self.flip:
            images = flip(images, generator)
        if self.noise and self.noise.of_pixels:
            images = self.noise(pixels(images), generator)
        normal = normalize(images, mean, std)
        if self.area < 1:
            normal = resized_crop(normal, self.area, generator, self.border)
        elif self.border:
            normal = normal[..., self.border : -self.border, self.border : -self.border]
        if self.noise and not self.noise.of_pixels:
            normal = self.noise(normal, generator)
        return cut_out(normal, self.cutout, generator) if self.cutout else normal
