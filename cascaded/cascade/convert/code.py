"""A segment as code: a function from what it takes to what it gives.

It is the same function for one step and for several steps folded into the batch: sizes are computed from the number of
items, and batch norms get the steps.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, fx

from cascaded.cascade.convert.capture import Captured
from cascaded.cascade.convert.graph import at_batch, ones, op_name, value
from cascaded.cascade.convert.randomness import blank, draw_mask
from cascaded.cascade.convert.statistics import layer_of, normalize


class Delay(Enum):
    """What happens on an edge."""

    NONE = "none"
    BRANCH = "branch"  # the whole kernel
    STEM = "stem"  # the kernel without its lag: step 0, the initial state, was that


class Take(NamedTuple):
    """A value that a segment gets from outside."""

    source: fx.Node
    delay: Delay


class SegmentCode:
    """The graph of one segment.

    Args:
        captured: The graph that the segment is a part of.
        delay: What happens on an edge.
        takes: What the segment gets from outside.
    """

    def __init__(self, captured: Captured, delay: Callable[[fx.Node, fx.Node], Delay], takes: list[Take]):
        self.captured, self.delay, self.graph = captured, delay, fx.Graph()
        names = [f"{take.source.name}_{take.delay.value}" for take in takes]
        self.taken = {take: self.graph.placeholder(name) for take, name in zip(takes, names, strict=True)}
        self.batch, self.clock = self.graph.placeholder("batch_size"), self.graph.placeholder("clock")
        self.made: dict[fx.Node, fx.Node] = {}

    def module(self, nodes: list[fx.Node], gives: list[fx.Node]) -> fx.GraphModule:
        """A module that is called with what the segment takes, the number of items, and the steps."""
        for node in nodes:
            self.made[node] = self._copy(node)
        for node, copy in self.made.items():
            copy.meta.update(node.meta)
        for take, copy in self.taken.items():
            copy.meta.update(take.source.meta)
        self.graph.output(tuple(self.made[node] for node in gives))
        return fx.GraphModule(self.captured.root, self.graph)

    def _argument(self, source: fx.Node, user: fx.Node) -> fx.Node:
        take = Take(source, self.delay(source, user))
        if take in self.taken:
            return self.taken[take]
        if source not in self.made:
            self.made[source] = self._remake(source)
        return self.made[source]

    def _copy(self, node: fx.Node) -> fx.Node:
        args, kwargs = fx.map_arg((node.args, node.kwargs), lambda source: self._argument(source, node))
        if op_name(node) == "batch_norm":
            return self.graph.call_function(normalize, (self.clock, layer_of(node, self.captured.state), *args), kwargs)
        if node.target in (blank, draw_mask):
            args = (self.graph.call_function(_ones(node), (self.batch,)), *args)
        return self.graph.call_function(cast("Callable[..., Any]", node.target), args, kwargs)

    def _remake(self, node: fx.Node) -> fx.Node:
        """A size, a tensor made of sizes, or a sub-graph."""
        if node.op == "get_attr":
            return self.graph.get_attr(str(node.target))
        if isinstance(value(node), torch.SymInt):
            return self.graph.call_function(_size(value(node).node.expr), (self.batch,))
        return self._copy(node)


def _size(expression: Any) -> Callable[[int], int]:
    def size(batch: int) -> int:
        return at_batch(expression, batch)

    return size


def _ones(node: fx.Node) -> Callable[[int], Tensor]:
    def ones_for(batch: int) -> Tensor:
        return ones(node, batch)

    return ones_for
