"""Noise that changes at every step: six ways to see an image badly. Four lose information, two only move it.

A noise makes a film of a still image, with a new draw at every step; as an augmentation it is a film of one frame.
Images are floats in 0..1, not yet normalised: black is 0. Lengths are parts of an image's shorter side, so that the
paper's figures, which are for 32 px, mean the same at any size.
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
from cascaded.errors import InputError


class Noise(ABC):
    """A way to spoil images: it has parameters and no state, all randomness is in the generator that is passed."""

    @abstractmethod
    def frames(self, images: Tensor, steps: int, generator: Generator) -> Tensor:
        """The film, of images that have been checked."""

    def film(
        self, images: Float[Tensor, "batch channels height width"], steps: int, generator: Generator
    ) -> Float[Tensor, "steps batch channels height width"]:
        """A noisy frame a step, each step of each image with a draw of its own."""
        check(images, steps)
        return self.frames(images, steps, generator)

    def __call__(
        self, images: Float[Tensor, "batch channels height width"], generator: Generator
    ) -> Float[Tensor, "batch channels height width"]:
        """An augmentation: a film of one frame."""
        return self.film(images, 1, generator)[0]


@dataclass(frozen=True)
class Focus(Noise):
    """A sharp square in a blurred image: a glance, its fovea somewhere.

    Attributes:
        patch: Side of the sharp square; 16 of 32 px.
        sigma: Width of the Gaussian; 2 of 32 px. The paper gives none. With this one a frame loses about as much of the
            variance of CIFAR-10 images as under `Resolution` (15 and 17 %), and to those two the paper's networks lose
            the same accuracy. (The reference code's, half a pixel, takes less than 1 %.)
    """

    patch: float = 1 / 2
    sigma: float = 1 / 16

    def __post_init__(self):
        check_part("patch", self.patch)
        check_part("sigma", self.sigma)

    def frames(self, images: Tensor, steps: int, generator: Generator) -> Tensor:
        blurred = blur(images, self.sigma * min(images.shape[-2:]))
        return torch.where(patches(images, steps, self.patch, generator), images, blurred)


@dataclass(frozen=True)
class Perlin(Noise):
    """Blots: the pixels at which gradient noise is highest are black.

    Attributes:
        frequency: Cells of the noise along each side.
        cover: Part of the pixels that is lost. It is reached exactly, to a pixel, in every frame.
        value: What takes their place. Black, as in the reference code; the paper does not say.
    """

    frequency: int = 5
    cover: float = 0.4
    value: float = 0.0

    def __post_init__(self):
        check_part("cover", self.cover)
        check_part("value", self.value)
        if self.frequency < 1:
            raise InputError(f"frequency is {self.frequency}: give at least one cell a side")

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
        check_part("patch", self.patch)
        check_part("value", self.value)

    def frames(self, images: Tensor, steps: int, generator: Generator) -> Tensor:
        return torch.where(patches(images, steps, self.patch, generator), self.value, images)


@dataclass(frozen=True)
class Resolution(Noise):
    """Coarse pixels: averages over tiles, the size of which is drawn.

    Attributes:
        factors: Sides of a tile, all equally likely. In pixels: these are factors, not parts of a side. (The reference
            code also lets a third of the frames pass untouched; the paper does not.) Where they do not divide an image,
            the tiles at its far edges are smaller.
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
    """An image that wanders over its own reflections, by whole pixels.

        p_0 uniform in -reach..reach        p_t = p_{t-1} +- step        in x and in y, thrown back at both ends

    Every p_t is then uniform too, so that each frame of a film is what a network has learned from as an augmentation.
    (The reference code's walk is the same but starts in the middle, and repeats the edge instead of reflecting.)

    Attributes:
        reach: Farthest place in each direction; 8 of 32 px.
        step: How far a step goes; 1 of 32 px, and at least one pixel.
    """

    reach: float = 1 / 4
    step: float = 1 / 32

    def __post_init__(self):
        check_part("reach", self.reach)
        check_part("step", self.step)

    def frames(self, images: Tensor, steps: int, generator: Generator) -> Tensor:
        down, right = self.walk(images, steps, generator)
        return window(images.expand(steps, *images.shape), down, right)

    def walk(self, images: Tensor, steps: int, generator: Generator) -> Tensor:
        """Places over time, down and right: (2, steps, batch). A free walk, folded into its range once at the end."""
        side, batch, device = min(images.shape[-2:]), len(images), images.device
        reach = round(self.reach * side)
        start = whole((2, 1, batch), -reach, reach, generator, device)
        signs = 2 * whole((2, steps - 1, batch), 0, 1, generator, device) - 1
        free = torch.cat([start, max(1, round(self.step * side)) * signs], dim=1).cumsum(1)
        return folded(free, reach)


@dataclass(frozen=True)
class Rotation(Noise):
    """An image turned about its centre, over its own reflections; between pixels it is interpolated.

    Attributes:
        degrees: Largest angle, to either side.
    """

    degrees: float = 60.0

    def __post_init__(self):
        if not 0 <= self.degrees <= 180:
            raise InputError(f"degrees is {self.degrees}: give the largest angle, from 0 to 180")

    def frames(self, images: Tensor, steps: int, generator: Generator) -> Tensor:
        largest = math.radians(self.degrees)
        angles = uniform((steps, len(images)), -largest, largest, generator, images.device)
        turned = turn(images.expand(steps, *images.shape).flatten(0, 1), angles.flatten())
        return turned.unflatten(0, angles.shape)


def check(images: Tensor, steps: int) -> None:
    """Images that can be spoiled, and a number of frames."""
    if images.dim() != 4 or 0 in images.shape:
        raise InputError(f"images have shape {tuple(images.shape)}: give (batch, channels, height, width), none zero")
    if steps < 1:
        raise InputError(f"steps is {steps}: ask for at least 1")
    low, high = images.aminmax()
    if not (images.is_floating_point() and low >= 0 and high <= 1):
        raise InputError(
            f"images are {images.dtype} from {low.item():.3g} to {high.item():.3g}, noise is for floats from 0 to 1: "
            "divide bytes by 255, and normalise after the noise"
        )


def check_part(name: str, part: float) -> None:
    """A parameter that is a part of a whole."""
    if not 0 <= part <= 1:
        raise InputError(f"{name} is {part}: it is a part of the whole, give 0 to 1")


def patches(images: Tensor, steps: int, patch: float, generator: Generator) -> Bool[Tensor, "steps batch 1 h w"]:
    """The pixels of a square a frame."""
    batch, _, height, width = images.shape
    size = round(patch * min(height, width))
    return squares((steps, batch), size, height, width, generator, images.device)


def folded(walk: Tensor, reach: int) -> Tensor:
    """A free walk, thrown back by two walls: as far beyond a wall as it went, it is before it.

    The walls stand half a pixel beyond -reach and reach: so a walk that starts anywhere between them, all places
    equally likely, is at every step anywhere with the same chance.
    """
    n = 2 * reach + 1  # places there are
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
