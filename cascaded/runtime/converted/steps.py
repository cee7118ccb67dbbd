"""One step of a converted model as an ONNX graph: the computation of `ConvertedModel.step`, for one step number."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import accumulate, groupby

import torch
from torch import Tensor, fx

from cascaded.cascade.convert.alike import Alike
from cascaded.cascade.convert.code import Delay, Take
from cascaded.cascade.convert.graph import batch_axis, value
from cascaded.cascade.convert.segments import Segment
from cascaded.runtime.converted.lines import Lines
from cascaded.runtime.converted.segment import write_segment
from cascaded.runtime.converted.writer import Part, Row, Value, Writer, Zeros
from cascaded.runtime.exported import NEXT
from cascaded.runtime.graph import Graph
from cascaded.runtime.spread import write_spread


@dataclass(frozen=True)
class StepAt:
    """A step of the cascaded schedule.

    Attributes:
        lines: What is remembered.
        number: Number of the step, from 1.
        still: Whether the frame is the same as at all steps before; what is final is then not computed again.
    """

    lines: Lines
    number: int
    still: bool

    def due(self, segment: Segment) -> int:
        """The step of its own that a segment computes; below 1 there is none yet."""
        return self.number - segment.lead(self.lines.kernel)

    def is_computed(self, segment: Segment) -> bool:
        """Whether a segment is computed: it is due, and not the same as at the step before."""
        return self.due(segment) > 0 and not self.is_final(segment)

    def is_final(self, segment: Segment) -> bool:
        """Whether a segment is the same as at the step before."""
        return self.still and self.due(segment) > segment.distinct(self.lines.kernel)

    def content(self, node: fx.Node, position: int, before: bool = False) -> float:
        """The step of its own that a position of a value's line contains after, or before, this step."""
        step = self.number - before - self.lines.lead(node) - position
        return min(step, self.lines.distinct(node)) if self.still else step

    def changes(self, node: fx.Node, position: int) -> bool:
        """Whether a position of a line gets another content at this step."""
        new = self.content(node, position)
        return new > 0 and new != self.content(node, position, before=True)

    def computation(self) -> Hashable:
        """What distinguishes the computation of a step from that of others."""
        lines, kernel = self.lines, self.lines.kernel
        segments = []
        for segment in lines.plan.moving:
            due = self.due(segment) if self.is_computed(segment) else 0
            takes = [lines.stepper.age(segment, take) + lines.lead(take.source) for take in lines.takes(segment)]
            missing = tuple(min(self.number - late, 1) for late in takes if due)
            segments.append((min(due, segment.key.stage), due == 1 and kernel.kept, missing))
        changed = [self.changes(node, p) for node in lines.stepper.kept for p in range(lines.length[node])]
        return tuple(segments), tuple(changed)


@dataclass
class StepWriter:
    """Writes a step of the cascaded schedule.

    Attributes:
        at: The step.
        graph: The graph that is written.
    """

    at: StepAt
    graph: Graph
    now: dict[fx.Node, Value] = field(default_factory=dict)  # what this step has computed

    @property
    def lines(self) -> Lines:
        """What is remembered."""
        return self.at.lines

    def write(self) -> None:
        """Write the step: all segments that are computed, the logits, and what is remembered."""
        plan = self.lines.plan
        (frame,) = plan.inputs
        if self.at.number == 1 or not self.at.still:
            self.now[frame] = self.graph.input("frame", self.lines.shape(frame))
        else:
            known = (
                node
                for node in self.lines.stepper.kept
                if self.lines.length[node]
                and self.at.number > self.lines.lead(node) + 1
                and self.lines.row(node) is None
            )
            self.graph.anchor = next(((self.lines.name(node, 0), self.lines.shape(node)) for node in known), None)
        for alike in self.lines.stepper.alike if self.lines.kernel.lag and self.at.number > 1 else ():
            self._write_alike(alike)
        for position, segment in enumerate(plan.moving):
            if not self.at.is_computed(segment) or segment.gives[0] in self.now:
                continue
            if len(chain := self._chain(segment)) > 1:
                self._write_sums(chain)
            else:
                taken = [self._taken(position, segment, take) for take in segment.takes]
                writer = Writer(self.graph, self.lines.stepper.statistics, self.at.due(segment))
                self.now.update(zip(segment.gives, write_segment(writer, segment.module.graph, taken), strict=True))
        write_logits(self.graph, self.lines, self._at_age(plan.captured.output, 0))
        for node in self.lines.stepper.kept:
            for place in range(self.lines.length[node]):
                if self.at.changes(node, place) and (place or self.lines.row(node) is None):
                    write_line(self.graph, self.lines, node, place, self._at_age(node, place))
        for number, stack in enumerate(self.lines.stacks):
            if any(self.at.changes(node, 0) for node in stack):
                self._write_stack(number, stack)

    def _write_alike(self, alike: Alike) -> None:
        """Add segments that are alike, in one computation, if more than one is computed."""
        members = [k for k, segment in enumerate(alike.segments) if self.at.is_computed(segment)]
        if len(members) < 2 or members != list(range(members[0], len(alike.segments))):
            return
        taken: list[Value] = []
        for k, take in enumerate(alike.segments[0].takes):
            sources = [alike.segments[member].takes[k].source for member in range(len(alike.segments))]
            if alike.shared[k]:
                taken.append(self._taken(alike.positions[0], alike.segments[0], take))
            elif alike.moving[k]:
                taken.append(self._stacked(alike, k, sources, members[0]))
            else:
                taken.append(Part(torch.stack([self.lines.constants[source] for source in sources]), members[0]))
        for node, stack in enumerate(write_segment(Writer(self.graph), alike.module.graph, taken)):
            name = Writer(self.graph).name(stack)
            self.now.update((alike.segments[k].gives[node], Row(name, k - members[0])) for k in members)

    def _stacked(self, alike: Alike, k: int, sources: list[fx.Node], first: int) -> str:
        """What segments that are alike take from the step before, from the first that is computed on."""
        graph = self.graph
        if tuple(sources) in self.lines.stacks:
            number = self.lines.stacks.index(tuple(sources))
            stack = graph.input(f"stack.{number}", self.lines.stack_shape(number))
            return graph.node("Slice", stack, *map(graph.integers, (first, len(sources), 0))) if first else stack
        ages = [self.lines.stepper.age(segment, segment.takes[k]) for segment in alike.segments]
        rows = [self._at_age(source, age) for source, age in zip(sources, ages, strict=True)][first:]
        single = [graph.node("Unsqueeze", Writer(graph).name(row), graph.integers(0)) for row in rows]
        return graph.node("Concat", *single, axis=0)

    def _write_stack(self, number: int, stack: tuple[fx.Node, ...]) -> None:
        """Remember values as one tensor: those that are the same as before, then new ones."""
        graph, shape = self.graph, self.lines.stack_shape(number)
        same = next(k for k, node in enumerate(stack) if self.at.changes(node, 0))
        parts = []
        if same:
            old = graph.input(f"stack.{number}", shape)
            parts = [graph.node("Slice", old, *map(graph.integers, (0, same, 0)))]
        values = [self._at_age(node, 0) for node in stack[same:]]
        for source, alike in groupby(values, key=lambda each: each.stack if isinstance(each, Row) else None):
            if source is None:
                parts += [graph.node("Unsqueeze", Writer(graph).name(x), graph.integers(0)) for x in alike]
            else:
                parts.append(_rows(graph, source, [x.position for x in alike if isinstance(x, Row)]))
        whole = graph.node("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]
        graph.output(f"{NEXT}stack.{number}", whole, shape)

    # --- sums of what blocks that are alike give

    def _chain(self, segment: Segment) -> list[tuple[fx.Node, Segment]]:
        """Segments z1 = z0 + b1, z2 = z1 + b2, ... from one on, each with its delayed operand, a row of a stack."""
        sums = {node: (z, b) for node, (z, b) in self.lines.sums.items() if isinstance(self.now.get(b), Row)}
        following = {z: (b, self.lines.segments[node]) for node, (z, b) in sums.items()}
        chain, (z, _) = [], sums.get(segment.gives[0], (None, None))
        while z in following and self.at.is_computed(following[z][1]):
            chain.append(following[z])
            z = following[z][1].gives[0]
        return chain

    def _write_sums(self, chain: list[tuple[fx.Node, Segment]]) -> None:
        """All sums of a chain in one operation."""
        graph = self.graph
        (z,) = (take.source for take in chain[0][1].takes if take.delay is Delay.NONE)
        first = graph.node("Unsqueeze", Writer(graph).name(self._at_age(z, 0)), graph.integers(0))
        rows = [row for b, _ in chain if isinstance(row := self.now[b], Row)]
        stacks = list(dict.fromkeys(row.stack for row in rows))
        lengths = [1 + max(row.position for row in rows if row.stack == stack) for stack in stacks]
        starts = dict(zip(stacks, accumulate(lengths, initial=1), strict=False))
        parts = [_rows(graph, stack, list(range(length))) for stack, length in zip(stacks, lengths, strict=True)]
        terms = graph.node("Concat", first, *parts, axis=0)
        if len(stacks) > 1:
            terms = _rows(graph, terms, [0, *(starts[row.stack] + row.position for row in rows)])
        sums = graph.node("CumSum", terms, graph.integer(0))
        self.now.update((segment.gives[0], Row(sums, k)) for k, (_, segment) in enumerate(chain, start=1))

    def _taken(self, position: int, segment: Segment, take: Take) -> Value:
        """What a segment takes: the value of this step or an earlier one, after the kernel."""
        source, kernel = take.source, self.lines.kernel
        if source in self.lines.constants:
            return constant(self.graph, source, self.lines.constants[source])
        x = self._at_age(source, self.lines.stepper.age(segment, take))
        if take.delay is Delay.NONE or kernel.only_lags:
            return x
        name = shape = old = None
        if kernel.kept:
            name = f"trail.{self.lines.stepper.delayed.index((position, take))}"
            shape = (kernel.kept, *self.lines.shape(source))
            old = self.graph.input(name, shape) if self.at.due(segment) > 1 else None
        x, trail = write_spread(self.graph, kernel, to_batch_first(self.graph, source, x), old)
        if name and shape and trail:
            self.graph.output(NEXT + name, trail, shape)
        return from_batch_first(self.graph, source, x)

    def _at_age(self, node: fx.Node, age: int) -> Value:
        """A value some steps ago, as it is after this step."""
        step = self.at.number - self.lines.lead(node) - age
        if step == 0 and node in self.lines.rest:
            return constant(self.graph, node, self.lines.rest[node])
        if step <= 0:
            return Zeros(value(node).shape)
        if age == 0 and node in self.now:
            return self.now[node]
        # what is final was not computed: it is where the step before left it
        return read_line(self.graph, self.lines, node, max(age - 1, 0), stacked=True)


def _rows(graph: Graph, stack: str, positions: list[int]) -> str:
    """Some of several stacked values."""
    return graph.node("Gather", stack, graph.integers(*positions), axis=0)


def constant(graph: Graph, node: fx.Node, found: Tensor) -> Value:
    """A value that does not depend on the inputs; for every item if it has a batch."""
    if batch_axis(node) is None or not isinstance(found, Tensor):
        return found
    return Writer(graph).for_all_items(node, found)


def write_logits(graph: Graph, lines: Lines, logits: Value) -> None:
    """Make a value the output of a file."""
    output = lines.plan.captured.output
    name = to_batch_first(graph, output, logits)
    graph.output("logits", name, lines.shape(output))


def read_line(graph: Graph, lines: Lines, node: fx.Node, position: int, stacked: bool = False) -> str:
    """A value that the step before left."""
    row = lines.row(node) if stacked and position == 0 else None
    if row is not None:
        number, place = row
        stack = graph.input(f"stack.{number}", lines.stack_shape(number))
        return Writer(graph).name(Row(stack, place))
    return from_batch_first(graph, node, graph.input(lines.name(node, position), lines.shape(node)))


def write_line(graph: Graph, lines: Lines, node: fx.Node, position: int, x: Value) -> None:
    """A value that later steps read."""
    graph.output(NEXT + lines.name(node, position), to_batch_first(graph, node, x), lines.shape(node))


def to_batch_first(graph: Graph, node: fx.Node, x: Value) -> str:
    """A value as it is remembered."""
    return _moved(graph, node, x, to=True)


def from_batch_first(graph: Graph, node: fx.Node, x: Value) -> str:
    """A remembered value as the model computes it."""
    return _moved(graph, node, x, to=False)


def _moved(graph: Graph, node: fx.Node, x: Value, to: bool) -> str:
    name = Writer(graph).name(x)
    axis, order = batch_axis(node), list(range(value(node).dim()))
    if not axis:
        return name
    order.insert(*((0, order.pop(axis)) if to else (axis, order.pop(0))))
    return graph.node("Transpose", name, perm=order)
