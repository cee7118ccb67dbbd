"""The cascaded network: a stem, a chain of blocks, an output layer, and two schedules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from cascaded.cascade import cost
from cascaded.cascade.block import Block, Layers, check_norms
from cascaded.cascade.film import REST, Film, layout, moving, still
from cascaded.cascade.inputs import Schedule, check_frames, check_state, check_steps, chosen_schedule, current_frame
from cascaded.cascade.kernels import Kernel, Line
from cascaded.cascade.norm import steady
from cascaded.cascade.plain import plain_copy
from cascaded.cascade.readout import Heads, make_readout
from cascaded.cascade.serial import cycle, final_logits, serial_trace
from cascaded.cascade.state import State
from cascaded.errors import InputError

PIECE = 4
"""Steps of a long film that are computed at once where no gradients are needed (docs/performance.md)."""


class Cascade(nn.Module):
    """A network with an output at every step.

    Under the cascaded schedule all blocks update at every step from what has arrived so far. Under the serial schedule
    block k is computed once, at step k+1, from its final input. Weights and final output are the same.

    Args:
        stem: From images to the first block's input.
        blocks: The blocks, in order.
        num_classes: Number of classes.
        heads: `shared`, one head for all steps; `per_step`, one per step; `shallow_deep`, one on each block's own
            features (serial schedule only).
        kernel: Default delay kernel.
        in_channels: Channels of an image.
        stem_channels: Channels of the stem's output.
    """

    def __init__(
        self,
        stem: Layers,
        blocks: Sequence[Block],
        *,
        num_classes: int,
        heads: Heads,
        kernel: Kernel,
        in_channels: int,
        stem_channels: int,
    ):
        super().__init__()
        if not blocks:
            raise InputError("blocks is empty: give at least one block")
        if num_classes < 1:
            raise InputError(f"num_classes is {num_classes}: give at least 1")
        self.stem = stem
        self.blocks = nn.ModuleList(blocks)
        check_norms(self)  # layers that were changed after they were made, and those of a user's own kind of block
        self.kernel = kernel
        self.in_channels = in_channels
        self.num_classes = num_classes
        self.heads: Heads = heads
        self.readout = make_readout(heads, [stem_channels, *(block.channels for block in blocks)], num_classes)

    @property
    def chain(self) -> list[Block]:
        """The blocks, in order."""
        return cast(list[Block], list(self.blocks))

    # --- all steps at once

    def forward(
        self,
        x: Float[Tensor, "*time batch channels height width"],
        *,
        kernel: Kernel | None = None,
        steps: int | None = None,
        schedule: Schedule | None = None,
    ) -> Float[Tensor, "time batch classes"]:
        """Logits at every step.

        Args:
            x: Still images `(batch, channels, height, width)`, or a film `(time, batch, channels, height, width)`.
            kernel: Delay kernel; the network's own by default. Any kernel runs on the same weights.
            steps: Number of steps. By default as many as a film has frames, and for still images as many as it takes
                until the output is constant. A film that is shorter repeats its last frame.
            schedule: `cascaded` or `serial`; the latter for still images only.
        """
        kernel = kernel or self.kernel
        check_frames(x, self.in_channels)
        check_steps(steps)
        if self._schedule(schedule) == "serial":
            return serial_trace(self, x, steps)
        if steps is None:
            steps = x.shape[0] if x.dim() == 5 else self.steps_to_settle(kernel)
        film = moving(x, steps) if x.dim() == 5 else still(x, steps)
        return self._trace(film, kernel)

    def _trace(self, film: Film, kernel: Kernel) -> Float[Tensor, "time batch classes"]:
        """Logits over a film; without gradients a long one is computed in pieces, to save memory."""
        long = film.num_frames > PIECE or math.isinf(kernel.memory)
        pieces = film.pieces(PIECE) if long and not torch.is_grad_enabled() else [film]
        trace, lines = [], None
        for piece in pieces:
            features, lines = self._advance(piece, lines, kernel)
            trace.append(self.readout(features))
        return torch.cat(trace)

    # --- one step at a time

    def step(
        self,
        frame: Float[Tensor, "batch channels height width"] | None,
        state: State | None = None,
        *,
        kernel: Kernel | None = None,
        schedule: Schedule | None = None,
    ) -> tuple[Float[Tensor, "batch classes"], State]:
        """Logits after one more step, and the state for the next one.

        The outputs equal those of `forward`. Items can be removed from the batch: `state.select(mask)`.

        Args:
            frame: The next frame, or None to repeat the last one; blocks whose output is final are then not computed
                again.
            state: The state that the step before returned; None at the start.
            kernel: As in `forward`, the same at every step.
            schedule: As in `forward`, the same at every step. Under the serial schedule the first frame counts.
        """
        current = current_frame(frame, state, self.in_channels)
        number, held = (1, 0) if state is None else (int(state.step) + 1, int(state.held))
        known = (torch.tensor(number), torch.tensor(held + 1 if frame is None else 1), current)
        serially, kernel = self._schedule(schedule) == "serial", kernel or self.kernel
        check_state(state, None if serially else kernel)
        if serially:
            logits, settled = cycle(self, current, None if state is None else state.features, number)
            return logits, State(*known, settled)
        film = still(current, steps=1, start=number)
        lines = None if state is None else state.lines(len(self.blocks) + 1)
        if (
            state is not None
            and lines is not None
            and frame is None
            and (k := self.settled_blocks(number, held, kernel))
        ):
            settled = replace(film, frames=[*state.seen, state.features][k])
            features, lines = self._through(settled, lines, kernel, first=k)
        else:
            features, lines = self._advance(film, lines, kernel)
        seen = tuple(line.seen for line in lines if line.seen is not None)
        trail = tuple(line.trail for line in lines if line.trail is not None)
        return self.readout(features)[0], State(*known, features.frames, seen, trail)

    def _advance(self, film: Film, lines: list[Line] | None, kernel: Kernel) -> tuple[Film, list[Line]]:
        """Run a film through stem and blocks, from rest or from where an earlier film stopped."""
        z = self.stem(film.map(self.arrange))
        stem, *others = lines or self.rest_lines(z, kernel)
        # output t depends on frame t: the stem's lag is the initial step, and only its trail is left
        z, trail = kernel.spread(z, stem.trail)
        return self._through(z, [Line(None, trail), *others], kernel)

    def _through(self, z: Film, lines: list[Line], kernel: Kernel, first: int = 0) -> tuple[Film, list[Line]]:
        """Run a film through the blocks, all of them or from a later one on."""
        lines = list(lines)
        for i, block in enumerate(self.chain[first:], start=first + 1):
            z, lines[i] = block(z, lines[i], kernel)
        return z, lines

    def settled_blocks(self, number: int, held: int, kernel: Kernel) -> int:
        """How many blocks, from the first one on, have the same output as at the last step.

        A frame that was repeated for h steps has settled h - 1 blocks under a one-step delay, provided that their batch
        statistics do not change from step to step any more either.
        """
        one_step = kernel.lag and not kernel.memory
        if self.training or not one_step or not steady(self.stem, number - 1):
            return 0
        blocks = self.chain[: held - 1]
        changing = (k for k, block in enumerate(blocks) if not steady(block, number - 2))
        return next(changing, len(blocks))

    def rest_lines(self, z: Film, kernel: Kernel) -> list[Line]:
        """The lines before the first output.

        A kernel that lags has had one step in which nothing came out of the stem. It is the same for every image: one
        item represents the batch, and in training mode has the batch's statistics.
        """
        if not kernel.lag:
            return [Line()] * (len(self.blocks) + 1)
        nothing = torch.zeros_like(z.frames[:1])
        rest = Film(nothing, batch=1, steps=1, start=REST, copies=z.batch)
        lines = [Line()]
        for block in self.chain:
            lines.append(Line(rest.frames))
            rest = block.skip_only(rest)
        return lines

    # --- without time

    def final_logits(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch classes"]:
        """Logits of the last step, at the cost of one serial pass: as `net.serial()`, but not a copy."""
        check_frames(images, self.in_channels, dims=(4,))
        return final_logits(self, images)

    def serial(self) -> nn.Sequential:
        """A plain module without time, a copy: `net.serial()(images)` equals the cascade's final output."""
        return plain_copy(self)

    # --- what it costs

    @property
    def settle_steps(self) -> int:
        """The step at which the output for a still image is final and equals the serial network's."""
        return self.steps_to_settle(self.kernel)

    @property
    def serial_steps(self) -> int:
        """Number of steps under the serial schedule: the stem, then one block per step."""
        return len(self.blocks) + 1

    def steps_to_settle(self, kernel: Kernel) -> int:
        """`settle_steps` for another kernel; at least the number of blocks plus the stem."""
        stages = self.serial_steps
        steps = max(stages, kernel.settles(stages))
        if math.isinf(steps):
            raise InputError(f"{kernel} converges only in the limit: give steps, e.g. steps=70 for alpha 0.9")
        return int(steps)

    def cycles(
        self,
        schedule: Schedule | None = None,
        *,
        kernel: Kernel | None = None,
        steps: int | None = None,
        moving: bool = False,
    ) -> list[int]:
        """Block updates at every step, rest aside: what a read-out costs over the one before it.

        An update whose input has not changed is not made; with a moving input everything changes at every step.
        """
        kernel = kernel or self.kernel
        if self._schedule(schedule) == "serial":
            return cost.serial_cycles(len(self.blocks), steps)
        return cost.cascaded_cycles(len(self.blocks), kernel, steps or self.steps_to_settle(kernel), moving)

    def operations(
        self,
        height: int,
        width: int,
        schedule: Schedule | None = None,
        *,
        kernel: Kernel | None = None,
        steps: int | None = None,
    ) -> list[int]:
        """Floating-point operations an image at every step, as torch's `FlopCounterMode` counts them.

        Two for a multiplication and an addition, as for an ordinary convolution. Nothing is computed: shapes suffice.
        """
        kernel, schedule = kernel or self.kernel, self._schedule(schedule)
        if steps is None:
            steps = self.serial_steps if schedule == "serial" else self.steps_to_settle(kernel)
        return cost.operations(self, (height, width), schedule, kernel, steps)

    # --- edges

    def _schedule(self, schedule: Schedule | None) -> Schedule:
        return chosen_schedule(schedule, self.heads)

    def arrange(self, images: Tensor) -> Tensor:
        """Images in the memory format of the weights."""
        return images.contiguous(memory_format=self.memory_format)

    @property
    def memory_format(self) -> torch.memory_format:
        """How images and feature maps lie in memory: as the weights do, `net.to(memory_format=...)` changes it."""
        telling = (p for p in self.parameters() if p.dim() == 4 and p.shape[1] > 1 and p.shape[2] > 1)
        return next(map(layout, telling), torch.contiguous_format)
