"""Export a network as ONNX files, which run without torch."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from torch import nn

from cascaded.cascade.film import SETTLED
from cascaded.cascade.inputs import Schedule, chosen_schedule
from cascaded.cascade.kernels import Kernel
from cascaded.cascade.network import Cascade
from cascaded.cascade.norm import TimeBatchNorm
from cascaded.cascade.state import State
from cascaded.errors import InputError
from cascaded.files import sha256, write_folder, write_json
from cascaded.hub.pretrained import Pretrained
from cascaded.runtime.exported import CONFIG, FULL_PASS, WEIGHTS, ExportConfig, StepFile, Steps
from cascaded.runtime.graph import OPSET, Graph, Weights, import_onnx
from cascaded.runtime.steps import StepWriter, check_exportable
from cascaded.training.inputs import Inputs, describe_shape
from cascaded.training.run_file import made_with


@torch.no_grad()
def export(
    net: Cascade | Pretrained, folder: Path | str, *, inputs: Inputs | None = None, kernel: Kernel | None = None
) -> ExportConfig:
    """Write a network as ONNX files, which `cascaded.runtime.Runner` runs without torch.

    The folder has one file per step or range of steps that are alike, for every schedule of the network, `serial.onnx`
    (one full pass), the weights, which they share, and `config.json`. It is complete or does not exist, whenever the
    process is killed.

    Args:
        net: A network in evaluation mode, such as one from `cascaded.load`.
        folder: Where to write; a folder that does not exist or is empty.
        inputs: Input shape, normalization and class names; required for a `Cascade`, which does not know them.
        kernel: Delay kernel; the network's own by default.
    """
    folder = Path(os.path.expanduser(folder))
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists: give a new folder to export to")
    schedule, accuracy = None, ()
    if isinstance(net, Pretrained):
        inputs, schedule = inputs or net.inputs, net.schedule
        accuracy = net.accuracy if kernel in (None, net.net.kernel) else ()
        net = cast("Cascade", net.net)  # which is checked below
    inputs = _checked(net, inputs)
    schedule = schedule or chosen_schedule(None, net.heads)
    exporter = Exporter(net, kernel or net.kernel, inputs, schedule, accuracy)
    check_exportable(net, exporter.kernel)
    import_onnx()  # after the network is checked: installing it would not help one that cannot be exported
    return write_folder(folder, exporter.write)


def _checked(net: Cascade, inputs: Inputs | None) -> Inputs:
    """The inputs of a network, checked."""
    if not isinstance(net, Cascade):
        raise InputError(
            f"a {type(net).__name__} cannot be exported: give a Cascade, or a Pretrained from cascaded.load"
        )
    if inputs is None:
        raise InputError(
            "a Cascade does not know its input size, normalization and classes, which an exported network needs: give "
            "inputs=cascaded.Inputs(shape, mean, std, classes)"
        )
    if inputs.shape[0] != net.in_channels or len(inputs.classes) != net.num_classes:
        raise InputError(
            f"inputs are of {describe_shape(inputs.shape)} and {len(inputs.classes)} classes, the network has "
            f"{net.in_channels} input channels and {net.num_classes} classes: give the inputs of this network"
        )
    return inputs


@dataclass(frozen=True)
class Exporter:
    """Writes the files of one network."""

    net: Cascade
    kernel: Kernel
    inputs: Inputs
    schedule: Schedule
    accuracy: tuple[float, ...]

    def write(self, folder: Path) -> ExportConfig:
        """Write all files into an empty folder."""
        weights = Weights(folder / WEIGHTS)
        own: tuple[Schedule, ...] = ("serial",) if self.net.heads == "shallow_deep" else ("cascaded", "serial")
        schedules = {schedule: self._steps(folder, weights, schedule) for schedule in own}
        graph = Graph(weights)
        first = self._state("serial", None)
        StepWriter(self.net, self.kernel, graph, SETTLED, first, None).write_full_pass()
        graph.save(folder / FULL_PASS)
        digests = {file.name: sha256(file) for file in sorted(folder.iterdir())}
        about = (self.inputs, str(self.kernel), self.net.heads, self.schedule)
        config = ExportConfig(*about, dict(schedules), digests, OPSET, made_with())
        write_json(folder / CONFIG, config.to_json())
        return config

    def _steps(self, folder: Path, weights: Weights, schedule: Schedule) -> Steps:
        """Write the files of a schedule."""
        files = [*self._serial(folder, weights)] if schedule == "serial" else [*self._cascaded(folder, weights)]
        files.sort(key=lambda each: ("frame" in each.reads, each.first))
        bounded = schedule == "serial" or self.kernel.memory < float("inf")
        operations, accuracy = [], self.accuracy if schedule == self.schedule else ()
        if bounded:
            _, height, width = self.inputs.shape
            operations = self.net.operations(height, width, schedule, kernel=self.kernel)
        return Steps(len(operations) or None, tuple(files), tuple(accuracy), tuple(operations))

    def _serial(self, folder: Path, weights: Weights) -> Iterator[StepFile]:
        """One file per block, and one for the steps after the last block, at which nothing changes."""
        before, last = None, len(self.net.blocks) + 2
        for number in range(1, last + 1):
            after, graph = self._state("serial", before), Graph(weights)
            StepWriter(self.net, self.kernel, graph, number, after, before).write_serial()
            name = f"segment-{number}.onnx"
            graph.save(folder / name)
            yield StepFile(name, number, None if number == last else number, graph.reads, graph.writes)
            before = after

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
