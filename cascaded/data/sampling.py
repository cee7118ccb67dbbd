"""Random numbers and squares per image.

They are drawn on the device of the generator and then moved to the images: a seed gives the same on every device.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool
from torch import Generator, Tensor


def uniform(shape: tuple[int, ...], low: float, high: float, generator: Generator, device: torch.device) -> Tensor:
    """Uniform numbers from low to high."""
    return torch.rand(shape, generator=generator, device=generator.device).to(device) * (high - low) + low


def normal(shape: tuple[int, ...], generator: Generator, device: torch.device) -> Tensor:
    """Normally distributed numbers with mean 0 and standard deviation 1."""
    return torch.randn(shape, generator=generator, device=generator.device).to(device)


def whole(shape: tuple[int, ...], low: int, high: int, generator: Generator, device: torch.device) -> Tensor:
    """Uniform integers from low to high, both included."""
    return torch.randint(low, high + 1, shape, generator=generator, device=generator.device).to(device)


def squares(
    shape: tuple[int, ...], size: int, height: int, width: int, generator: Generator, device: torch.device
) -> Bool[Tensor, "*shape 1 height width"]:
    """The pixels of one square per image, at a random position inside the image."""
    inside = []
    for side in (height, width):
        since = torch.arange(side, device=device) - whole((*shape, 1), 0, side - size, generator, device)
        inside.append((since >= 0) & (since < size))
    rows, columns = inside
    return (rows.unsqueeze(-1) & columns.unsqueeze(-2)).unsqueeze(-3)
