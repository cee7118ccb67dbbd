"""Batch statistics across processes: several half batches are normalized as the whole batch would be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, distributed


class _SumAcross(torch.autograd.Function):
    """The sum over all processes, in all of them; each one's gradient is then the sum of all gradients."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        total = x.clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _SumAcross.forward(ctx, gradient)


def processes(shared: bool) -> int:
    """How many processes a batch is shared between."""
    return distributed.get_world_size() if shared else 1


def batch_norm_across(
    frames: Sequence[Float[Tensor, "batch channels height width"]],
    weight: Float[Tensor, "time channels"],
    bias: Float[Tensor, "time channels"],
    eps: float,
) -> tuple[list[Tensor], Float[Tensor, "time channels"], Float[Tensor, "time channels"]]:
    """Frames normalized over the batches of all processes, with their means and unbiased variances.

    Every process must bring the same number of items and steps.
    """
    kind = frames[0].dtype
    frames = [x.float() if kind in (torch.float16, torch.bfloat16) else x for x in frames]
    count = frames[0][:, 0].numel() * processes(shared=True)
    means = _sum([x.sum(dim=(0, 2, 3)) for x in frames]) / count
    centered = [x - _map(mean) for x, mean in zip(frames, means, strict=True)]
    variances = _sum([x.square().sum(dim=(0, 2, 3)) for x in centered]) / count
    scales = weight * (variances + eps).rsqrt()
    normed = [(x * _map(scale) + _map(b)).to(kind) for x, scale, b in zip(centered, scales, bias, strict=True)]
    return normed, means.detach(), variances.detach() * (count / max(count - 1, 1))


def _sum(local: list[Tensor]) -> Tensor:
    return cast(Tensor, _SumAcross.apply(torch.stack(local)))


def _map(channels: Float[Tensor, "channels"]) -> Float[Tensor, "1 channels 1 1"]:
    return channels.view(1, -1, 1, 1)
