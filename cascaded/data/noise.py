"""The paper's six noises, which change at every step; four remove information, two only move it. And gray images.

A noise turns a still image into a sequence of frames, with new random numbers per frame; as an augmentation it makes
one frame. Images are normalized: 0 is the mean color, which masked pixels get. Lengths are in pixels of a 32 px image,
as in the paper, and grow with the shorter side of the images.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from math import radians
from typing import Any, get_args

import torch
from jaxtyping import Bool
from torch import Generator, Tensor

from cascaded.data.frames import SIDE, Noise
from cascaded.data.geometry import Edges, blur, tiles, turn, window
from cascaded.data.gray import Gray
from cascaded.data.perlin import highest, perlin
from cascaded.data.sampling import squares, uniform, whole
from cascaded.errors import InputError, at_least, between


@dataclass(frozen=True)
class Focus(Noise):
    """A sharp square at a random position in a blurred image, like a fovea.

    Attributes:
        patch: Side of the sharp square.
        sigma: Standard deviation of the Gaussian, as in the reference code; the paper gives none. It does not shrink
            with images below 32 px: less than half a pixel would blur nothing.
    """

    patch: float = 16.0
    sigma: float = 0.5

    def __post_init__(self):
        between(0, SIDE, patch=self.patch, sigma=self.sigma)

    def frames(self, images: Tensor, steps: int, generator: Generator) -> Tensor:
        blurred = blur(images, max(self.sigma, scaled(self.sigma, images)))
        return torch.where(patches(images, steps, self.patch, generator), images, blurred)


@dataclass(frozen=True)
class Perlin(Noise):
    """The pixels at which gradient noise is highest get the mean color.

    Attributes:
        frequency: Cells of the noise along each side.
        cover: Fraction of the pixels that is masked, exact to a pixel in every frame.
    """

    frequency: int = 5
    cover: float = 0.4

    def __post_init__(self):
        between(0, 1, cover=self.cover)
        at_least(1, frequency=self.frequency)

    def frames(self, images: Tensor, steps: int, generator: Generator) -> Tensor:
        height, width = images.shape[-2:]
        field = perlin((steps, len(images)), self.frequency, height, width, generator, images.device)
        return images.masked_fill(highest(field, round(self.cover * height * width)).unsqueeze(-3), 0)


@dataclass(frozen=True)
class Occlusion(Noise):
    """A square of the mean color in front of the image.

    Attributes:
        patch: Side of the square.
    """

    patch: float = 16.0

    def __post_init__(self):
        between(0, SIDE, patch=self.patch)

    def frames(self, images: Tensor, steps: int, generator: Generator) -> Tensor:
        return images.masked_fill(patches(images, steps, self.patch, generator), 0)


@dataclass(frozen=True)
class Resolution(Noise):
    """Lower resolution: averages over tiles of random size.

    Attributes:
        factors: Sides of a tile in pixels of the image, all equally likely; 1 leaves a frame unchanged. If they do not
            divide the size of an image, the last tiles are smaller.
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
    """The image moved by whole pixels, drawn independently for every frame and direction.

    Attributes:
        reach: Largest distance in each direction.
        edges: What is outside the image.
    """

    reach: float = 8.0
    edges: Edges = "reflect"

    def __post_init__(self):
        between(0, SIDE, reach=self.reach)
        check_edges(self.edges)

    def frames(self, images: Tensor, steps: int, generator: Generator) -> Tensor:
        down, right = self.positions(images, steps, generator)
        return window(images.expand(steps, *images.shape), down, right, self.edges)

    def positions(self, images: Tensor, steps: int, generator: Generator) -> Tensor:
        """Positions per step, down and right: (2, steps, batch)."""
        reach = round(scaled(self.reach, images))
        return whole((2, steps, len(images)), -reach, reach, generator, images.device)


@dataclass(frozen=True)
class TranslationWalk(Translation):
    """A random walk of the image in whole pixels. The paper's frames are independent; its reference code walks.

        p_0 uniform in -reach..reach        p_t = p_{t-1} +- step        in x and in y, reflected at both ends

    Every p_t is then uniform too, so that each frame has the distribution of `Translation`.

    Attributes:
        step: Length of a step, at least one pixel of the image.
    """

    step: float = 1.0

    def __post_init__(self):
        super().__post_init__()
        between(0, SIDE, step=self.step)

    def positions(self, images: Tensor, steps: int, generator: Generator) -> Tensor:
        """A free walk, folded into its range once at the end."""
        start = super().positions(images, 1, generator)
        signs = 2 * whole((2, steps - 1, len(images)), 0, 1, generator, images.device) - 1
        free = torch.cat([start, max(1, round(scaled(self.step, images))) * signs], dim=1).cumsum(1)
        return folded(free, round(scaled(self.reach, images)))


@dataclass(frozen=True)
class Rotation(Noise):
    """A rotation about the center with bilinear interpolation.

    Attributes:
        degrees: Largest angle, in both directions.
        edges: What is outside the image.
    """

    degrees: float = 60.0
    edges: Edges = "reflect"

    def __post_init__(self):
        between(0, 180, degrees=self.degrees)
        check_edges(self.edges)

    def frames(self, images: Tensor, steps: int, generator: Generator) -> Tensor:
        largest = radians(self.degrees)
        angles = uniform((steps, len(images)), -largest, largest, generator, images.device)
        turned = turn(images.expand(steps, *images.shape).flatten(0, 1), angles.flatten(), self.edges)
        return turned.unflatten(0, angles.shape)


def check_edges(edges: str) -> None:
    """Check what is outside an image."""
    if edges not in get_args(Edges):
        raise InputError(f"edges is {edges!r}: give {' or '.join(get_args(Edges))}")


def scaled(length: float, images: Tensor) -> float:
    """A length in pixels of these images."""
    return length * min(images.shape[-2:]) / SIDE


def patches(images: Tensor, steps: int, patch: float, generator: Generator) -> Bool[Tensor, "steps batch 1 h w"]:
    """The pixels of one square per frame."""
    batch, _, height, width = images.shape
    return squares((steps, batch), round(scaled(patch, images)), height, width, generator, images.device)


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
"""The paper's noises, by name."""

KNOWN = NOISES | {"translation-walk": TranslationWalk(), "gray": Gray()}


def make_noise(text: str) -> Noise:
    """A noise by its name and the options that differ from the paper's: `focus`, `focus:sigma=2,patch=8`."""
    name, _, options = text.partition(":")
    if name not in KNOWN:
        nearest = get_close_matches(name.lower(), KNOWN, n=1, cutoff=0)[0]
        raise InputError(f"noise is {name!r}, known are {', '.join(KNOWN)}: did you mean {nearest!r}?")
    noise, changes = KNOWN[name], {}
    defaults = {field.name: field.default for field in fields(noise)}  # pyright: ignore[reportArgumentType]
    for option in options.split(",") if ":" in text else ():
        key, _, value = option.partition("=")
        if key not in defaults:
            raise InputError(f"noise is {text!r}, {name} has no option {key!r}: use {' or '.join(defaults)}")
        changes[key] = parse_option(text, value, defaults[key])
    return replace(noise, **changes)  # pyright: ignore[reportArgumentType]


def parse_option(text: str, value: str, default: Any) -> Any:
    """The value of an option, of the type of its default; tuples are written as 1+2+4."""
    try:
        return tuple(map(type(default[0]), value.split("+"))) if isinstance(default, tuple) else type(default)(value)
    except ValueError as error:
        example = "+".join(map(str, default)) if isinstance(default, tuple) else default
        raise InputError(f"noise is {text!r}, {value!r} is not a value: give one such as {example}") from error
