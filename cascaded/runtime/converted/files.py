"""The files of a converted model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path

import torch
from torch import Tensor, fx

from cascaded.cascade.convert.capture import Call
from cascaded.cascade.convert.captures import start_values
from cascaded.cascade.convert.cost import operations_per_step
from cascaded.cascade.convert.graph import batch_axis, shape_at
from cascaded.cascade.convert.network import ConvertedModel
from cascaded.cascade.convert.run import rest_values
from cascaded.cascade.convert.statistics import norm_layers
from cascaded.cascade.convert.step import Stepper
from cascaded.cascade.inputs import Schedule
from cascaded.cascade.kernels import Kernel
from cascaded.cascade.readout import Heads
from cascaded.errors import InputError
from cascaded.runtime.converted.lines import Lines, check_lines
from cascaded.runtime.converted.serial import SerialSteps
from cascaded.runtime.converted.steps import StepAt, StepWriter
from cascaded.runtime.converted.writer import for_one_item
from cascaded.runtime.exported import StepFile
from cascaded.runtime.graph import Graph, Weights
from cascaded.runtime.spread import check_kernel
from cascaded.training.inputs import Inputs, describe_shape


@dataclass(frozen=True)
class ConvertedFiles:
    """Writes the files of a converted image model.

    Attributes:
        net: The model, in evaluation mode.
        kernel: The delay kernel.
        inputs: Input shape, normalization and class names.
        batched: Blocks that are alike may be one computation with stacked weights, which ONNX Runtime does not have in
            8 bits.
    """

    net: ConvertedModel
    kernel: Kernel
    inputs: Inputs
    batched: bool = True
    heads: Heads = "shared"
    schedules: tuple[Schedule, ...] = ("cascaded", "serial")
    exits: tuple[int, ...] = ()

    def check(self) -> None:
        """Refuse what has no counterpart in the exported files."""
        if any(module.training for module in self.net.model.modules()):
            raise InputError(
                "the network is in training mode, which changes its batch statistics: call net.eval() first"
            )
        check_kernel(self.kernel)
        leaves = self.net.form.leaves()
        if len(leaves) != 1 or not isinstance(leaves[0], Tensor) or leaves[0].dim() != 4 or self.net.form.batch_dim:
            raise InputError(
                f"{type(self.net.model).__name__} takes other inputs than one batch of images, (batch, channels, "
                "height, width), which exported networks take: run it with torch"
            )
        if tuple(leaves[0].shape[1:]) != self.inputs.shape:
            raise InputError(
                f"inputs are of {describe_shape(self.inputs.shape)}, the model was converted for "
                f"{describe_shape(tuple(leaves[0].shape[1:]))}: convert it with images of that shape"
            )
        self._check_output()
        self._check_statistics()

    def _check_output(self) -> None:
        plan = self.lines.plan
        if not plan.captured.any_batch:
            raise InputError(
                f"{type(self.net.model).__name__} has a fixed batch size, exported networks take any: compute sizes "
                "from the shape of the input"
            )
        check_lines(plan)
        classes = shape_at(plan.captured.output, 2)[1:2]
        if classes != [len(self.inputs.classes)] or batch_axis(plan.captured.output) != 0:
            raise InputError(
                f"the output has shape {tuple(shape_at(plan.captured.output, 2))} for two images, inputs name "
                f"{len(self.inputs.classes)} classes: give one name per logit"
            )

    def _check_statistics(self) -> None:
        """Refuse batch statistics of more steps than a value changes: eager steps then depend on when it changed."""
        names = norm_layers(self.lines.plan.keys, self.lines.plan.captured.state)
        for name, node in names.items():
            values = 1 + (self.lines.plan.keys[node].stage - 1) * (self.kernel.lag + self.kernel.memory)
            if values < self.lines.plan.keys[node].stage:
                raise InputError(
                    f"the batch norm {name} has statistics for {self.lines.plan.keys[node].stage} steps, but with "
                    f"{self.kernel} it has one value per image: use a kernel that delays"
                )

    @cached_property
    def images(self) -> Tensor:
        """Two different images."""
        like = next(self.net.parameters())
        generator = torch.Generator().manual_seed(0)
        return torch.randn(2, *self.inputs.shape, generator=generator).to(like.device, like.dtype)

    @cached_property
    def lines(self) -> Lines:
        """What the files remember, and the values that do not depend on the images."""
        call = Call((self.images,), {}, 0)
        ready = self.net.ready(call)
        plan = ready.plan
        values = start_values(plan, self.net.model, call, self.net.statistics)
        constants = {node: for_one_item(node, each) for node, each in values.items()}
        stepper = Stepper(
            plan, self.kernel, self.net.statistics, "", ready.alike if self.net.batched and self.batched else ()
        )
        return Lines(stepper, constants, self._rest(values, stepper))

    def _rest(self, values: dict[fx.Node, Tensor], stepper: Stepper) -> dict[fx.Node, Tensor]:
        """What delay lines contain at first."""
        plan = stepper.plan
        if plan.stem is None or not self.kernel.lag:
            return {}
        _, state = self.net.step(self.images, kernel=self.kernel)
        first = {node: frames[-1] for node, frames in zip(stepper.kept, state.frames, strict=True) if frames}
        rest = rest_values(plan, {**values, **first}, len(self.images), self.net.statistics)
        return {node: for_one_item(node, each) for node, each in rest.items()}

    # --- files

    def write_steps(self, schedule: Schedule, folder: Path, weights: Weights) -> Iterator[StepFile]:
        """Write the files of a schedule."""
        return self._serial(folder, weights) if schedule == "serial" else self._cascaded(folder, weights)

    def write_full_pass(self, graph: Graph) -> None:
        """Write the whole network without time."""
        SerialSteps(self.lines).write(graph, None)

    def operations(self, schedule: Schedule) -> list[int]:
        """Operations per image at every step."""
        return operations_per_step(self.net, self.images[:1], kernel=self.kernel, schedule=schedule)

    def _serial(self, folder: Path, weights: Weights) -> Iterator[StepFile]:
        """One file per step, and one for the steps after the last, at which nothing changes."""
        steps, last = SerialSteps(self.lines), self.lines.plan.final_stage + 1
        for number in range(1, last + 1):
            graph = Graph(weights)
            steps.write(graph, number)
            name = f"segment-{number}.onnx"
            graph.save(folder / name)
            yield StepFile(name, number, None if number == last else number, graph.reads, graph.writes)

    def _cascaded(self, folder: Path, weights: Weights) -> Iterator[StepFile]:
        """Files that compute all segments, and files that compute those that still change."""
        for first, last, still in self._ranges():
            graph = Graph(weights)
            StepWriter(StepAt(self.lines, first, still), graph).write()
            name = f"{'step' if still else 'frame'}-{first}.onnx"
            graph.save(folder / name)
            yield StepFile(name, first, last, graph.reads, graph.writes)

    def _ranges(self) -> Iterator[tuple[int, int | None, bool]]:
        """First step, last step, and whether the frame is repeated, of every file."""
        yield 1, 1, True
        lines, moving = self.lines, self.lines.plan.moving
        ends = [segment.distinct(self.kernel) + segment.lead(self.kernel) for segment in moving]
        ends += [segment.key.stage + segment.lead(self.kernel) for segment in moving]
        last = int(max(end for end in ends if end < float("inf"))) + max(lines.length.values()) + 2
        for still in (False, True):
            steps = [StepAt(lines, number, still) for number in range(2, last + 1)]
            steps = [step for step in steps if not still or any(map(step.is_final, moving))]
            for _, alike in groupby(steps, key=StepAt.computation):
                first, *_, end = [step.number for step in alike] * 2
                yield first, None if end == last else end, still
