"""The paper's six noises, which change at every step. Four remove information, two only move it.

A noise turns a still image into a sequence of frames, with new random numbers per frame; as an augmentation it makes
one frame. Images are floats in 0..1 before normalisation: black is 0. Lengths are fractions of an image's shorter side,
so that the paper's values, which are for 32 px, mean the same at any size.
"""

from __future__ import annotations

import difflib
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor

from cascaded.data.geometry import blur, tiles, turn, window
from cascaded.data.perlin import highest, perlin
from cascaded.data.sampling import squares, uniform, whole
from cascaded.errors import InputError, at_least, between


class Noise(ABC):
    """A corruption of images. It has parameters and no state; all randomness comes from the generator."""

    @abstractmethod
    def frames(self, images: Tensor, steps: int, generator: Generator) -> Tensor:
        """Noisy frames of images that have been checked."""

    def film(
        self, images: Float[Tensor, "batch channels height width"], steps: int, generator: Generator
    ) -> Float[Tensor, "steps batch channels height width"]:
        """One noisy frame per step, with new random numbers per step and image."""
        check(images, steps)
        return self.frames(images, steps, generator)

    def __call__(
        self, images: Float[Tensor, "batch channels height width"], generator: Generator
    ) -> Float[Tensor, "batch channels height width"]:
        """One noisy frame, for augmentation."""
        return self.film(images, 1, generator)[0]


@dataclass(frozen=True)
class Focus(Noise):
    """A sharp square at a random position in a blurred image, like a fovea.

    Attributes:
        patch: Side of the sharp square; 16 of 32 px.
        sigma: Standard deviation of the Gaussian; 2 of 32 px. The paper gives none. With this value a frame loses about
            as much of the variance of CIFAR-10 images as under `Resolution` (15 and 17 %), and the paper's networks
            lose the same accuracy under these two. (The reference code uses half a pixel, which removes less than 1 %.)
    """

    patch: float = 1 / 2
    sigma: float = 1 / 16

    def __post_init__(self):
        check_fractions(patch=self.patch, sigma=self.sigma)

    def frames(self, images: Tensor, steps: int, generator: Generator) -> Tensor:
        blurred = blur(images, self.sigma * min(images.shape[-2:]))
        return torch.where(patches(images, steps, self.patch, generator), images, blurred)


@dataclass(frozen=True)
class Perlin(Noise):
    """The pixels at which gradient noise is highest are black.

    Attributes:
        frequency: Cells of the noise along each side.
        cover: Fraction of the pixels that is replaced, exact to a pixel in every frame.
        value: Their new value. Black, as in the reference code; the paper gives none.
    """

    frequency: int = 5
    cover: float = 0.4
    value: float = 0.0

    def __post_init__(self):
        check_fractions(cover=self.cover, value=self.value)
        at_least(1, frequency=self.frequency)

    def frames(self, images: Tensor, steps: int, generator: Generator) -> Tensor:
        height, width = images.shape[-2:]
        field = perlin((steps, len(images)), self.frequency, height, width, generator, images.device)
        blots = highest(field, round(self.cover * height * width)).unsqueeze(-3)
        return torch.where(blots, self.value, images)


@dataclass(frozen=True)
class Occlusion(Noise):
    """A square in front of the image.

    Attributes:
        patch: Side of the square; 16 of 32 px.
        value: Its grey value. Black, as in the reference code.
    """

    patch: float = 1 / 2
    value: float = 0.0

    def __post_init__(self):
        check_fractions(patch=self.patch, value=self.value)

    def frames(self, images: Tensor, steps: int, generator: Generator) -> Tensor:
        return torch.where(patches(images, steps, self.patch, generator), self.value, images)


@dataclass(frozen=True)
class Resolution(Noise):
    """Lower resolution: averages over tiles of random size.

    Attributes:
        factors: Sides of a tile in pixels, all equally likely. (The reference code also leaves a third of the frames
            unchanged; the paper does not.) If they do not divide the size of an image, the last tiles are smaller.
    """

    factors: tuple[int, ...] = (2, 4)

    def __post_init__(self):
        if not self.factors or min(self.factors) < 1:
            raise InputError(f"factors are {self.factors}: give at least one tile size of at least 1 pixel")

    def frames(self, images: Tensor, steps: int, generator: Generator) -> Tensor:
        batch, device = len(images), images.device
        tiled = torch.stack([tiles(images, factor) for factor in self.factors])
        chosen = whole((steps, batch), 0, len(self.factors) - 1, generator, device)
        return tiled[chosen, torch.arange(batch, device=device)]


@dataclass(frozen=True)
class Translation(Noise):
    """A random walk of the image in whole pixels; its reflections fill the borders.

        p_0 uniform in -reach..reach        p_t = p_{t-1} +- step        in x and in y, reflected at both ends

    Every p_t is then uniform too, so that each frame has the distribution of the augmentation.
    (The walk of the reference code starts in the middle, and repeats the edge instead of reflecting it.)

    Attributes:
        reach: Largest distance in each direction; 8 of 32 px.
        step: Length of a step; 1 of 32 px, and at least one pixel.
    """

    reach: float = 1 / 4
    step: float = 1 / 32

    def __post_init__(self):
        check_fractions(reach=self.reach, step=self.step)

    def frames(self, images: Tensor, steps: int, generator: Generator) -> Tensor:
        down, right = self.walk(images, steps, generator)
        return window(images.expand(steps, *images.shape), down, right)

    def walk(self, images: Tensor, steps: int, generator: Generator) -> Tensor:
        """Positions per step, down and right: (2, steps, batch). A free walk, folded into its range once at the end."""
        side, batch, device = min(images.shape[-2:]), len(images), images.device
        reach = round(self.reach * side)
        start = whole((2, 1, batch), -reach, reach, generator, device)
        signs = 2 * whole((2, steps - 1, batch), 0, 1, generator, device) - 1
        free = torch.cat([start, max(1, round(self.step * side)) * signs], dim=1).cumsum(1)
        return folded(free, reach)


@dataclass(frozen=True)
class Rotation(Noise):
    """A rotation about the centre with bilinear interpolation; reflections fill the borders.

    Attributes:
        degrees: Largest angle, in both directions.
    """

    degrees: float = 60.0

    def __post_init__(self):
        between(0, 180, degrees=self.degrees)

    def frames(self, images: Tensor, steps: int, generator: Generator) -> Tensor:
        largest = math.radians(self.degrees)
        angles = uniform((steps, len(images)), -largest, largest, generator, images.device)
        turned = turn(images.expand(steps, *images.shape).flatten(0, 1), angles.flatten())
        return turned.unflatten(0, angles.shape)


def check(images: Tensor, steps: int) -> None:
    """Check images and the number of frames."""
    if images.dim() != 4 or 0 in images.shape:
        raise InputError(f"images have shape {tuple(images.shape)}: give (batch, channels, height, width), none zero")
    at_least(1, steps=steps)
    low, high = images.aminmax()
    if not (images.is_floating_point() and low >= 0 and high <= 1):
        raise InputError(
            f"images are {images.dtype} from {low.item():.3g} to {high.item():.3g}, noise needs floats from 0 to 1: "
            "divide bytes by 255, and normalise after the noise"
        )


def check_fractions(**fractions: float) -> None:
    """Check parameters that are fractions, by name."""
    for name, value in fractions.items():
        if not 0 <= value <= 1:
            raise InputError(f"{name} is {value}: it is a part of the whole, give 0 to 1")


def patches(images: Tensor, steps: int, patch: float, generator: Generator) -> Bool[Tensor, "steps batch 1 h w"]:
    """The pixels of one square per frame."""
    batch, _, height, width = images.shape
    size = round(patch * min(height, width))
    return squares((steps, batch), size, height, width, generator, images.device)


def folded(walk: Tensor, reach: int) -> Tensor:
    """A free walk, reflected at two walls.

    The walls are half a pixel beyond -reach and reach: a walk with a uniform start is then uniform at every step.
    """
    n = 2 * reach + 1  # number of positions
    u = (walk + reach) % (2 * n)
    return torch.where(u < n, u, 2 * n - 1 - u) - reach


NOISES: dict[str, Noise] = {
    "focus": Focus(),
    "perlin": Perlin(),
    "occlusion": Occlusion(),
    "resolution": Resolution(),
    "translation": Translation(),
    "rotation": Rotation(),
}


def make_noise(name: str) -> Noise:
    """A noise by its name, with the paper's parameters."""
    if name not in NOISES:
        nearest = difflib.get_close_matches(name.lower(), NOISES, n=1, cutoff=0)[0]
        raise InputError(f"noise is {name!r}, known are {', '.join(NOISES)}: did you mean {nearest!r}?")
    return NOISES[name]
