"""The state of a network between two steps of a stream."""

from __future__ import annotations

from collections.abc import Callable
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
        step: Number of the last step.
        held: For how many steps the frame has been the same.
        frame: The last frame.
        features: Output of the last block; under the serial schedule, of the last one that was computed.
        seen: Every block's input at that step, if the kernel lags.
        trail: Content of the remaining taps of the stem's and of every block's delay, if there are any.
    """

    step: Int[Tensor, ""]
    held: Int[Tensor, ""]
    frame: Float[Tensor, "batch ..."]
    features: Float[Tensor, "batch ..."]
    seen: tuple[Float[Tensor, "batch ..."], ...] = ()
    trail: tuple[Float[Tensor, "taps batch ..."], ...] = ()

    @property
    def batch(self) -> int:
        """Number of items."""
        return len(self.frame)

    def select(self, items: Bool[Tensor, "batch"] | Int[Tensor, "chosen"] | slice) -> State:
        """Keep some items, by mask, by indices or by slice."""
        if isinstance(items, Tensor) and items.dtype == torch.bool and items.shape != (self.batch,):
            raise InputError(f"mask has shape {tuple(items.shape)}, state has {self.batch} items: give one per item")
        return self._with(lambda x: x[items], lambda trail: trail[:, items])

    def to(self, device: torch.device | str) -> State:
        """The same state on another device."""
        return self._with(lambda x: x.to(device))

    def detach(self) -> State:
        """The same state without the history of its gradients."""
        return self._with(Tensor.detach)

    def _with(self, change: Callable[[Tensor], Tensor], in_trail: Callable[[Tensor], Tensor] | None = None) -> State:
        lines = tuple(map(change, self.seen)), tuple(map(in_trail or change, self.trail))
        return State(self.step, self.held, change(self.frame), change(self.features), *lines)

    def lines(self, delays: int) -> list[Line]:
        """One line per delay: the stem's, which never lags, then every block's."""
        seen = [None, *self.seen] if self.seen else [None] * delays
        trail = self.trail or [None] * delays
        return [Line(*each) for each in zip(seen, trail, strict=True)]
