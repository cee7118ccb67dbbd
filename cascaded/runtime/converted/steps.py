"""One step of a converted model as an ONNX graph: the computation of `ConvertedModel.step`, for one step number."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from torch import Tensor, fx

from cascaded.cascade.convert.code import Delay, Take
from cascaded.cascade.convert.graph import batch_axis, value
from cascaded.cascade.convert.segments import Segment
from cascaded.runtime.converted.lines import Lines
from cascaded.runtime.converted.segment import write_segment
from cascaded.runtime.converted.writer import Value, Writer, Zeros
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
                if self.lines.length[node] and self.at.number > self.lines.lead(node) + 1
            )
            self.graph.anchor = next(((self.lines.name(node, 0), self.lines.shape(node)) for node in known), None)
        for position, segment in enumerate(plan.moving):
            if self.at.is_computed(segment):
                taken = [self._taken(position, segment, take) for take in segment.takes]
                writer = Writer(self.graph, self.lines.stepper.statistics, self.at.due(segment))
                self.now.update(zip(segment.gives, write_segment(writer, segment.module.graph, taken), strict=True))
        write_logits(self.graph, self.lines, self._at_age(plan.captured.output, 0))
        for node in self.lines.stepper.kept:
            for place in range(self.lines.length[node]):
                if self.at.changes(node, place):
                    write_line(self.graph, self.lines, node, place, self._at_age(node, place))

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
        return read_line(self.graph, self.lines, node, max(age - 1, 0))


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


def read_line(graph: Graph, lines: Lines, node: fx.Node, position: int) -> str:
    """A value that the step before left."""
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
