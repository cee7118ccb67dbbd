"""Batch norm and the join of a residual block over all steps, each written into one tensor on a CPU.

Computed frame by frame and put together with `torch.cat`, results and gradients would be copied several times: a tenth
of a training step of a narrow network.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from cascaded.cascade.film import layout
from cascaded.errors import InputError

_aten = torch.ops.aten


class _NormSteps(torch.autograd.Function):
    """Batch norm of each frame with the statistics of its own batch."""

    @staticmethod
    def forward(ctx, frames: Tensor, weight: Tensor, bias: Tensor, eps: float):  # pyright: ignore[reportIncompatibleMethodOverride]
        out = torch.empty_like(frames)
        means, variances, center, inverse = weight.new_zeros(4, *weight.shape)
        rows = zip(*(each.unbind() for each in (weight, bias, means, variances, center, inverse)), strict=True)
        for x, y, row in zip(frames.chunk(len(weight)), out.chunk(len(weight)), rows, strict=True):
            _aten.native_batch_norm.out(x, *row[:4], True, 1.0, eps, out=y, save_mean=row[4], save_invstd=row[5])
        ctx.save_for_backward(frames, weight, center, inverse)
        ctx.eps = eps
        ctx.mark_non_differentiable(means, variances)
        return out, means, variances

    @staticmethod
    def backward(ctx, gradient: Tensor, *_):  # pyright: ignore[reportIncompatibleMethodOverride]
        frames, weight, center, inverse = ctx.saved_tensors
        rows = (each.unbind() for each in (weight, center, inverse))
        steps = zip(gradient.chunk(len(weight)), frames.chunk(len(weight)), *rows, strict=True)
        found = [
            _aten.native_batch_norm_backward(g, x, w, None, None, mean, scale, True, ctx.eps, [True, True, True])
            for g, x, w, mean, scale in steps
        ]
        of_frames, of_weight, of_bias = zip(*found, strict=True)
        return torch.cat(of_frames), torch.stack(of_weight), torch.stack(of_bias), None


def norm_steps(
    frames: Float[Tensor, "time_batch channels *rest"],
    weight: Float[Tensor, "time channels"],
    bias: Float[Tensor, "time channels"],
    eps: float,
) -> tuple[Float[Tensor, "time_batch channels *rest"], Float[Tensor, "time channels"], Float[Tensor, "time channels"]]:
    """Every frame normalized with the statistics of its own batch, and these: means and unbiased variances."""
    if frames.device.type == "cpu":
        return _NormSteps.apply(frames, weight, bias, eps)  # pyright: ignore[reportReturnType]
    means, variances = weight.detach().new_zeros(2, *weight.shape)
    steps = zip(frames.chunk(len(weight)), weight, bias, means, variances, strict=True)
    cudnn = torch.backends.cudnn.enabled
    # momentum 1: torch leaves the batch's own statistics behind in the buffers it is handed
    normed = [torch.batch_norm(*each, True, 1.0, eps, cudnn) for each in steps]
    return torch.cat(normed), means, variances


class _AddRelu(torch.autograd.Function):
    """`relu(a + b)`, where the shorter of the two repeats its last frame."""

    @staticmethod
    def forward(ctx, a: Tensor, b: Tensor, batch: int) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        long, short = (a, b) if len(a) >= len(b) else (b, a)
        out = torch.empty_like(long)
        torch.add(long[: len(short)], short, out=out[: len(short)])
        for at in range(len(short), len(long), batch):
            torch.add(long[at : at + batch], short[-batch:], out=out[at : at + batch])
        ctx.save_for_backward(out.relu_())
        ctx.lengths, ctx.batch = (len(a), len(b)), batch
        return out

    @staticmethod
    def backward(ctx, gradient: Tensor):  # pyright: ignore[reportIncompatibleMethodOverride]
        (out,) = ctx.saved_tensors
        gradient = _aten.threshold_backward(gradient, out, 0)
        return *(_of_first(gradient, length, ctx.batch) for length in ctx.lengths), None


def _of_first(gradient: Tensor, length: int, batch: int) -> Tensor:
    """The gradient of the first `length` rows, of which the last frame was repeated."""
    if length == len(gradient):
        return gradient
    total = gradient[:length].clone()
    for repeated in gradient[length:].split(batch):
        total[length - batch :] += repeated
    return total


def add_relu(
    a: Shaped[Tensor, "time_a_batch *rest"], b: Shaped[Tensor, "time_b_batch ..."], batch: int
) -> Shaped[Tensor, "time_batch *rest"]:
    """`relu(a + b)`, frame by frame; the shorter of the two repeats its last frame."""
    if a.shape[1:] != b.shape[1:]:
        raise InputError(
            f"the skip path has frames of shape {list(a.shape[1:])} and the branch of {list(b.shape[1:])}: give a skip "
            "path whose output has the shape of the branch, such as a 1x1 convolution with the same stride"
        )
    kind = torch.promote_types(a.dtype, b.dtype)
    a, b = a.to(kind), b.to(kind)
    return _AddRelu.apply(a, b, batch)  # pyright: ignore[reportReturnType]


class _Prepend(torch.autograd.Function):
    """A frame before others. It may be one item, which stands for a whole batch."""

    @staticmethod
    def forward(ctx, before: Tensor, frames: Tensor, batch: int) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        out = frames.new_empty(batch + len(frames), *frames.shape[1:]).contiguous(memory_format=layout(frames))
        out[:batch], out[batch:] = before, frames
        ctx.batch, ctx.is_item = batch, len(before) < batch
        return out

    @staticmethod
    def backward(ctx, gradient: Tensor):  # pyright: ignore[reportIncompatibleMethodOverride]
        of_before = gradient[: ctx.batch]
        if ctx.is_item:
            # the sum over the batch, as a matrix product: in channels-last order it takes a fifteenth of the time
            last = of_before.movedim(1, -1)
            total = gradient.new_ones(1, ctx.batch) @ last.flatten(1)
            of_before = total.view(1, *last.shape[1:]).movedim(-1, 1)
        return of_before, gradient[ctx.batch :], None


def prepend(
    before: Shaped[Tensor, "items *rest"], frames: Shaped[Tensor, "time_batch *rest"], batch: int
) -> Shaped[Tensor, "one_more_batch *rest"]:
    """A frame, of `batch` items or of one that stands for all of them, before the first of others."""
    return _Prepend.apply(before, frames, batch)  # pyright: ignore[reportReturnType]
