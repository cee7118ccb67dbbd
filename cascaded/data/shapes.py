"""A generated set for segmentation: noisy images of overlapping triangles, squares and discs, with their masks.

All shapes have the same range of areas and gray values, so that a pixel's class follows from the outline around it and
not from the pixel. A shape covers those drawn before it.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from cascaded.errors import at_least, unknown

CLASSES = ("background", "triangle", "square", "disc")
SIDES = {"triangle": 3, "square": 4, "disc": 36}  # a disc is a polygon whose corners are smaller than a pixel
SIDE = 32  # pixels of an image
SHAPES = (2, 5)  # per image
RADIUS = (4.0, 8.0)  # pixels: of the disc with the same area
GRAY = (0.35, 1.0)  # of a shape; the background is 0
NOISE = 0.25  # standard deviation of the Gaussian noise of a pixel
ITEMS = {"train": 4_000, "validation": 500, "test": 1_000}
SEED = 0


def shapes(
    split: str = "train", items: int | None = None, seed: int = SEED
) -> tuple[Float[Tensor, "items 1 side side"], Int64[Tensor, "items side side"]]:
    """Images and their masks, the class of every pixel (an index into `CLASSES`).

    An image depends on seed, split and its row only: the first 100 images are the same, however many are made.

    Args:
        split: `train`, `validation` or `test`.
        items: How many images; None for 4,000, 500 or 1,000.
        seed: Seed of the random numbers.
    """
    if split not in ITEMS:
        raise unknown("split", split, ITEMS)
    items = ITEMS[split] if items is None else items
    at_least(1, items=items)
    made = [make_image(np.random.default_rng([seed, list(ITEMS).index(split), row])) for row in range(items)]
    images, masks = map(np.stack, zip(*made, strict=True))
    return torch.from_numpy(images).unsqueeze(1).float(), torch.from_numpy(masks)


def make_image(
    generator: np.random.Generator,
) -> tuple[Float[np.ndarray, "side side"], Int64[np.ndarray, "side side"]]:
    """An image with noise, and its mask."""
    image, mask = np.zeros((SIDE, SIDE)), np.zeros((SIDE, SIDE), np.int64)
    for _ in range(generator.integers(*SHAPES, endpoint=True)):
        name = CLASSES[generator.integers(1, len(CLASSES))]
        center, angle = generator.uniform(0, SIDE, 2), generator.uniform(0, 2 * np.pi)
        covered = polygon(SIDES[name], center, generator.uniform(*RADIUS), angle)
        image[covered], mask[covered] = generator.uniform(*GRAY), CLASSES.index(name)
    return image + NOISE * generator.standard_normal(image.shape), mask


def polygon(sides: int, center: Float[np.ndarray, "2"], radius: float, angle: float) -> Bool[np.ndarray, "side side"]:
    """The pixels of a regular polygon with the area of a disc of this radius: those on the inner side of every edge."""
    y, x = np.mgrid[:SIDE, :SIDE] + 0.5 - center[:, None, None]
    directions = angle + 2 * np.pi * np.arange(sides) / sides  # from the center to the middle of each edge
    edge = radius * np.sqrt(np.pi / (sides * np.tan(np.pi / sides)))  # distance of the edges from the center
    outwards = np.cos(directions)[:, None, None] * x + np.sin(directions)[:, None, None] * y
    return outwards.max(axis=0) < edge
