"""The cost of a converted model's steps, in operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from cascaded.cascade.convert.network import ConvertedModel
from cascaded.cascade.convert.state import GraphState
from cascaded.cascade.inputs import Schedule
from cascaded.cascade.kernels import Kernel


def count(function: Callable[[], object]) -> int:
    """Floating-point operations of a call, as torch's `FlopCounterMode` counts them."""
    # torch does not count the products of fused attention on a CPU
    with FlopCounterMode(display=False) as counter, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        function()
    return counter.get_total_flops()


def operations_per_step(
    net: ConvertedModel,
    inputs: Any,
    *,
    kernel: Kernel | None = None,
    steps: int | None = None,
    schedule: Schedule | None = None,
) -> list[int]:
    """Operations of every step while the inputs are repeated: what an output costs over the one before it.

    Args:
        net: A converted model, in evaluation mode.
        inputs: Inputs in the form of the example.
        kernel: Delay kernel; the network's own by default.
        steps: Number of steps; by default until the output is final.
        schedule: `cascaded` or `serial`.
    """
    if steps is None:
        steps = net.serial_steps if schedule == "serial" else net.steps_to_settle(kernel or net.kernel)
    states: list[GraphState | None] = [None]

    def step(number: int) -> None:
        given = None if number else inputs
        states.append(net.step(given, states[-1], kernel=kernel, schedule=schedule)[1])

    return [count(lambda number=number: step(number)) for number in range(steps)]
