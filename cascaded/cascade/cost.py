"""The cost of a step: in block updates and in operations."""

from __future__ import annotations

import copy
import math
from collections.abc import Hashable
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from cascaded.cascade.kernels import Kernel
from cascaded.cascade.norm import TimeBatchNorm

if TYPE_CHECKING:
    from cascaded.cascade.inputs import Schedule
    from cascaded.cascade.network import Cascade


def serial_cycles(blocks: int, steps: int | None = None) -> list[int]:
    """Block updates per step: none for the stem's output, then one per step until all blocks are computed."""
    steps = blocks + 1 if steps is None else steps
    return [int(1 < t <= blocks + 1) for t in range(1, steps + 1)]


def cascaded_cycles(blocks: int, kernel: Kernel, steps: int, moving: bool = False) -> list[int]:
    """At every step, the blocks that are due and whose input has changed.

    Block i's input changes up to step s_i, s_1 = 1 + memory, s_{i+1} = s_i + memory + lag, and its result is due a lag
    later.
    """
    lasts = [math.inf if moving else kernel.settles(i) for i in range(1, blocks + 1)]
    return [sum(1 + kernel.lag <= t <= last + kernel.lag for last in lasts) for t in range(1, steps + 1)]


def _without_norms(net: Cascade) -> Cascade:
    """The same shapes: a norm counts as no operation, and takes most of the time that counting takes."""
    for module in list(net.modules()):
        for name, child in module.named_children():
            if isinstance(child, TimeBatchNorm):
                setattr(module, name, nn.Identity())
    return net


_COUNTED: dict[tuple[Hashable, ...], list[int]] = {}
"""What was counted, by all that it depends on: networks of the same form are recorded by the dozen."""


def operations(net: Cascade, size: tuple[int, int], schedule: Schedule, kernel: Kernel, steps: int) -> list[int]:
    """Operations per image at every step, counted once for all networks of the same form."""
    form = (repr(net), _form(net), size, schedule, kernel, steps)
    if form not in _COUNTED:
        _COUNTED[form] = _count(net, size, schedule, kernel, steps)
    return list(_COUNTED[form])


def _form(net: Cascade) -> tuple[Hashable, ...]:
    """Shapes of parameters, and every number and word that modules hold; a module's own text may leave some out."""
    shapes = tuple((name, tuple(each.shape)) for name, each in net.named_parameters())
    held = [(name, *item) for name, each in net.named_modules() for item in vars(each).items()]
    plain = [(name, key, repr(value)) for name, key, value in held if isinstance(value, int | float | str | tuple)]
    return shapes, tuple(plain)


def _count(net: Cascade, size: tuple[int, int], schedule: Schedule, kernel: Kernel, steps: int) -> list[int]:
    """Operations on tensors that have a shape only.

    The difference between a batch of three and a batch of two is an image's own share. The rest of the first step is
    the initial state, which is computed once per batch, however many steps follow.
    """
    shell = _without_norms(copy.deepcopy(net)).to("meta").train()
    # once all has settled a further step costs nothing; where nothing ever does, it costs what the second one did
    stages = len(net.blocks) + 1
    settled = kernel.settles(stages) if schedule == "cascaded" else stages
    counted = min(steps, 2 if math.isinf(settled) else int(settled) + 1)

    def total(batch: int, steps: int) -> int:
        images = torch.empty(batch, net.in_channels, *size, device="meta")
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            shell(images, kernel=kernel, steps=steps, schedule=schedule)
        return counter.get_total_flops()

    pair = total(2, 1)
    own = total(3, 1) - pair
    state = pair - 2 * own
    totals = [0, own, *((total(2, n) - state) // 2 for n in range(2, counted + 1))]
    each = [after - before for before, after in pairwise(totals)]
    return each + each[-1:] * (steps - counted)
