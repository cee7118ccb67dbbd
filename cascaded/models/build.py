"""What all models share: options, stems and initial weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, TypedDict

import torch
from torch import nn

from cascaded.cascade.conv import Conv2d
from cascaded.cascade.kernels import Kernel
from cascaded.cascade.network import Cascade
from cascaded.cascade.norm import Affine, TimeBatchNorm
from cascaded.cascade.readout import Heads
from cascaded.errors import InputError

Stem = Literal["small", "large"]


class Options(TypedDict, total=False):
    """Options of every network: see `resnet` and `densenet`."""

    num_classes: int
    width: int
    stem: Stem
    pool: bool | None
    in_channels: int
    heads: Heads
    kernel: Kernel
    norm: Norm
    generator: torch.Generator


@dataclass(frozen=True)
class Norm:
    """Options of every batch norm: see `TimeBatchNorm`."""

    eps: float = 1e-5
    momentum: float | None = 0.1
    affine: Affine = "shared"

    def maker(self, steps: int) -> partial[TimeBatchNorm]:
        """A function that makes the norms of a network with this many steps."""
        return partial(TimeBatchNorm, eps=self.eps, momentum=self.momentum, affine=self.affine, steps=steps + 1)


def relu() -> nn.ReLU:
    """In place: the output of a norm is not needed again."""
    return nn.ReLU(inplace=True)


def stem_layers(kind: Stem, norm: partial[TimeBatchNorm], inputs: int, width: int, pool: bool) -> list[nn.Module]:
    """First convolution, norm, activation, pool."""
    if kind not in ("small", "large"):
        raise InputError(f"stem is {kind!r}: give 'small' (3x3, for 32 and 64 px) or 'large' (7x7, for 224 px)")
    conv = Conv2d(inputs, width, 3) if kind == "small" else Conv2d(inputs, width, 7, stride=2)
    return [conv, norm(width), relu()] + ([nn.MaxPool2d(3, stride=2, padding=1)] if pool else [])


def initialize(net: Cascade, generator: torch.Generator | None) -> Cascade:
    """Kaiming fan-out for convolutions, torch's own for heads; channels last, which is faster (docs/performance.md)."""
    for module in net.modules():
        if any(each.is_meta for each in module.parameters(recurse=False)):
            continue  # shapes only
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu", generator=generator)
        elif isinstance(module, nn.Linear):
            bound = module.in_features**-0.5
            nn.init.uniform_(module.weight, -bound, bound, generator=generator)
            nn.init.uniform_(module.bias, -bound, bound, generator=generator)
    return net.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
