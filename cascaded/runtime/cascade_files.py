"""The files of a hand-written cascade."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from cascaded.cascade.film import SETTLED
from cascaded.cascade.inputs import Schedule
from cascaded.cascade.kernels import Kernel
from cascaded.cascade.network import Cascade
from cascaded.cascade.norm import TimeBatchNorm
from cascaded.cascade.readout import Heads
from cascaded.cascade.state import State
from cascaded.errors import InputError
from cascaded.runtime.exported import StepFile
from cascaded.runtime.graph import Graph, Weights
from cascaded.runtime.steps import StepWriter, check_exportable
from cascaded.training.inputs import Inputs, describe_shape


@dataclass(frozen=True)
class CascadeFiles:
    """Writes the files of a cascade.

    Attributes:
        net: The network, in evaluation mode.
        kernel: The delay kernel.
        inputs: Input shape, normalization and class names.
        exits: Steps of the serial schedule with an output; all of them if it is empty.
    """

    net: Cascade
    kernel: Kernel
    inputs: Inputs
    exits: tuple[int, ...] = ()

    @property
    def heads(self) -> Heads:
        """The kind of heads."""
        return self.net.heads

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """The schedules that the network has."""
        return ("serial",) if self.heads == "shallow_deep" else ("cascaded", "serial")

    def check(self) -> None:
        """Refuse what has no counterpart in the exported files."""
        inputs, net = self.inputs, self.net
        if inputs.shape[0] != net.in_channels or len(inputs.classes) != net.num_classes:
            raise InputError(
                f"inputs are of {describe_shape(inputs.shape)} and {len(inputs.classes)} classes, the network has "
                f"{net.in_channels} input channels and {net.num_classes} classes: give the inputs of this network"
            )
        check_exportable(net, self.kernel)

    def write_steps(self, schedule: Schedule, folder: Path, weights: Weights) -> Iterator[StepFile]:
        """Write the files of a schedule."""
        return self._serial(folder, weights) if schedule == "serial" else self._cascaded(folder, weights)

    def write_full_pass(self, graph: Graph) -> None:
        """Write the whole network without time."""
        first = self._state("serial", None)
        StepWriter(self.net, self.kernel, graph, SETTLED, first, None).write_full_pass()

    def operations(self, schedule: Schedule) -> list[int]:
        """Operations per image at every step."""
        if schedule == "serial" and self.exits:
            return []  # heads and skip paths of the other steps are not computed
        _, height, width = self.inputs.shape
        return self.net.operations(height, width, schedule, kernel=self.kernel)

    # --- files of a schedule

    def _serial(self, folder: Path, weights: Weights) -> Iterator[StepFile]:
        """One file per exit, and one for the steps after the last block, at which nothing changes."""
        last = len(self.net.blocks) + 2
        exits, before, first = (*(self.exits or range(1, last)), last), None, 1
        for number, end in enumerate(exits, start=1):
            after, graph = before, Graph(weights)
            for _ in range(first, end + 1):
                after = self._state("serial", after)
            assert after is not None
            StepWriter(self.net, self.kernel, graph, end, after, before).write_serial(first)
            name = f"segment-{number}.onnx"
            graph.save(folder / name)
            yield StepFile(name, number, None if end == last else number, graph.reads, graph.writes)
            before, first = after, end + 1

    def _cascaded(self, folder: Path, weights: Weights) -> Iterator[StepFile]:
        """Files that compute all blocks, and files that compute those whose input still changes."""
        state = self._state("cascaded", None)
        for first, last, settled in self._ranges():
            before = None if first == 1 else state
            graph = Graph(weights)
            StepWriter(self.net, self.kernel, graph, first, state, before).write_cascaded(settled)
            name = f"{'step' if settled or first == 1 else 'frame'}-{first}.onnx"
            graph.save(folder / name)
            yield StepFile(name, first, last, graph.reads, graph.writes)

    def _ranges(self) -> Iterator[tuple[int, int | None, int]]:
        """First step, last step, and the number of settled blocks of every file."""
        yield 1, 1, 0
        norms = [each.distinct_rows for each in self.net.modules() if isinstance(each, TimeBatchNorm)]
        last = max([*norms, len(self.net.blocks)]) + 2  # from here on, nothing depends on the step
        settled = {step: self.net.settled_blocks(step, step - 1, self.kernel) for step in range(2, last + 1)}
        for all_blocks in (True, False):
            steps = [(step, 0 if all_blocks else settled[step]) for step in settled if all_blocks or settled[step]]
            alike: dict[Hashable, list[tuple[int, int]]] = {}
            for step, count in steps:
                alike.setdefault(self._computation(step, count), []).append((step, count))
            for each in alike.values():
                (first, count), (end, _) = each[0], each[-1]
                yield first, None if end == last else end, count

    def _computation(self, step: int, settled: int) -> Hashable:
        """What distinguishes the computation of a step: blocks, rows of norm statistics, and the head."""
        parts: list[tuple[nn.Module, int]] = [] if settled else [(self.net.stem, step)]
        for block in self.net.chain[settled:]:
            parts += [(block.branch, step - self.kernel.lag), (block.after, step)]
        norms = [(m, at) for part, at in parts for m in part.modules() if isinstance(m, TimeBatchNorm)]
        rows = [min(at, norm.distinct_rows - 1) for norm, at in norms]
        return settled, tuple(rows), id(self.net.readout.at(step))

    def _state(self, schedule: Schedule, before: State | None) -> State:
        """The state after one more step of blank images: its shapes are those of the files."""
        like = next(self.net.parameters())
        images = None if before is not None else like.new_zeros(2, *self.inputs.shape)
        return self.net.step(images, before, kernel=self.kernel, schedule=schedule)[1]
