"""Matrix products for convolutions of very small maps, in single precision by oneDNN.

torch hands products of single precision to MKL, which uses half the vector width on processors that are not Intel's: on
one core of an AMD EPYC it reaches 115 GFLOP/s, and oneDNN, which torch's convolutions use, 240.
"""

from __future__ import annotations

from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

_ONEDNN = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


class _Product(torch.autograd.Function):
    """`x @ w.T`. Both gradients are products of the same form, so it can be differentiated any number of times."""

    @staticmethod
    def forward(ctx, x: Tensor, w: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx.save_for_backward(x, w)
        return torch.ops.mkldnn._linear_pointwise(x, _dense(w), None, "none", [], "")

    @staticmethod
    def backward(ctx, gradient: Tensor):  # pyright: ignore[reportIncompatibleMethodOverride]
        x, w = ctx.saved_tensors
        of_x = _Product.apply(gradient, w.t()) if ctx.needs_input_grad[0] else None
        of_w = _Product.apply(gradient.t(), x.t()) if ctx.needs_input_grad[1] else None
        return of_x, of_w


def _dense(w: Tensor) -> Tensor:
    """Weights without gaps between rows: with gaps oneDNN runs its reference code, 1,000 times slower."""
    return w if w.is_contiguous() or w.t().is_contiguous() else w.contiguous()


def product(x: Float[Tensor, "items inputs"], w: Float[Tensor, "outputs inputs"]) -> Float[Tensor, "items outputs"]:
    """`x @ w.T`, as `torch.nn.functional.linear`."""
    if _ONEDNN and x.dtype == w.dtype == torch.float32 and x.device.type == "cpu" and not autocast(x.device):
        return cast(Tensor, _Product.apply(x, w))
    return F.linear(x, w)


def autocast(device: torch.device) -> bool:
    """Whether layers on a device run in a lower precision."""
    return device.type in ("cpu", "cuda", "mps") and torch.is_autocast_enabled(device.type)


class _Spread(torch.autograd.Function):
    """`(a0, a0 + a1, a1)` along the first two axes."""

    @staticmethod
    def forward(ctx, a: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        out = a.new_empty(3, 3, *a.shape[2:])
        out[::2, ::2] = a
        torch.add(a[0], a[1], out=out[1, ::2])
        torch.add(out[:, 0], out[:, 2], out=out[:, 1])
        return out

    @staticmethod
    def backward(ctx, gradient: Tensor):  # pyright: ignore[reportIncompatibleMethodOverride]
        return _Gather.apply(gradient)


class _Gather(torch.autograd.Function):
    """`(m0 + m1, m1 + m2)` along the first two axes: the transpose of `_Spread`; in memory, items come first."""

    @staticmethod
    def forward(ctx, m: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        rows = m[:2] + m[1:]
        out = m.new_empty(m.shape[2], 2, 2, m.shape[3]).permute(1, 2, 0, 3)
        return torch.add(rows[:, :2], rows[:, 1:], out=out)

    @staticmethod
    def backward(ctx, gradient: Tensor):  # pyright: ignore[reportIncompatibleMethodOverride]
        return _Spread.apply(gradient)


def convolve_2x2(
    x: Float[Tensor, "2 2 items inputs"], w: Float[Tensor, "3 3 outputs inputs"]
) -> Float[Tensor, "2 2 items outputs"]:
    """A padded 3x3 convolution of maps of 2x2 pixels with 9 matrix products in place of 16.

        y0 = w1 x0 + w2 x1 = w1 (x0 + x1) + (w2 - w1) x1
        y1 = w0 x0 + w1 x1 = w1 (x0 + x1) + (w0 - w1) x0

    Three products instead of four along an axis, and so along the other. In single precision the result is as close to
    the exact one as a direct convolution's; in half precision the sums would be rounded once more.
    """
    taps = w - torch.stack([w[1], torch.zeros_like(w[1]), w[1]])
    taps = taps - torch.stack([taps[:, 1], torch.zeros_like(taps[:, 1]), taps[:, 1]], dim=1)
    inputs = cast(Tensor, _Spread.apply(x)).flatten(0, 1)
    products = [product(a, b) for a, b in zip(inputs, taps.flatten(0, 1).contiguous(), strict=True)]
    # x0's product belongs to y1 and x1's to y0: from the last to the first they are in the order of the outputs
    return cast(Tensor, _Gather.apply(torch.stack(products[::-1]).unflatten(0, (3, 3))))
