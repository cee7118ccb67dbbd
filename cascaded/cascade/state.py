"""What a network remembers between two steps of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cascaded.cascade.kernels import Line
from cascaded.errors import InputError


class State(NamedTuple):
    """A stream between two steps: plain tensors, nothing hidden in the network.

    `tuple(state)` is made of tensors alone and goes through `torch.save`; `State(*torch.load(file))` brings it back.

    Attributes:
        step: Number of the last read-out.
        seen: Every block's input at that step, if the kernel lags; under the serial schedule, the settled features.
        trail: What the remaining taps of the stem's and of every block's delay hold, `(taps, batch, ...)`.
    """

    step: Int[Tensor, ""]
    seen: tuple[Float[Tensor, "batch ..."], ...]
    trail: tuple[Float[Tensor, "taps batch ..."], ...]

    @property
    def batch(self) -> int | None:
        """How many items are under way; None where the kernel remembers nothing of them."""
        if self.seen:
            return self.seen[0].shape[0]
        return self.trail[0].shape[1] if self.trail else None

    def select(self, items: Bool[Tensor, "batch"] | Int[Tensor, "chosen"] | slice) -> State:
        """Keep some items, by mask, by indices or by slice: those that have answered can leave."""
        if isinstance(items, Tensor) and items.dtype == torch.bool and self.batch not in (None, *items.shape):
            raise InputError(f"mask has shape {tuple(items.shape)}, state has {self.batch} items: give a value an item")
        return State(self.step, tuple(x[items] for x in self.seen), tuple(x[:, items] for x in self.trail))

    def to(self, device: torch.device | str) -> State:
        """The same state on another device."""
        return State(self.step, tuple(x.to(device) for x in self.seen), tuple(x.to(device) for x in self.trail))

    def detach(self) -> State:
        """The same state without the history of its gradients."""
        return State(self.step, tuple(x.detach() for x in self.seen), tuple(x.detach() for x in self.trail))

    def lines(self, delays: int) -> list[Line]:
        """One line a delay: the stem's, which never lags, then every block's."""
        seen = [None, *self.seen] if self.seen else [None] * delays
        trail = self.trail or [None] * delays
        return [Line(*each) for each in zip(seen, trail, strict=True)]


def state_of(step: int, lines: Sequence[Line]) -> State:
    """Gather what the lines hold."""
    seen = tuple(line.seen for line in lines if line.seen is not None)
    trail = tuple(line.trail for line in lines if line.trail is not None)
    return State(torch.tensor(step), seen, trail)
