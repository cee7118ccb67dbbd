"""The state of a converted model between two steps of a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from cascaded.cascade.kernels import Kernel
from cascaded.errors import InputError

SERIAL = "the serial schedule"
Axis = int | None


class GraphState(NamedTuple):
    """A stream between two steps: plain tensors, nothing hidden in the network.

    `tuple(state)` goes through `torch.save`; `GraphState(*torch.load(file))` brings it back.

    Attributes:
        step: Number of the last step.
        held: For how many steps the inputs have been the same.
        batch: Number of items.
        made_by: The kernel or schedule that made it.
        frames: The last values of the inputs and of every segment's results, oldest first.
        trails: Content of the taps of every delayed edge, if the kernel has taps; None before anything has arrived.
        still: Values that are the same at every step, dropout masks among them.
        axes: The batch axis of each of `frames`, `trails` and `still`.
        fixed: Why items cannot be removed; empty if they can.
    """

    step: int
    held: int
    batch: int
    made_by: str
    frames: tuple[tuple[Tensor, ...], ...]
    trails: tuple[Tensor | None, ...]
    still: tuple[Tensor, ...]
    axes: tuple[tuple[Axis, ...], tuple[Axis, ...], tuple[Axis, ...]]
    fixed: str = ""

    def select(self, items: Bool[Tensor, "batch"] | Int[Tensor, "chosen"] | slice) -> GraphState:
        """Keep some items, by mask, by indices or by slice."""
        if self.fixed:
            raise InputError(f"items cannot leave the batch: {self.fixed}; run them to the end, or one at a time")
        if isinstance(items, Tensor) and items.dtype == torch.bool and items.shape != (self.batch,):
            raise InputError(f"mask has shape {tuple(items.shape)}, state has {self.batch} items: give one per item")
        index = torch.arange(self.batch, device=items.device if isinstance(items, Tensor) else None)[items]

        def chosen(x: Tensor, axis: Axis) -> Tensor:
            if axis is None:
                return x
            rows = x.unflatten(axis, (self.batch, -1))
            return rows.index_select(axis, index.to(x.device)).flatten(axis, axis + 1)

        return self._with(chosen)._replace(batch=len(index))

    def to(self, device: torch.device | str) -> GraphState:
        """The same state on another device."""
        return self._with(lambda x, _: x.to(device))

    def detach(self) -> GraphState:
        """The same state without the history of its gradients."""
        return self._with(lambda x, _: x.detach())

    def _with(self, change: Callable[[Tensor, Axis], Tensor]) -> GraphState:
        in_frames, in_trails, in_still = self.axes
        return self._replace(
            frames=tuple(tuple(change(x, a) for x in each) for each, a in zip(self.frames, in_frames, strict=True)),
            trails=tuple(None if x is None else change(x, a) for x, a in zip(self.trails, in_trails, strict=True)),
            still=tuple(change(x, a) for x, a in zip(self.still, in_still, strict=True)),
        )


def check_graph_state(repeats: bool, state: GraphState | None, kernel: Kernel | None) -> None:
    """Check that a state was made with this kernel or, with None, under the serial schedule."""
    maker = SERIAL if kernel is None else repr(kernel)
    if state is None and repeats:
        raise InputError("the first step has no inputs to repeat: give some, and None in later steps to repeat them")
    if state is not None and state.made_by != maker:
        raise InputError(
            f"state was made by {state.made_by}, not by {maker}: give the same kernel and schedule at every step"
        )
