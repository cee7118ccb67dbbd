"""Cascaded residual networks (He et al. 2016), in the paper's form: no norm on the skip path."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

import torch
from torch import nn
from typing_extensions import Unpack

from cascaded.cascade.block import Layers, ResidualBlock
from cascaded.cascade.conv import Conv2d
from cascaded.cascade.kernels import Kernel, OneStepDelay
from cascaded.cascade.network import Cascade
from cascaded.cascade.norm import TimeBatchNorm
from cascaded.cascade.readout import Heads
from cascaded.errors import InputError, at_least
from cascaded.models.build import Norm, Options, Stem, initialize, relu, stem_layers

EXPANSION = 4  # how much wider a bottleneck block's output is than its middle


def resnet(
    blocks: Sequence[int] = (2, 2, 2, 2),
    kind: Literal["basic", "bottleneck"] = "basic",
    *,
    num_classes: int = 10,
    width: int = 64,
    stem: Stem = "small",
    pool: bool | None = None,
    in_channels: int = 3,
    heads: Heads = "shared",
    kernel: Kernel | None = None,
    norm: Norm | None = None,
    generator: torch.Generator | None = None,
) -> Cascade:
    """A residual network with any number of stages and blocks.

    Args:
        blocks: Blocks per stage. Each stage after the first doubles the channels and halves the map.
        kind: `basic` blocks of two 3x3 convolutions, or `bottleneck` blocks of 1x1, 3x3, 1x1.
        num_classes: Number of classes.
        width: Channels of the first stage.
        stem: `small`, a 3x3 convolution, for 32 and 64 px; `large`, 7x7 with stride 2, for 224 px.
        pool: Whether a 3x3 max-pool with stride 2 follows; by default it does.
        in_channels: Channels of an image.
        heads: `shared`, `per_step` or `shallow_deep`: see `Cascade`.
        kernel: Delay kernel; one step by default.
        norm: Options of the batch norms.
        generator: Random generator of the initial weights; torch's global one by default.
    """
    at_least(1, width=width, in_channels=in_channels, **{f"blocks[{s}]": n for s, n in enumerate(blocks)})
    if kind not in ("basic", "bottleneck"):
        raise InputError(f"kind is {kind!r}: give 'basic' or 'bottleneck'")
    make_norm = (norm or Norm()).maker(sum(blocks) + 1)
    make_block = _basic if kind == "basic" else _bottleneck
    chain, channels = [], width
    for stage, count in enumerate(blocks):
        for k in range(count):
            stride = 2 if stage > 0 and k == 0 else 1
            chain.append(make_block(make_norm, channels, width * 2**stage, stride))
            channels = chain[-1].channels
    net = Cascade(
        Layers(*stem_layers(stem, make_norm, in_channels, width, pool is not False)),
        chain,
        num_classes=num_classes,
        heads=heads,
        kernel=kernel or OneStepDelay(),
        in_channels=in_channels,
        stem_channels=width,
    )
    return initialize(net, generator)


def _basic(norm: partial[TimeBatchNorm], inputs: int, width: int, stride: int) -> ResidualBlock:
    branch = Layers(Conv2d(inputs, width, 3, stride), norm(width), relu(), Conv2d(width, width, 3), norm(width))
    return ResidualBlock(_skip(inputs, width, stride), branch, width)


def _bottleneck(norm: partial[TimeBatchNorm], inputs: int, width: int, stride: int) -> ResidualBlock:
    outputs = width * EXPANSION
    narrow = [Conv2d(inputs, width, 1), norm(width), relu()]
    middle = [Conv2d(width, width, 3, stride), norm(width), relu()]
    branch = Layers(*narrow, *middle, Conv2d(width, outputs, 1), norm(outputs))
    return ResidualBlock(_skip(inputs, outputs, stride), branch, outputs)


def _skip(inputs: int, outputs: int, stride: int) -> nn.Module:
    if stride == 1:
        return nn.Identity() if inputs == outputs else Conv2d(inputs, outputs, 1)
    # Every other pixel is taken before the convolution, not by it: on a CPU, the gradient of a strided 1x1 convolution
    # of narrow channels-last maps is written past its workspace and corrupts the heap (oneDNN issue 6035).
    return nn.Sequential(nn.AvgPool2d(1, stride), Conv2d(inputs, outputs, 1))


def resnet18(**options: Unpack[Options]) -> Cascade:
    """ResNet-18: 8 basic blocks, settled at step 9. Options as for `resnet`."""
    return resnet((2, 2, 2, 2), "basic", **options)


def resnet34(**options: Unpack[Options]) -> Cascade:
    """ResNet-34: 16 basic blocks, settled at step 17. Options as for `resnet`."""
    return resnet((3, 4, 6, 3), "basic", **options)


def resnet50(**options: Unpack[Options]) -> Cascade:
    """ResNet-50: 16 bottleneck blocks, settled at step 17. Options as for `resnet`."""
    return resnet((3, 4, 6, 3), "bottleneck", **options)
