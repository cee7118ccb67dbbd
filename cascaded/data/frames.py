"""What all noises have in common: they turn still images into sequences of noisy frames."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from jaxtyping import Float
from torch import Generator, Tensor

from cascaded.errors import InputError, at_least

SIDE = 32
"""Side of the paper's images in pixels, which lengths refer to."""


class Noise(ABC):
    """A corruption of images. It has parameters and no state; all randomness comes from the generator.

    Attributes:
        of_pixels: Whether it takes pixels in 0..1, before they are normalized.
    """

    of_pixels: ClassVar[bool] = False

    @abstractmethod
    def frames(self, images: Tensor, steps: int, generator: Generator) -> Tensor:
        """Noisy frames of images that have been checked."""

    def film(
        self, images: Float[Tensor, "batch channels height width"], steps: int, generator: Generator
    ) -> Float[Tensor, "steps batch channels height width"]:
        """One noisy frame of normalized images, or of pixels in 0..1 if `of_pixels`, per step; all are drawn anew."""
        if images.dim() != 4 or 0 in images.shape:
            shape = tuple(images.shape)
            raise InputError(f"images have shape {shape}: give (batch, channels, height, width), none zero")
        if self.of_pixels and (not images.is_floating_point() or images.min() < 0 or images.max() > 1):
            raise InputError(
                f"images are {images.dtype}, {images.min():g} to {images.max():g}, it takes floats from 0 to 1: "
                "divide bytes by 255, and normalize afterwards"
            )
        if not images.is_floating_point():
            raise InputError(f"images are {images.dtype}, noise needs floats with mean color 0: normalize them first")
        at_least(1, steps=steps)
        return self.frames(images, steps, generator)

    def __call__(
        self, images: Float[Tensor, "batch channels height width"], generator: Generator
    ) -> Float[Tensor, "batch channels height width"]:
        """One noisy frame, for augmentation; images as for `film`."""
        return self.film(images, 1, generator)[0]
