"""Checks of a network's inputs: every error names both sides and the fix."""

from __future__ import annotations

from typing import Literal, cast

from torch import Tensor

from cascaded.cascade.kernels import Kernel
from cascaded.cascade.readout import Heads
from cascaded.cascade.state import State
from cascaded.errors import InputError

Schedule = Literal["cascaded", "serial"]


def check_frames(x: Tensor, in_channels: int, dims: tuple[int, ...] = (4, 5)) -> None:
    """Check images or frame sequences for a network with this many input channels."""
    form = "(batch, channels, height, width)" if dims == (4,) else "([time,] batch, channels, height, width)"
    if x.dim() not in dims:
        raise InputError(f"images have shape {tuple(x.shape)}, this network takes {form}: add or drop axes to fit")
    if x.shape[-3] != in_channels:
        raise InputError(
            f"images have {x.shape[-3]} channels, this network takes {in_channels}: convert the images, or make the "
            f"network with in_channels={x.shape[-3]}"
        )
    if not x.is_floating_point():
        raise InputError(f"images are {x.dtype}, this network takes floating point: convert and normalize them")
    if 0 in x.shape:
        raise InputError(f"images have shape {tuple(x.shape)}: give at least one image of at least one pixel")


def check_steps(steps: int | None) -> None:
    """Check a number of steps; None is not checked."""
    if steps is not None and steps < 1:
        raise InputError(f"steps is {steps}: give at least 1")


def chosen_schedule(schedule: str | None, heads: Heads) -> Schedule:
    """The given schedule, or by default the one of the heads."""
    own = heads == "shallow_deep"
    schedule = schedule or ("serial" if own else "cascaded")
    if schedule not in ("cascaded", "serial"):
        raise InputError(f"schedule is {schedule!r}: give 'cascaded' or 'serial'")
    if own and schedule == "cascaded":
        raise InputError(
            "shallow-deep heads read blocks that have settled, a cascade's have not: run schedule='serial', or make "
            "the network with heads='per_step'"
        )
    return cast(Schedule, schedule)


def check_state(state: State | None, kernel: Kernel | None) -> None:
    """Check that a state was made with this kernel or, with None, under the serial schedule."""
    if state is None:
        return
    lags, kept = (0, 0) if kernel is None else (kernel.lag, kernel.kept)
    if bool(lags) != bool(state.seen) or kept != (len(state.trail[0]) if state.trail else 0):
        maker = kernel or "the serial schedule"
        raise InputError(f"state was not made by {maker}: give the same kernel and schedule at every step")


def current_frame(frame: Tensor | None, state: State | None, in_channels: int) -> Tensor:
    """The frame of this step of a stream: a new one, or the last one repeated."""
    if frame is None:
        if state is None:
            raise InputError("the first step has no frame to repeat: give one, and None in later steps to repeat it")
        return state.frame
    check_frames(frame, in_channels, dims=(4,))
    if state is not None and state.batch != len(frame):
        raise InputError(
            f"frame has {len(frame)} items, state has {state.batch}: keep the same items of both, with frame[mask] and "
            "state.select(mask)"
        )
    return frame
