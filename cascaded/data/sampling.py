"""Draws: numbers and squares, a draw of its own for each image.

They are made where their generator lives and then moved to the images: a seed means the same on every device.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool
from torch import Generator, Tensor


def uniform(shape: tuple[int, ...], low: float, high: float, generator: Generator, device: torch.device) -> Tensor:
    """Numbers from low to high, all equally likely."""
    return torch.rand(shape, generator=generator, device=generator.device).to(device) * (high - low) + low


def whole(shape: tuple[int, ...], low: int, high: int, generator: Generator, device: torch.device) -> Tensor:
    """Whole numbers from low to high, both among them, all equally likely."""
    return torch.randint(low, high + 1, shape, generator=generator, device=generator.device).to(device)


def squares(
    shape: tuple[int, ...], size: int, height: int, width: int, generator: Generator, device: torch.device
) -> Bool[Tensor, "*shape 1 height width"]:
    """For each image the pixels of one square, at any place at which all of it is inside."""
    inside = []
    for side in (height, width):
        since = torch.arange(side, device=device) - whole((*shape, 1), 0, side - size, generator, device)
        inside.append((since >= 0) & (since < size))
    rows, columns = inside
    return (rows.unsqueeze(-1) & columns.unsqueeze(-2)).unsqueeze(-3)
