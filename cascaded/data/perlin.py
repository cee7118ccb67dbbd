"""Gradient noise (Perlin 1985, smoothed as in 2002) for batches."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor

from cascaded.data.sampling import uniform


def perlin(
    shape: tuple[int, ...], cells: int, height: int, width: int, generator: Generator, device: torch.device
) -> Float[Tensor, "*shape height width"]:
    """One field per image, with height 0 and a random slope at the corners of its cells, smooth between them.

        n(y, x) = sum_ij s(y - i) s(x - j) g_ij . (y - i, x - j)        |g_ij| = 1

    Only the four corners around a pixel count (s is zero from a distance of one cell on). As every term is a product
    of a factor in y and a factor in x, the sum is two matrix products.
    """
    angles = uniform((*shape, cells + 1, cells + 1), 0, 2 * math.pi, generator, device)
    (y, dy), (x, dx) = ((part.to(device) for part in influence(side, cells)) for side in (height, width))
    return dy @ angles.sin() @ x.mT + y @ angles.cos() @ dx.mT


def influence(side: int, cells: int) -> tuple[Float[Tensor, "side corners"], Float[Tensor, "side corners"]]:
    """The weight of each corner at each pixel, and the weight times the distance between the two.

        s(d) = fade(1 - |d|), zero from |d| = 1 on        fade(t) = 6 t^5 - 15 t^4 + 10 t^3

    fade(1 - t) = 1 - fade(t): weighting with s is Perlin's interpolation.
    """
    pixels = (torch.arange(side) + 0.5) * cells / side  # pixel centers: a pixel at a corner would always be 0
    d = pixels[:, None] - torch.arange(cells + 1)
    t = (1 - d.abs()).clamp(min=0)
    s = t**3 * (t * (6 * t - 15) + 10)
    return s, s * d


def highest(field: Float[Tensor, "*shape height width"], count: int) -> Bool[Tensor, "*shape height width"]:
    """The `count` highest pixels of each field, by rank, so that ties do not change their number."""
    flat = field.flatten(-2)
    places = flat.topk(count, dim=-1, sorted=False).indices
    return torch.zeros_like(flat, dtype=torch.bool).scatter_(-1, places, True).view(field.shape)
