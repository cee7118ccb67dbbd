"""Cascaded dense networks (Huang et al. 2017): every block's output is concatenated with its input."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import nn
from typing_extensions import Unpack

from cascaded.cascade.block import DenseBlock, Layers
from cascaded.cascade.conv import Conv2d
from cascaded.cascade.kernels import Kernel, OneStepDelay
from cascaded.cascade.network import Cascade
from cascaded.cascade.norm import TimeBatchNorm
from cascaded.cascade.readout import Heads
from cascaded.errors import at_least
from cascaded.models.build import Norm, Options, Stem, initialize, relu, stem_layers

BOTTLENECK = 4  # channels in the middle of a block, relative to what it adds


def densenet(
    blocks: Sequence[int] = (6, 12, 24, 16),
    growth: int = 16,
    *,
    num_classes: int = 10,
    width: int | None = None,
    stem: Stem = "small",
    pool: bool | None = None,
    in_channels: int = 3,
    heads: Heads = "shared",
    kernel: Kernel | None = None,
    norm: Norm | None = None,
    generator: torch.Generator | None = None,
) -> Cascade:
    """A dense network with any number of stages and blocks; by default the CIFAR form of DenseNet-121.

    Args:
        blocks: Blocks per stage. Between stages a transition halves channels and map.
        growth: Channels that a block adds.
        num_classes: Number of classes.
        width: Channels of the stem; twice the growth by default.
        stem: `small`, a bare 3x3 convolution, for 32 and 64 px; `large`, 7x7 with stride 2, norm and activation, for
            224 px.
        pool: Whether a 3x3 max-pool with stride 2 follows; by default after a large stem only.
        in_channels: Channels of an image.
        heads: `shared`, `per_step` or `shallow_deep`: see `Cascade`.
        kernel: Delay kernel; one step by default.
        norm: Options of the batch norms.
        generator: Random generator of the initial weights; torch's global one by default.
    """
    width, pool = 2 * growth if width is None else width, stem == "large" if pool is None else pool
    sizes = {f"blocks[{s}]": n for s, n in enumerate(blocks)}
    at_least(1, growth=growth, width=width, in_channels=in_channels, **sizes)
    make_norm = (norm or Norm()).maker(sum(blocks) + 1)
    layers = stem_layers(stem, make_norm, in_channels, width, pool)
    if stem == "small":
        layers = [layer for layer in layers if not isinstance(layer, TimeBatchNorm | nn.ReLU)]
    net = Cascade(
        Layers(*layers),
        _chain(make_norm, blocks, growth, width),
        num_classes=num_classes,
        heads=heads,
        kernel=kernel or OneStepDelay(),
        in_channels=in_channels,
        stem_channels=width,
    )
    return initialize(net, generator)


def _chain(norm: partial[TimeBatchNorm], blocks: Sequence[int], growth: int, channels: int) -> list[DenseBlock]:
    chain = []
    for stage, count in enumerate(blocks):
        for k in range(count):
            branch, channels = _branch(norm, channels, growth), channels + growth
            after = Layers()
            if k == count - 1:
                last = stage == len(blocks) - 1
                after = Layers(norm(channels), relu()) if last else _transition(norm, channels)
                channels = channels if last else channels // 2
            chain.append(DenseBlock(branch, after, growth, channels))
    return chain


def _branch(norm: partial[TimeBatchNorm], inputs: int, growth: int) -> Layers:
    middle = BOTTLENECK * growth
    return Layers(norm(inputs), relu(), Conv2d(inputs, middle, 1), norm(middle), relu(), Conv2d(middle, growth, 3))


def _transition(norm: partial[TimeBatchNorm], channels: int) -> Layers:
    # a map of one pixel, in images smaller than the network is deep, stays one pixel
    return Layers(norm(channels), relu(), Conv2d(channels, channels // 2, 1), nn.AvgPool2d(2, ceil_mode=True))


def densenet121(growth: int = 32, **options: Unpack[Options]) -> Cascade:
    """DenseNet-121: 58 blocks, settled at step 59. Options as for `densenet`."""
    return densenet((6, 12, 24, 16), growth, **options)
