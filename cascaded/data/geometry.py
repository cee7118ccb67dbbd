"""Deterministic operations on batches of images: move, blur, average over tiles, rotate, make gray.

Outside its edges an image is continued by its reflection, or by repeating its edge pixels.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64, Shaped
from torch import Tensor

from cascaded.errors import InputError

LUMINANCE = (0.299, 0.587, 0.114)
Edges = Literal["reflect", "repeat"]
"""What is outside an image: its reflection, as in the paper, or its edge pixels, as in the reference code."""


def reflected(index: Int64[Tensor, "*shape"], size: int) -> Int64[Tensor, "*shape"]:
    """The pixel at any index, with a mirror at the first and at the last of `size` pixels.

        ... 2 1 [0 1 2 .. m] m-1 m-2 ...        r(i) = m - |m - (i mod 2m)|        m = size - 1

    Farther out, reflections of reflections follow.
    """
    m = size - 1
    return m - (m - index % max(2 * m, 1)).abs()


def outside(index: Int64[Tensor, "*shape"], size: int, edges: Edges) -> Int64[Tensor, "*shape"]:
    """The pixel at any index, also outside of an image."""
    return reflected(index, size) if edges == "reflect" else index.clamp(0, size - 1)


def window(
    images: Shaped[Tensor, "*lead channels height width"],
    down: Int64[Tensor, "*lead"],
    right: Int64[Tensor, "*lead"],
    edges: Edges = "reflect",
) -> Shaped[Tensor, "*lead channels height width"]:
    """Each image, moved by whole pixels; r is `outside`.

        out[y, x] = image[r(y + down), r(x + right)]

    One gather without a padded copy; on a CPU twice as fast as padding and slicing, five times as fast as grid_sample.
    """
    height, width = images.shape[-2:]
    rows = outside(torch.arange(height, device=images.device) + down.unsqueeze(-1), height, edges)
    columns = outside(torch.arange(width, device=images.device) + right.unsqueeze(-1), width, edges)
    pixels = (rows.unsqueeze(-1) * width + columns.unsqueeze(-2)).flatten(-2).unsqueeze(-2)
    flat = images.flatten(-2)
    return flat.gather(-1, pixels.expand(flat.shape)).view(images.shape)


def blur(images: Float[Tensor, "*lead height width"], sigma: float) -> Float[Tensor, "*lead height width"]:
    """Gaussian blur of reflected images. A weight is the integral of the Gaussian over a pixel, up to 3 sigma.

        out = B_h image B_w'        B[y, r(y + k)] += w_k        w_k ~ Phi((k + 1/2) / sigma) - Phi((k - 1/2) / sigma)

    With sigma = 1/2 pixel this is the 3x3 kernel of the reference code, (.158, .684, .158) in each direction.
    It is separable: two matrix products, one for rows and one for columns.
    """
    radius = max(0, math.ceil(3 * sigma - 0.5))
    k = torch.arange(-radius, radius + 1)
    borders = (torch.arange(-radius, radius + 2, dtype=torch.float64) - 0.5) / max(sigma, 1e-6)
    w = torch.special.ndtr(borders).diff()
    w = w / w.sum()
    rows, columns = (
        torch.zeros(side, side, dtype=w.dtype)
        .scatter_add_(1, reflected(torch.arange(side)[:, None] + k, side), w.expand(side, -1))
        .to(images)
        for side in images.shape[-2:]
    )
    return rows @ images @ columns.mT


def gray(images: Float[Tensor, "*lead channels height width"]) -> Float[Tensor, "*lead 1 height width"]:
    """Luminance of pixels in 0..1, as in ITU-R BT.601: .299 R + .587 G + .114 B. One channel stays as it is."""
    channels = images.shape[-3]
    if channels not in (1, 3):
        raise InputError(f"images have {channels} channels, gray is made of 1 or 3: give RGB images")
    if channels == 1:
        return images
    return torch.einsum("c,...chw->...hw", images.new_tensor(LUMINANCE), images).unsqueeze(-3)


def tiles(
    images: Float[Tensor, "batch channels height width"], factor: int
) -> Float[Tensor, "batch channels height width"]:
    """Each pixel becomes the average of its tile."""
    height, width = images.shape[-2:]
    means = F.avg_pool2d(images, factor, ceil_mode=True)
    return means.repeat_interleave(factor, -2)[..., :height, :].repeat_interleave(factor, -1)[..., :width]


def turn(
    images: Float[Tensor, "batch channels height width"], angles: Float[Tensor, "batch"], edges: Edges = "reflect"
) -> Float[Tensor, "batch channels height width"]:
    """Rotate each image by its angle, in radians, counter-clockwise."""
    height, width = images.shape[-2:]
    y, x = (torch.linspace(-(side - 1) / 2, (side - 1) / 2, side).to(images) for side in (height, width))
    cos, sin = angles.cos().to(images)[:, None, None], angles.sin().to(images)[:, None, None]
    # source of each output pixel, in pixels from the center, then in grid_sample's -1..1 across the image
    right = (cos * x - sin * y[:, None]) / ((width - 1) / 2 or 1)
    down = (sin * x + cos * y[:, None]) / ((height - 1) / 2 or 1)
    grid = torch.stack([right, down], dim=-1)
    # align_corners: the mirror is at the last pixel, as in `reflected`
    padding = "reflection" if edges == "reflect" else "border"
    return F.grid_sample(images, grid, padding_mode=padding, align_corners=True)
