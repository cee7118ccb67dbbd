"""What the files of a converted model remember between steps.

A value of which the output is `lead` steps ahead has at step t reached its own step t - lead. Position p of its line
contains its step t - lead - p. For a still input, all its steps from `distinct` on are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, fx

from cascaded.cascade.convert.code import Delay, Take
from cascaded.cascade.convert.graph import batch_axis, op_name, shape_at, value
from cascaded.cascade.convert.segments import Plan, Segment
from cascaded.cascade.convert.state import GraphState
from cascaded.cascade.convert.step import Stepper
from cascaded.cascade.kernels import Kernel
from cascaded.errors import InputError
from cascaded.runtime.exported import BATCH, Shape


@dataclass(frozen=True)
class Lines:
    """The lines of a converted model.

    Attributes:
        stepper: The graph, its segments and the kernel.
        constants: Parameters, buffers, and what does not depend on the inputs; one row of what has a batch.
        rest: What delay lines contain at first, one row; nothing if they start empty.

    The values that blocks which are alike read are remembered as one tensor, a stack.
    """

    stepper: Stepper
    constants: dict[fx.Node, Any]
    rest: dict[fx.Node, Tensor]

    @property
    def plan(self) -> Plan:
        """The graph and its segments."""
        return self.stepper.plan

    @property
    def kernel(self) -> Kernel:
        """The delay kernel."""
        return self.stepper.kernel

    @cached_property
    def segments(self) -> dict[fx.Node, Segment]:
        """The segment that computes each remembered value; inputs have none."""
        return {node: segment for segment in self.plan.moving for node in segment.gives}

    def lead(self, node: fx.Node) -> int:
        """How many steps ahead of the output a value is."""
        return self.stepper.leads.get(node, 0)

    def distinct(self, node: fx.Node) -> float:
        """How many different values a node takes for a still input."""
        return self.segments[node].distinct(self.kernel) if node in self.segments else 1

    def final_step(self, node: fx.Node) -> float:
        """The last step at which a value is computed, for a still input."""
        return self.distinct(node) + self.lead(node)

    def takes(self, segment: Segment) -> list[Take]:
        """What a segment takes that depends on the inputs."""
        return [take for take in segment.takes if take.source not in self.constants]

    @cached_property
    def length(self) -> dict[fx.Node, int]:
        """How many positions of every line are needed."""
        found = dict(self.stepper.ages)
        for segment in self.plan.moving:
            last = segment.distinct(self.kernel) + segment.lead(self.kernel)
            for take in self.takes(segment):
                if self.stepper.age(segment, take) == 0 and last > self.final_step(take.source):
                    found[take.source] = max(found[take.source], 1)
        if self.final_step(self.plan.captured.output) < float("inf"):
            found[self.plan.captured.output] = max(found[self.plan.captured.output], 1)
        return found

    # --- stacks

    @cached_property
    def stacks(self) -> list[tuple[fx.Node, ...]]:
        """Values that are remembered together: each depends on the last step alone, and is in one stack."""
        found: dict[tuple[fx.Node, ...], None] = {}
        for alike in self.stepper.alike if self.kernel.lag else ():
            for k in range(len(alike.shared)):
                takes = [(segment, segment.takes[k]) for segment in alike.segments]
                nodes = tuple(take.source for _, take in takes)
                is_stack = alike.moving[k] and not alike.shared[k] and len(set(nodes)) == len(nodes)
                ages = {self.stepper.age(segment, take) for segment, take in takes} if is_stack else {0}
                taken = {node for stack in found if stack != nodes for node in stack}
                if ages == {1} and not any(batch_axis(node) for node in nodes) and not taken & set(nodes):
                    found[nodes] = None
        return list(found)

    def row(self, node: fx.Node) -> tuple[int, int] | None:
        """The stack that contains the last value of a node, and its position there."""
        places = ((number, stack.index(node)) for number, stack in enumerate(self.stacks) if node in stack)
        return next(places, None)

    @cached_property
    def sums(self) -> dict[fx.Node, tuple[fx.Node, fx.Node]]:
        """By what they give, the operands of segments that are nothing but the sum of a value and a delayed value."""
        found = {}
        for segment in self.plan.moving if self.kernel.only_lags else ():
            takes = {take.delay: take.source for take in segment.takes}
            is_add = [op_name(node) for node in segment.nodes] == ["add"] and not segment.nodes[0].kwargs
            if is_add and set(takes) == {Delay.NONE, Delay.BRANCH} and len(segment.takes) == 2:
                z, b = takes[Delay.NONE], takes[Delay.BRANCH]
                if value(z).shape == value(b).shape and not {z, b} & set(self.constants):
                    found[segment.gives[0]] = z, b
        return found

    def stack_shape(self, number: int) -> Shape:
        """The shape of a stack: the batch is the second axis."""
        return (len(self.stacks[number]), *self.shape(self.stacks[number][0]))

    # --- names and shapes

    def name(self, node: fx.Node, position: int) -> str:
        """The name of a remembered value."""
        number = self.stepper.kept.index(node)
        return f"seen.{number}" + (f".{position}" if position else "")

    def shape(self, node: fx.Node) -> Shape:
        """The shape of a remembered value: the batch comes first."""
        sizes = shape_at(node, 1)
        del sizes[batch_axis(node) or 0]
        return (BATCH, *sizes)

    def tensors(self, state: GraphState) -> dict[str, Tensor]:
        """The tensors of a state by the names that they have in files."""
        found = {}
        for node, frames in zip(self.stepper.kept, state.frames, strict=True):
            for position, frame in enumerate(reversed(frames[-self.length[node] :] if self.length[node] else ())):
                if state.step - self.lead(node) - position > 0 and (position or self.row(node) is None):
                    found[self.name(node, position)] = frame.movedim(batch_axis(node) or 0, 0)
        newest = {node: frames[-1] for node, frames in zip(self.stepper.kept, state.frames, strict=True) if frames}
        stacks = {f"stack.{i}": torch.stack([newest[node] for node in each]) for i, each in enumerate(self.stacks)}
        found.update(stacks)
        trails = {f"trail.{i}": each for i, each in enumerate(state.trails) if each is not None}
        return {**found, **trails}


def check_lines(plan: Plan) -> None:
    """Refuse values of which an item cannot be removed."""
    for node in [*plan.inputs, *(node for segment in plan.moving for node in segment.gives)]:
        axis = batch_axis(node)
        if not isinstance(value(node), Tensor) or axis is None or shape_at(node, 2)[axis] != 2:
            raise InputError(
                f"{node.name} has no axis with one row per item, so that items could not leave a batch: run the "
                "network with torch"
            )
