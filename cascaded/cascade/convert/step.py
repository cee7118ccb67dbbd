"""One step of a converted model.

At step t a segment that is d delays away from the output computes its step t - d: what is due, and nothing before it is
due. Therefore a segment may need its sources as they were some steps ago, and the state remembers their last values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import Tensor, fx

from cascaded.cascade.convert.alike import Alike
from cascaded.cascade.convert.code import Delay, Take
from cascaded.cascade.convert.graph import batch_axis, shape_at, value, zeros
from cascaded.cascade.convert.run import frame_at, rest_values, to_film
from cascaded.cascade.convert.segments import Plan, Segment
from cascaded.cascade.convert.state import GraphState
from cascaded.cascade.convert.statistics import Clock, StepStatistics
from cascaded.cascade.kernels import Kernel

Memory = dict[fx.Node, list[Tensor]]


@dataclass(frozen=True)
class Stepper:
    """Steps of a plan under one kernel.

    Attributes:
        plan: The graph and its segments.
        kernel: Delay kernel.
        statistics: Rows of the batch norms.
        fixed: Why items cannot be removed from a batch; empty if they can.
        alike: Segments that are computed in one call.
    """

    plan: Plan
    kernel: Kernel
    statistics: StepStatistics
    fixed: str
    alike: Sequence[Alike] = ()

    # --- what is remembered

    @cached_property
    def kept(self) -> list[fx.Node]:
        """Nodes whose last values are remembered: inputs, and what segments give."""
        return self.plan.inputs + [node for segment in self.plan.moving for node in segment.gives]

    @cached_property
    def still(self) -> list[fx.Node]:
        """Nodes whose values do not depend on the inputs."""
        return [node for segment in self.plan.still for node in segment.gives]

    @cached_property
    def leads(self) -> dict[fx.Node, int]:
        """How many steps ahead of the output each remembered node is; inputs arrive when they are shown."""
        return {node: segment.lead(self.kernel) for segment in self.plan.moving for node in segment.gives}

    def age(self, segment: Segment, take: Take) -> int:
        """How many steps before its newest value a segment needs a source."""
        lag = self.kernel.lag if take.delay is Delay.BRANCH else 0
        return segment.lead(self.kernel) + lag - self.leads.get(take.source, 0)

    @cached_property
    def ages(self) -> dict[fx.Node, int]:
        """The largest age at which each node is needed."""
        found = dict.fromkeys(self.kept, 0)
        for segment in self.plan.moving:
            for take in segment.takes:
                if take.source in found:
                    found[take.source] = max(found[take.source], self.age(segment, take))
        return found

    @cached_property
    def delayed(self) -> list[tuple[int, Take]]:
        """The delayed edges: segment and take."""
        takes = [(position, take) for position, each in enumerate(self.plan.moving) for take in each.takes]
        return (
            [(position, take) for position, take in takes if take.delay is not Delay.NONE] if self.kernel.kept else []
        )

    # --- a step

    def step(
        self, inputs: dict[fx.Node, Tensor] | None, values: dict[fx.Node, Any], batch: int, state: GraphState | None
    ) -> tuple[Tensor, GraphState]:
        """The output after one more step; inputs None repeats the last ones."""
        number, held = (1, 0) if state is None else (state.step + 1, state.held)
        memory: Memory = {node: [] for node in self.kept}
        trails: dict[tuple[int, Take], Tensor | None] = dict.fromkeys(self.delayed)
        if state is not None:
            memory = {node: list(frames) for node, frames in zip(self.kept, state.frames, strict=True)}
            trails = dict(zip(self.delayed, state.trails, strict=True))
            values = values | dict(zip(self.still, state.still, strict=True))
        for node in self.plan.inputs:
            memory[node].append(memory[node][-1] if inputs is None else inputs[node])
        stepping = _Step(self, number, held if inputs is None else 0, values, memory, trails, batch)
        stepping.run()
        return memory[self.plan.captured.output][-1], stepping.state(held=stepping.held + 1)


@dataclass
class _Step:
    """One step: its number, and what was remembered before it."""

    stepper: Stepper
    number: int
    held: int
    values: dict[fx.Node, Any]
    memory: Memory
    trails: dict[tuple[int, Take], Tensor | None]
    batch: int

    def run(self) -> None:
        kernel, together = self.stepper.kernel, self._together()
        for position, segment in enumerate(self.stepper.plan.moving):
            if self.number == 1 and segment.key.behind_stem and kernel.lag:
                self._start_from_rest(segment)
            due = self.number - segment.lead(kernel)
            if due < 1:
                continue
            if position in together:
                results = together[position]
            elif self._is_final(segment):
                results = tuple(self.memory[node][-1] for node in segment.gives)
            else:
                taken = [self._taken(position, segment, take) for take in segment.takes]
                results = segment(taken, self.batch, Clock(self.stepper.statistics, due))
            for node, result in zip(segment.gives, results, strict=True):
                self.memory[node].append(result)

    def _is_final(self, segment: Segment) -> bool:
        """Whether a segment is the same as at the last step."""
        return self.held >= segment.distinct(self.stepper.kernel) + segment.lead(self.stepper.kernel)

    def _together(self) -> dict[int, tuple[Tensor, ...]]:
        """What segments that are alike give, by their position. They depend on earlier steps only."""
        found: dict[int, tuple[Tensor, ...]] = {}
        for alike in self.stepper.alike if self.number > 1 and self.stepper.kernel.lag else ():
            due = self.number - alike.segments[0].lead(self.stepper.kernel)
            members = [k for k, segment in enumerate(alike.segments) if due > 0 and not self._is_final(segment)]
            if len(members) > 1 and members == list(range(members[0], members[-1] + 1)):
                taken = [[self._before(alike.segments[k], take) for take in alike.segments[k].takes] for k in members]
                results = alike.compute(self.values, taken, members, self.batch)
                found.update((alike.positions[k], each) for k, each in zip(members, results, strict=True))
        return found

    def _before(self, segment: Segment, take: Take) -> Any:
        """What a segment takes from an earlier step, before this one has computed anything."""
        if take.source in self.values:
            return self.values[take.source]
        return self.memory[take.source][-self.stepper.age(segment, take)]

    def _start_from_rest(self, segment: Segment) -> None:
        """Before the first segment behind the stem, at the first step: branches as they are at rest."""
        plan = self.stepper.plan
        if segment is not next(each for each in plan.moving if each.key.behind_stem):
            return
        known = {node: frames[-1] for node, frames in self.memory.items() if frames}
        rest = rest_values(plan, {**self.values, **known}, self.batch, self.stepper.statistics)
        for node, frame in rest.items():
            self.memory[node].append(frame)

    def _taken(self, position: int, segment: Segment, take: Take) -> Any:
        source, delay = take
        if source in self.values:
            return self.values[source]
        age, frames = self.stepper.age(segment, take), self.memory[source]
        frame = frames[-1 - age] if age < len(frames) else zeros(source, self.batch)
        if delay is Delay.NONE or self.stepper.kernel.only_lags:
            return frame
        axis, trail = batch_axis(source), self.trails.get((position, take))
        film, trail = self.stepper.kernel.spread(to_film([frame], axis, 1), trail)
        if self.stepper.kernel.kept:
            self.trails[position, take] = trail
        return frame_at(film, 1, axis)

    def state(self, held: int) -> GraphState:
        """What the next step needs."""
        stepper = self.stepper
        in_trails = (1 if batch_axis(take.source) is not None else None for _, take in stepper.delayed)
        axes = (tuple(map(batch_axis, stepper.kept)), tuple(in_trails), tuple(map(batch_axis, stepper.still)))
        return GraphState(
            step=self.number,
            held=held,
            batch=self.batch,
            made_by=repr(stepper.kernel),
            frames=tuple(tuple(self.memory[node][-1 - stepper.ages[node] :]) for node in stepper.kept),
            trails=tuple(self.trails.values()),
            still=tuple(self.values[node] for node in stepper.still),
            axes=axes,
            fixed=stepper.fixed,
        )


def why_fixed(plan: Plan, looped: dict[int, str]) -> str:
    """Why items cannot be removed from a batch: values that do not have one row, or several adjacent ones, per item."""
    for position, segment in enumerate(plan.moving):
        for node in segment.gives:
            axis = batch_axis(node)
            if axis is None and isinstance(value(node), Tensor):
                return f"{node.name} has no batch axis"
            if position in looped and axis is not None and shape_at(node, 2)[axis] != 2:
                return f"{node.name} has several rows per item"
    return ""
