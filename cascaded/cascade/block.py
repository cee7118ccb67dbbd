"""Blocks: a delayed branch beside a path without delay.

z[t,i+1] = relu(skip_i(z[t,i]) + sum_k kappa[k] F_i(z[t-k,i]))          residual
z[t,i+1] = concat(sum_k kappa[k] F_i(z[t-k,i]), z[t,i])                 dense
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from cascaded.cascade.film import SETTLED, Film, join
from cascaded.cascade.fused import add_relu, prepend
from cascaded.cascade.kernels import Kernel, Line
from cascaded.cascade.norm import TimeBatchNorm
from cascaded.errors import InputError


class Layers(nn.Sequential):
    """Layers without memory, on all frames at once; a time batch norm among them sees the steps.

    Layers that compute statistics over a batch (`nn.BatchNorm2d` and its relatives) are refused: they would mix steps.
    """

    def forward(self, film: Film) -> Film:  # pyright: ignore[reportIncompatibleMethodOverride]
        for layer in self:
            film = layer(film) if isinstance(layer, TimeBatchNorm | Layers) else film.map(layer)
        return film

    def add_module(self, name: str, module: nn.Module | None) -> None:
        """Add a layer: the constructor, `append` and `extend` come through here."""
        _check_layer(module)
        super().add_module(name, module)

    def insert(self, index: int, module: nn.Module) -> Layers:
        """Insert a layer before another one."""
        _check_layer(module)
        return super().insert(index, module)

    def __setitem__(self, idx: int, module: nn.Module) -> None:
        _check_layer(module)
        super().__setitem__(idx, module)


class Block(nn.Module):
    """A delayed branch beside a path without delay; subclasses join them.

    Attributes:
        branch: F, the delayed layers.
        after: Layers without delay after the join: a transition, a last norm, or nothing.
        channels: Output channels.
    """

    def __init__(self, branch: Layers, after: Layers, channels: int):
        super().__init__()
        self.branch = branch
        self.after = after
        self.channels = channels

    @abstractmethod
    def join(self, z: Film, arrived: Film) -> Film:
        """Join the path without delay with what has arrived from the branch."""

    def join_now(self, z: Film, arrived: Film) -> Film:
        """The join and the layers after it."""
        return self.after(self.join(z, arrived))

    def forward(self, z: Film, line: Line, kernel: Kernel) -> tuple[Film, Line]:
        """The block over a film, from the content of its delay line."""
        arrived, line = delayed(kernel, self.branch, z, line)
        return self.join_now(z, arrived), line

    def forward_settled(self, z: Film) -> Film:
        """The block on its final input, without delay."""
        return self.join_now(z, self.branch(replace(z, start=SETTLED)))

    @abstractmethod
    def skip_only(self, z: Film) -> Film:
        """The block before its branch contributes: the path without delay only."""


class ResidualBlock(Block):
    """`relu(skip(z) + delayed(branch(z)))`. A skip path that changes shape is a bare convolution, without a norm."""

    def __init__(self, skip: nn.Module, branch: Layers, channels: int):
        check_norms(skip, "leave the norm of a skip path out, or use nn.GroupNorm")
        super().__init__(branch, Layers(), channels)
        self.skip = skip

    def join(self, z: Film, arrived: Film) -> Film:
        return z.map(lambda x: add_relu(self.skip(x), arrived.frames, z.batch))

    def skip_only(self, z: Film) -> Film:
        return z.map(lambda x: torch.relu(self.skip(x)))


class DenseBlock(Block):
    """`concat(delayed(branch(z)), z)`."""

    def __init__(self, branch: Layers, after: Layers, growth: int, channels: int):
        super().__init__(branch, after, channels)
        self.growth = growth

    def join(self, z: Film, arrived: Film) -> Film:
        return join(z, arrived, lambda old, new: torch.cat([new, old], dim=1))

    def skip_only(self, z: Film) -> Film:
        zeros = z.map(lambda x: x.new_zeros(()).expand(len(x), self.growth, *x.shape[2:]))
        return self.join_now(z, zeros)


def check_norms(
    module: nn.Module, fix: str = "use cascaded.TimeBatchNorm, which has statistics for every step"
) -> None:
    """Refuse norms whose statistics are of all steps together: unrolled and stepped, a network would differ."""
    for each in module.modules():
        if isinstance(each, _BatchNorm):
            way = fix
        elif isinstance(each, _InstanceNorm) and each.track_running_stats:
            way = f"{fix}, or set track_running_stats=False"
        else:
            continue
        raise InputError(
            f"{type(each).__name__} computes its statistics over all steps together, so that running all steps at once "
            f"and one at a time would give different outputs: {way}"
        )


def _check_layer(layer: nn.Module | None) -> None:
    """Refuse norms that mix steps, and a time batch norm where it would not see the steps."""
    if layer is None or isinstance(layer, TimeBatchNorm | Layers):
        return
    check_norms(layer)
    if any(isinstance(each, TimeBatchNorm) for each in layer.modules()):
        raise InputError(
            f"TimeBatchNorm is inside a {type(layer).__name__}, which gets frames without their steps: put it directly "
            f"into cascaded.Layers, or use cascaded.Layers in place of the {type(layer).__name__}"
        )


def delayed(kernel: Kernel, branch: Layers, z: Film, line: Line) -> tuple[Film, Line]:
    """`sum_k kappa[k] F(z[t-k])`: what has arrived from the branch at every step of a film."""
    if not kernel.lag:
        arrived, trail = kernel.spread(branch(z), line.trail)
        return arrived, Line(None, trail)
    arrived, trail = kernel.spread(_one_late(branch, z, cast(Tensor, line.seen)), line.trail)
    return arrived, Line(z.last(), trail)


def _one_late(branch: Layers, z: Film, seen: Tensor) -> Film:
    """F(z[t-1]) at every step t: F of the input remembered from before the film, then of the film less its last step.

    F of the last step is computed when, and only if, there is a next one.
    """
    before = branch(Film(seen, len(seen), steps=1, start=z.start - 1, copies=z.batch // len(seen))).frames
    if z.steps == 1:
        return replace(z, frames=before.expand(z.batch, *before.shape[1:]))
    return replace(z, frames=prepend(before, branch(z.first(z.steps - 1)).frames, z.batch))
