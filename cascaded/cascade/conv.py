"""A convolution that is fast on small maps.

The last stage of a CIFAR ResNet works on maps of 2x2 pixels, and in a cascade it is the stage with the most steps.
There a 3x3 convolution spends more than half of its products on padding, and a CPU's convolution kernels, made for
large maps, are slow at it, above all in the gradient of the weights. Written as one matrix product per output pixel,
over just the inputs that this pixel sees, the same sums take a third of the time (docs/performance.md).

A strided convolution of a map narrower than its stride pads that map explicitly. oneDNN's bfloat16 kernel for the
gradient of the weights (`jit_bf16:avx512_core`, oneDNN 3.12 in torch 2.13) does not write the taps that see nothing but
horizontal padding: they keep whatever the memory contained, finite or not. Of 17,280 combinations of shapes and memory
formats, those with a kernel of 3 or more fail only if the map is narrower than the stride, in both memory formats; the
output and the gradient of the input are always right. With explicit padding every tap sees a pixel, and none fails.
Strided 1x1 convolutions fail in rare cases and are not used: `models/resnet` takes every other pixel before them.
Convolutions of converted models are rewritten in the same way, `convert/narrow`.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from cascaded.cascade.film import layout
from cascaded.cascade.product import autocast, convolve_2x2, product

PIXELS = 4
"""Output maps of up to this many pixels are computed pixel by pixel."""

ITEMS = 32
"""Fewer items do not repay the copying of the weights; a forward pass alone needs four times as many."""


class Conv2d(nn.Conv2d):
    """`nn.Conv2d` without bias, groups or dilation; exact and fast on very small maps on a CPU."""

    def __init__(self, inputs: int, outputs: int, size: int, stride: int = 1):
        super().__init__(inputs, outputs, size, stride, padding=size // 2, bias=False)

    def forward(self, input: Tensor) -> Tensor:
        if input.device.type != "cpu" or self.kernel_size == (1, 1):
            return super().forward(input)
        enough = ITEMS if torch.is_grad_enabled() else 4 * ITEMS
        height, width = self._map(input)
        if len(input) >= enough and height * width <= PIXELS:
            return pixelwise(input, self.weight, self.stride[0], height, width)
        if input.shape[-1] < self.stride[0]:
            return F.conv2d(F.pad(input, 4 * [self.kernel_size[0] // 2]), self.weight, stride=self.stride)
        return super().forward(input)

    def plain(self) -> nn.Module:
        """The same convolution, made of torch's own layers. A strided one always pads explicitly: maps may be small."""
        (size, _), (stride, _) = self.kernel_size, self.stride
        padding = size // 2 if stride == 1 else 0
        plain = nn.Conv2d(self.in_channels, self.out_channels, size, stride, padding, bias=False, device="meta")
        plain.weight = nn.Parameter(self.weight.detach().clone())
        return plain if padding == size // 2 else nn.Sequential(nn.ZeroPad2d(size // 2), plain)

    def _map(self, x: Tensor) -> tuple[int, int]:
        (size, _), (stride, _) = self.kernel_size, self.stride
        height, width = x.shape[-2:]
        return (height + 2 * (size // 2) - size) // stride + 1, (width + 2 * (size // 2) - size) // stride + 1


def pixelwise(
    x: Float[Tensor, "batch inputs height width"],
    weight: Float[Tensor, "outputs inputs size size"],
    stride: int,
    height: int,
    width: int,
) -> Float[Tensor, "batch outputs _ _"]:
    """A convolution as one matrix product for each of its height x width output pixels."""
    channels_last = layout(x) == torch.channels_last
    halves = autocast(x.device) or x.dtype in (torch.float16, torch.bfloat16)
    if channels_last and stride == 1 and (height, width) == (2, 2) and weight.shape[-1] == 3 and not halves:
        return convolve_2x2(x.permute(2, 3, 0, 1), weight.permute(2, 3, 0, 1)).permute(2, 3, 0, 1)
    x, weight = x.permute(0, 2, 3, 1), weight.permute(0, 2, 3, 1)
    rows = [_window(p, stride, weight.shape[1], x.shape[1]) for p in range(height)]
    columns = [_window(q, stride, weight.shape[2], x.shape[2]) for q in range(width)]
    pixels = [
        product(x[:, inside_y, inside_x].flatten(1), weight[:, tap_y, tap_x].flatten(1))
        for inside_y, tap_y in rows
        for inside_x, tap_x in columns
    ]
    if channels_last:
        return torch.stack(pixels, dim=1).unflatten(1, (height, width)).permute(0, 3, 1, 2)
    return torch.stack(pixels, dim=2).unflatten(2, (height, width))


def _window(p: int, stride: int, size: int, length: int) -> tuple[slice, slice]:
    """The inputs of output p along one axis, and their taps, without the padding."""
    first = p * stride - size // 2
    begin, end = max(first, 0), min(first + size, length)
    return slice(begin, end), slice(begin - first, end - first)
