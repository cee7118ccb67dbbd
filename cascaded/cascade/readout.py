"""Output layers: from features to logits, at every step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from cascaded.cascade.film import SETTLED, Film
from cascaded.errors import InputError

Heads = Literal["shared", "per_step", "shallow_deep"]


class SharedHead(nn.Module):
    """One linear layer for all steps (the paper's SingleHead)."""

    def __init__(self, channels: int, num_classes: int):
        super().__init__()
        self.linear = nn.Linear(channels, num_classes)

    def forward(self, features: Film) -> Float[Tensor, "time batch classes"]:
        return features.map(pool).map(self.linear).unfold()

    def at(self, step: int) -> nn.Linear:
        """The head of a step."""
        return self.linear


class StepHeads(nn.Module):
    """One linear layer per step (the paper's MultiHead); the last one is used for all later steps.

    With the same number of channels everywhere they all read the last block; with a block's own number of channels
    they are the heads of a Shallow-Deep network, each reading the block that was computed last.
    """

    def __init__(self, channels: Sequence[int], num_classes: int):
        super().__init__()
        self.linears = nn.ModuleList(nn.Linear(c, num_classes) for c in channels)

    def forward(self, features: Film) -> Float[Tensor, "time batch classes"]:
        pooled = features.map(pool).unfold()
        return torch.stack([self.at(features.start + k)(frame) for k, frame in enumerate(pooled)])

    def at(self, step: int) -> nn.Module:
        """The head of a step."""
        last = len(self.linears) - 1
        return self.linears[last if step == SETTLED else min(step - 1, last)]


def pool(frames: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch channels"]:
    """The mean over a map."""
    return frames.mean(dim=(-2, -1))


def make_readout(heads: Heads, channels: Sequence[int], num_classes: int) -> SharedHead | StepHeads:
    """Heads for the stem's features and every block's, given the channels of each."""
    if heads == "shared":
        return SharedHead(channels[-1], num_classes)
    if heads == "per_step":
        return StepHeads([channels[-1]] * len(channels), num_classes)
    if heads == "shallow_deep":
        return StepHeads(channels, num_classes)
    raise InputError(f"heads is {heads!r}: give 'shared', 'per_step' or 'shallow_deep'")
