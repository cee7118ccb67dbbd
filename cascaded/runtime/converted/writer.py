"""Values of a graph that is written, and what operations share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor, fx

from cascaded.cascade.convert.graph import batch_axis, place, symbols, value
from cascaded.cascade.convert.statistics import StepStatistics
from cascaded.errors import InputError
from cascaded.runtime.graph import Graph

Sizes: TypeAlias = Sequence[int | torch.SymInt]


@dataclass(frozen=True)
class Zeros:
    """What comes out of a delay line in which nothing has arrived."""

    sizes: Sizes


@dataclass(frozen=True)
class Row:
    """One of several stacked values: their name, and its position."""

    stack: str
    position: int


@dataclass(frozen=True)
class Part:
    """Stacked weights from a position on."""

    whole: Tensor
    first: int

    def map(self, change: Callable[[Tensor], Tensor]) -> Part:
        """The same part of changed weights."""
        return Part(change(self.whole), self.first)


Value: TypeAlias = str | Row | Tensor | Part | Zeros
"""A value of a graph by its name or by its place in another, weights, or nothing."""


@dataclass(frozen=True)
class Writer:
    """Writes operations at one step.

    Attributes:
        graph: The graph that is written.
        statistics: Rows of the batch norms.
        step: The step, which chooses a row; None for one after which nothing changes.
    """

    graph: Graph
    statistics: StepStatistics | None = None
    step: int | None = None

    def name(self, x: Value | float) -> str:
        """The name of a value in the graph."""
        if isinstance(x, Tensor):
            return self.graph.constant(x)
        if isinstance(x, Part):
            return self.graph.constant(x.whole, x.first)
        if isinstance(x, Row):
            return self.graph.node("Gather", x.stack, self.graph.integer(x.position), axis=0)
        if isinstance(x, Zeros):
            return self.graph.node("Expand", self.graph.number(0.0), self.sizes(x.sizes))
        return x if isinstance(x, str) else self.graph.number(float(x))

    def names(self, *values: Value | None) -> list[str]:
        """Names of several values; those that are None are left out."""
        return [self.name(each) for each in values if each is not None]

    def node(self, kind: str, *inputs: Value | float, **attributes: Any) -> str:
        """Compute a value."""
        return self.graph.node(kind, *map(self.name, inputs), **attributes)

    def sizes(self, sizes: Sizes) -> str:
        """A shape, one of whose sizes may be the number of items."""
        if not any(map(symbols, sizes)):
            return self.graph.integers(*map(int, sizes))
        parts = [self.graph.batch() if symbols(size) else self.graph.integers(int(size)) for size in sizes]
        return self.graph.node("Concat", *parts, axis=0)

    def reshaped(self, x: Value, node: fx.Node) -> str:
        """A value in the shape of a node's tensor."""
        sizes = [-1 if symbols(size) else int(size) for size in value(node).shape]
        if node.meta.get("stacked"):
            sizes[0] = 0  # as many as there are
        if sizes.count(-1) > 1:
            raise cannot(node, "a tensor with two sizes that depend on the batch")
        return self.node("Reshape", x, self.graph.integers(*sizes))

    def swapped(self, x: Value, rank: int, one: int = -1, other: int = -2) -> str:
        """Two axes exchanged."""
        order = list(range(rank))
        order[one], order[other] = order[other], order[one]
        return self.node("Transpose", x, perm=order)

    def for_all_items(self, node: fx.Node, found: Tensor) -> str:
        """What is the same for every item, given for one, once per item of the batch."""
        repeats = [self.graph.integers(1)] * found.dim()
        repeats[batch_axis(node) or 0] = self.graph.batch()
        return self.graph.node("Tile", self.graph.constant(found), self.graph.node("Concat", *repeats, axis=0))


def for_one_item(node: fx.Node, found: Any) -> Any:
    """The rows of the first of two items; refused if those of the other differ."""
    axis = batch_axis(node)
    if axis is None or not isinstance(found, Tensor):
        return found
    one, other = found.chunk(2, axis)
    if not torch.equal(one, other):
        raise cannot(node, "a value that differs from item to item but does not depend on the input")
    return one


def cannot(node: fx.Node, what: str) -> InputError:
    """The error for an operation that has no counterpart."""
    return InputError(f"{place(node)} contains {what}, which cannot be exported: run the network with torch")


def shape(node: fx.Node, position: int = 0) -> Sizes:
    """The shape of an operand."""
    return value(node.args[position]).shape  # pyright: ignore[reportArgumentType]


def rank(node: fx.Node, position: int = 0) -> int:
    """The number of axes of an operand."""
    return len(shape(node, position))
