"""Captures that have been checked, and the values that a run starts from."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, fx, nn
from torch.utils import _pytree as pytree

from cascaded.cascade.convert.alike import Alike, find_alike
from cascaded.cascade.convert.capture import Call, capture, choose_output
from cascaded.cascade.convert.checks import check_final, run_checked, unchanged
from cascaded.cascade.convert.choose import Choice, chosen_joins
from cascaded.cascade.convert.graph import batch_axis
from cascaded.cascade.convert.randomness import is_drawn
from cascaded.cascade.convert.run import Run, to_film
from cascaded.cascade.convert.segments import Plan
from cascaded.cascade.convert.statistics import Clock, StepStatistics
from cascaded.cascade.film import Film
from cascaded.cascade.kernels import OneStepDelay
from cascaded.errors import InputError

Start = Literal["empty", "rest"]
How = Literal["auto", "fold", "loop"]


@dataclass(frozen=True)
class Options:
    """Options of a conversion: see `convert`."""

    choice: Choice
    start: Start
    output: str | int | None
    run: How


@dataclass
class Ready:
    """A capture that has been checked.

    Attributes:
        plan: The graph and its segments.
        looped: Segments that are computed for one step after another, and why.
        alike: Segments that one step computes in one call.
    """

    plan: Plan
    looped: dict[int, str]
    alike: list[Alike]

    @property
    def folded(self) -> set[int]:
        """Segments that are computed for all their steps in one call."""
        return set(range(len(self.plan.moving))) - set(self.looped)


def signature(model: nn.Module, call: Call, any_batch: bool) -> Hashable:
    """What a capture depends on: modes, dtypes and devices of the model, structure and shapes of the inputs."""

    def form(leaf: Any) -> Hashable:
        if not isinstance(leaf, Tensor):
            return repr(leaf)
        shape = list(leaf.shape)
        if any_batch and call.batched(leaf):
            shape[call.batch_dim] = -1
        return tuple(shape), leaf.dtype, leaf.device

    modes = tuple(module.training for module in model.modules())
    tensors = frozenset((each.dtype, each.device) for each in [*model.parameters(), *model.buffers()])
    leaves, spec = pytree.tree_flatten((call.args, call.kwargs))
    return modes, tensors, str(spec), tuple(map(form, leaves))


def start_values(
    plan: Plan, model: nn.Module, call: Call, statistics: StepStatistics, still: bool = True
) -> dict[fx.Node, Any]:
    """Parameters, buffers, constants, numbers and, with `still`, all that does not depend on the inputs."""
    values: dict[fx.Node, Any] = dict(plan.captured.constants)
    for node, name in plan.captured.state.items():
        owner, _, leaf = name.rpartition(".")
        values[node] = getattr(model.get_submodule(owner), leaf)
    inputs = zip(plan.captured.inputs, call.leaves(), strict=True)
    values.update((node, leaf) for node, leaf in inputs if node not in plan.flow.moving)
    for segment in plan.still if still else []:
        taken = [values[source] for source, _ in segment.takes]
        values.update(zip(segment.gives, segment(taken, call.batch, Clock(statistics)), strict=True))
    return values


def input_films(plan: Plan, call: Call, steps: int, films: dict[int, Tensor] | None = None) -> dict[fx.Node, Film]:
    """The inputs as films: one frame each, but for those that are films `(time, ...)` already."""
    found = {}
    for position, (node, leaf) in enumerate(zip(plan.captured.inputs, call.leaves(), strict=True)):
        if node in plan.flow.moving:
            frames = [leaf] if not films or position not in films else list(films[position][:steps])
            found[node] = to_film(frames, batch_axis(node), steps)
    return found


def make_plan(model: nn.Module, call: Call, options: Options) -> Plan:
    """Capture a model for a call, and find what is delayed."""
    with torch.inference_mode(False), torch.enable_grad():
        captured = capture(model, call, options.output)
    joins = chosen_joins(captured, options.choice, type(model).__name__)
    return Plan(captured, joins, options.start == "rest")


def make_ready(
    net: nn.Module, model: nn.Module, plan: Plan, call: Call, options: Options, statistics: StepStatistics
) -> Ready:
    """Check a plan, and decide which segments run on several steps at once."""
    looped = check_plan(net, model, plan, call, options.output, statistics)
    if options.run == "loop":
        looped = {k: f"{segment.place}: run='loop'" for k, segment in enumerate(plan.moving)}
    elif options.run == "fold" and looped:
        reason = next(iter(looped.values()))
        raise InputError(f"time cannot be folded into the batch at {reason}; use run='auto', which loops there")
    if any(module.training for module in model.modules()):
        return Ready(plan, looped, [])
    with unchanged(net):
        return Ready(plan, looped, find_alike(plan, start_values(plan, model, call.widened(), statistics)))


def check_plan(
    net: nn.Module, model: nn.Module, plan: Plan, call: Call, output: str | int | None, statistics: StepStatistics
) -> dict[int, str]:
    """Run two different inputs, one after the other, frame by frame: compare with the model, and with folded frames.

    Returns:
        The segments that cannot be folded, and why.
    """
    call = call.widened()
    turned = call.map(lambda leaf: leaf.roll(1, call.batch_dim))
    pairs = enumerate(zip(call.leaves(), turned.leaves(), strict=True))
    frames = {position: torch.stack(pair) for position, pair in pairs if call.batched(pair[0])}
    steps = int(plan.steps_to_settle(OneStepDelay())) + 1
    with unchanged(net):
        torch.manual_seed(0)
        values = start_values(plan, model, call, statistics)
        films = input_films(plan, call, steps, frames)
        run = Run(plan, values, films, call.batch, steps, 2, OneStepDelay(), statistics, set())
        looped, final = run_checked(run), run.result()[-1]
        if final.device.type == "cpu" or not draws(plan):  # on other devices fused attention draws in another order
            torch.manual_seed(0)
            check_final(model, final, choose_output(model(*turned.args, **turned.kwargs), output))
    return looped


def draws(plan: Plan) -> bool:
    """Whether random numbers are drawn."""
    return any(is_drawn(node) for segment in plan.still for node in segment.nodes)
