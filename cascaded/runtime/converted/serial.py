"""The serial schedule of a converted model, and its full pass, as ONNX graphs: see `convert.serial`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from torch import fx

from cascaded.cascade.convert.code import Delay, Take
from cascaded.cascade.convert.graph import value
from cascaded.cascade.convert.segments import Segment
from cascaded.cascade.convert.serial import is_final
from cascaded.runtime.converted.lines import Lines
from cascaded.runtime.converted.segment import write_segment
from cascaded.runtime.converted.steps import constant, read_line, write_line, write_logits
from cascaded.runtime.converted.writer import Value, Writer, Zeros
from cascaded.runtime.graph import Graph


@dataclass(frozen=True)
class SerialSteps:
    """The steps of the serial schedule: every segment once, from its final inputs."""

    lines: Lines

    def computed(self, step: int) -> list[Segment]:
        """What is computed at a step: segments that become final, and those between them and the output."""
        return [
            segment
            for segment in self.lines.plan.moving
            if (is_final(segment, step) and not is_final(segment, step - 1))
            or (not is_final(segment, step) and segment.key.distance == 0)
        ]

    @cached_property
    def known(self) -> dict[fx.Node, int]:
        """The step at which every value is final."""
        steps = range(1, self.lines.plan.final_stage + 2)
        final = {
            node: next(step for step in steps if is_final(segment, step))
            for segment in self.lines.plan.moving
            for node in segment.gives
        }
        return {**dict.fromkeys(self.lines.plan.inputs, 1), **final}

    def is_sent(self, take: Take, step: int) -> bool:
        """Whether something comes out of a delay line."""
        return take.delay is not Delay.BRANCH or self.lines.plan.keys[take.source].stage < step

    @cached_property
    def read_later(self) -> set[fx.Node]:
        """What is read at a later step than it is computed."""
        found = {self.lines.plan.captured.output}
        for step in range(2, self.lines.plan.final_stage + 1):
            for segment in self.computed(step):
                takes = [take for take in self.lines.takes(segment) if self.is_sent(take, step)]
                found |= {take.source for take in takes if self.known[take.source] < step}
        return found

    def write(self, graph: Graph, step: int | None) -> None:
        """Write a step; with None all of them at once, one full pass."""
        lines, now = self.lines, dict[fx.Node, Value]()
        if step in (None, 1):
            now.update((node, graph.input("frame", lines.shape(node))) for node in lines.plan.inputs)

        def taken(take: Take) -> Value:
            if take.source in lines.constants:
                return constant(graph, take.source, lines.constants[take.source])
            if step is not None and not self.is_sent(take, step):
                return Zeros(value(take.source).shape)
            return now[take.source] if take.source in now else read_line(graph, lines, take.source, 0)

        for segment in lines.plan.moving if step is None else self.computed(step):
            row = None if step is None or is_final(segment, step) else step
            writer = Writer(graph, lines.stepper.statistics, row)
            results = write_segment(writer, segment.module.graph, [taken(each) for each in segment.takes])
            now.update(zip(segment.gives, results, strict=True))
        output = lines.plan.captured.output
        write_logits(graph, lines, now[output] if output in now else read_line(graph, lines, output, 0))
        for node in lines.stepper.kept if step is not None else ():
            if node in self.read_later and self.known[node] == step:
                write_line(graph, lines, node, 0, now[node])
