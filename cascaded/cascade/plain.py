"""The plain network: the final output of a cascade, as a module without time."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from cascaded.cascade.block import Block, DenseBlock, ResidualBlock
from cascaded.cascade.conv import Conv2d
from cascaded.cascade.film import SETTLED
from cascaded.cascade.norm import TimeBatchNorm

if TYPE_CHECKING:
    from cascaded.cascade.network import Cascade


class PlainResidual(nn.Module):
    """`relu(skip(z) + branch(z))`."""

    def __init__(self, skip: nn.Module, branch: nn.Module):
        super().__init__()
        self.skip, self.branch = skip, branch

    def forward(self, z: Tensor) -> Tensor:
        return torch.relu(self.skip(z) + self.branch(z))


class PlainDense(nn.Module):
    """`concat(branch(z), z)`."""

    def __init__(self, branch: nn.Module):
        super().__init__()
        self.branch = branch

    def forward(self, z: Tensor) -> Tensor:
        return torch.cat([self.branch(z), z], dim=1)


def plain_copy(net: Cascade) -> nn.Sequential:
    """A copy of a network without time: ordinary layers, the last step's statistics, the last head."""
    blocks = [_block(block) for block in net.chain]
    head = copy.deepcopy(net.readout.at(SETTLED))
    plain = nn.Sequential(_layers(net.stem), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head)
    plain = plain.to(memory_format=net.memory_format)  # pyright: ignore[reportCallIssue]
    return plain.train(net.training)


def _block(block: Block) -> nn.Module:
    if isinstance(block, ResidualBlock):
        return PlainResidual(_layer(block.skip), _layers(block.branch))
    assert isinstance(block, DenseBlock)
    plain = PlainDense(_layers(block.branch))
    return nn.Sequential(plain, *_layers(block.after)) if len(block.after) else plain


def _layers(layers: nn.Sequential) -> nn.Sequential:
    return nn.Sequential(*map(_layer, layers))


def _layer(layer: nn.Module) -> nn.Module:
    if isinstance(layer, nn.Sequential):
        return _layers(layer)
    if isinstance(layer, TimeBatchNorm):
        return layer.settled()
    if isinstance(layer, Conv2d):
        return layer.plain()
    return copy.deepcopy(layer)
