"""One step of a network as an ONNX graph: the same computation as `Cascade.step`, for one step number.

A graph reads what the step needs of the state, and writes what it changes. A block whose input is final is not in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from cascaded.cascade.block import Block, DenseBlock, ResidualBlock
from cascaded.cascade.film import REST, SETTLED, Film, still
from cascaded.cascade.kernels import Kernel
from cascaded.cascade.network import Cascade
from cascaded.cascade.state import State
from cascaded.errors import InputError
from cascaded.runtime.exported import BATCH, NEXT, Shape
from cascaded.runtime.graph import Graph
from cascaded.runtime.layers import write_head, write_layer
from cascaded.runtime.spread import check_kernel, write_spread


@dataclass(frozen=True)
class StepWriter:
    """Writes one step of a network.

    Attributes:
        net: The network, in evaluation mode.
        kernel: The delay kernel.
        graph: The graph that is written.
        number: Number of the step, from 1.
        after: A state after this step, of any images: shapes only.
        before: A state before this step; None at the first step.
    """

    net: Cascade
    kernel: Kernel
    graph: Graph
    number: int
    after: State
    before: State | None

    # --- the cascaded schedule

    def write_cascaded(self, settled: int) -> None:
        """Write a cascaded step.

        Args:
            settled: How many blocks, from the first one on, have the same output as at the step before. If there are
                any, the frame is not read.
        """
        blocks = self.net.chain
        if settled == 0:
            z = write_layer(self.graph, self.net.stem, self._frame(), self.number)
            z = self._spread(z, 0)
        else:
            z = self._seen(settled) if settled < len(blocks) else self._read("features")
        for i in range(settled, len(blocks)):
            if self.kernel.lag and (i > settled or settled == 0):
                self._write(f"seen.{i + 1}", z)
            z = self._join(blocks[i], z, self._spread(self._branch(i, z), i + 1), self.number)
        if settled < len(blocks):
            self._write("features", z)
        self._write_logits(z)

    def _branch(self, i: int, z: str) -> str:
        """What block i's branch computes at this step."""
        block = self.net.chain[i]
        if not self.kernel.lag:
            return write_layer(self.graph, block.branch, z, self.number)
        if self.before is not None:
            return write_layer(self.graph, block.branch, self._seen(i), self.number - 1)
        # the initial state is the same for every image: what the branch computes from it is a constant
        rest = self._rest()[i]
        arrived = block.branch(Film(rest, batch=1, steps=1, start=REST)).frames
        constant = self.graph.constant(arrived)
        if not self.kernel.kept and isinstance(block, ResidualBlock):
            return constant  # it is added to every item of the batch
        batch = self.graph.node("Shape", z, start=0, end=1)
        shape = self.graph.node("Concat", batch, self.graph.integers(*arrived.shape[1:]), axis=0)
        return self.graph.node("Expand", constant, shape)

    def _rest(self) -> list[Tensor]:
        """Every block's input in the initial state."""
        net = self.net
        z = net.stem(still(net.arrange(torch.zeros_like(self.after.frame[:1])), steps=1))
        return [line.seen for line in net.rest_lines(z, self.kernel)[1:] if line.seen is not None]

    def _spread(self, x: str, i: int) -> str:
        """The kernel less its lag, for the stem (0) or a block; it reads and writes the trail."""
        old = self._read(f"trail.{i}") if self.before is not None and self.kernel.kept else None
        out, trail = write_spread(self.graph, self.kernel, x, old)
        if trail is not None:
            self._write(f"trail.{i}", trail)
        return out

    # --- the serial schedule

    def write_serial(self, first: int) -> None:
        """Write steps of the serial schedule, with the logits of the last one: the stem, then one block per step.

        After the last block, nothing but the head is computed.

        Args:
            first: The first of the steps; the last one is `number`.
        """
        blocks, number = self.net.chain, self.number
        if self.before is None:
            z = write_layer(self.graph, self.net.stem, self._frame(), SETTLED)
        else:
            z = self._read("features")
        for step in range(max(first, 2), min(number, len(blocks) + 1) + 1):
            z = self.write_settled_block(blocks[step - 2], z, step)
        if first <= len(blocks) + 1:
            self._write("features", z)
        if self.net.heads != "shallow_deep":
            for block in blocks[number - 1 :]:
                z = self._skip_only(block, z)
        self._write_logits(z)

    def write_full_pass(self) -> None:
        """Write the whole network without time: every block once."""
        z = write_layer(self.graph, self.net.stem, self._frame(), SETTLED)
        for block in self.net.chain:
            z = self.write_settled_block(block, z, SETTLED)
        self._write_logits(z)

    def write_settled_block(self, block: Block, z: str, step: int) -> str:
        """Add a block that is computed once, from its final input; returns its output."""
        return self._join(block, z, write_layer(self.graph, block.branch, z, SETTLED), step)

    def _skip_only(self, block: Block, z: str) -> str:
        """A block without its branch."""
        if isinstance(block, DenseBlock):
            z = self.graph.node("Pad", z, self.graph.integers(0, block.growth, *[0] * 6))
        else:
            z = self.graph.node("Relu", write_layer(self.graph, cast(ResidualBlock, block).skip, z, self.number))
        return write_layer(self.graph, block.after, z, self.number)

    # --- both

    def _join(self, block: Block, z: str, arrived: str, step: int) -> str:
        """The join of a block and the layers after it."""
        graph = self.graph
        if isinstance(block, DenseBlock):
            z = graph.node("Concat", arrived, z, axis=1)
        else:
            skip = write_layer(graph, cast(ResidualBlock, block).skip, z, step)
            z = graph.node("Relu", graph.node("Add", skip, arrived))
        return write_layer(graph, block.after, z, step)

    def _write_logits(self, features: str) -> None:
        logits = write_head(self.graph, self.net.readout.at(self.number), features)
        self.graph.output("logits", logits, (BATCH, self.net.num_classes))

    def _frame(self) -> str:
        return self.graph.input("frame", shape_of(self.after, "frame"))

    def _seen(self, i: int) -> str:
        return self._read(f"seen.{i + 1}")

    def _read(self, name: str) -> str:
        """A tensor of the state before this step."""
        assert self.before is not None
        return self.graph.input(name, shape_of(self.before, name))

    def _write(self, name: str, value: str) -> None:
        """A tensor of the state after this step."""
        self.graph.output(NEXT + name, value, shape_of(self.after, name))


def tensors_of(state: State) -> dict[str, Tensor]:
    """The tensors of a state by name: `features`, `seen.1` of the first block, `trail.0` of the stem, and so on."""
    seen = {f"seen.{i}": each for i, each in enumerate(state.seen, start=1)}
    trail = {f"trail.{i}": each for i, each in enumerate(state.trail)}
    return {"features": state.features, **seen, **trail}


def shape_of(state: State, name: str) -> Shape:
    """The shape of a tensor of a state, for a batch of any size."""
    tensor = state.frame if name == "frame" else tensors_of(state)[name]
    axis = int(name.startswith("trail."))
    return (*tensor.shape[:axis], BATCH, *tensor.shape[axis + 1 :])


def check_exportable(net: Cascade, kernel: Kernel) -> None:
    """Refuse what has no counterpart in the exported files."""
    if net.training:
        raise InputError("the network is in training mode, which changes its batch statistics: call net.eval() first")
    check_kernel(kernel)
    for block in net.chain:
        if type(block) not in (ResidualBlock, DenseBlock):
            raise InputError(
                f"the network contains a {type(block).__name__}, which cannot be exported: its blocks must be "
                "cascaded.ResidualBlock or cascaded.DenseBlock themselves"
            )
