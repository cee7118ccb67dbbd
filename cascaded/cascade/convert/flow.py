"""The flow of a graph: which nodes depend on the inputs, and what lies on the way from one to another."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, fx

from cascaded.cascade.convert.functional import SPLITS, VIEWS
from cascaded.cascade.convert.graph import is_number, op_name, value

CONVOLUTIONS = {f"{kind}{dims}d" for kind in ("conv", "conv_transpose") for dims in (1, 2, 3)} | {"convolution"}
POOLS = {f"avg_pool{dims}d" for dims in (1, 2, 3)}
MIXING = {"linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "einsum", "scaled_dot_product_attention", "attend"}
MIXING |= {"lstm", "gru", "rnn_tanh", "rnn_relu", "fft_fft", "fft_fft2", "fft_fftn", "fft_rfft", "fft_rfft2"}
MIXING |= {"_fft_c2c", "_fft_r2c"} | CONVOLUTIONS | POOLS
"""Operations that combine positions or channels: a path with one of them is a branch, not a rescaling."""

LINEAR = {"linear", "mm", "addmm", "add", "sub", "rsub", "neg", "clone", "mean", "pad", "constant_pad_nd", "roll"}
LINEAR |= {"cat", "stack", "index", "getitem", "pixel_shuffle", "batch_norm", "layer_norm", "group_norm"}
LINEAR |= {"instance_norm"} | VIEWS | SPLITS | CONVOLUTIONS | POOLS
LINEAR |= {f"{kind}_pool{dims}d" for kind in ("max", "adaptive_avg") for dims in (1, 2, 3)}
LINEAR |= {"upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_linear1d"}
LINEAR |= {"upsample_bilinear2d", "upsample_trilinear3d"}
"""What a projected skip connection may consist of: no activation function."""


class Flow:
    """Ancestors and dominators of the nodes that depend on the inputs.

    Attributes:
        nodes: All nodes, in order.
        moving: Nodes that depend on an input, and may therefore change from step to step.
    """

    def __init__(self, graph: fx.Graph, inputs: Iterable[fx.Node]):
        self.nodes = list(graph.nodes)
        self.order = {node: position for position, node in enumerate(self.nodes)}
        self.moving = {node for node in inputs if isinstance(value(node), Tensor)}
        self.ancestors: dict[fx.Node, int] = {}  # bit k: the k-th node is an ancestor, or the node itself
        self.dominators: dict[fx.Node, fx.Node | None] = {}
        for node in self.nodes:
            sources = [each for each in node.all_input_nodes if each in self.moving]
            if node.op == "call_function" and sources and not is_number(node):
                self.moving.add(node)
            if node in self.moving:
                self.ancestors[node] = 1 << self.order[node]
                for each in sources:
                    self.ancestors[node] |= self.ancestors[each]
                self.dominators[node] = self.common(sources)

    def common(self, nodes: Iterable[fx.Node]) -> fx.Node | None:
        """The nearest node that every path from the inputs to any of these goes through; None if there is none."""
        first, *others = list(nodes) or [None]
        for other in others:
            while first is not other:
                if first is None or other is None:
                    return None
                if self.order[first] > self.order[other]:
                    first = self.dominators[first]
                else:
                    other = self.dominators[other]
        return first

    def above(self, node: fx.Node, other: fx.Node) -> bool:
        """Whether a node is an ancestor of another one."""
        return node is not other and bool(self.ancestors[other] >> self.order[node] & 1)

    def between(self, source: fx.Node, end: fx.Node) -> list[fx.Node]:
        """Nodes on paths from `source`, which is not among them, to `end`, which is."""
        later = self.nodes[self.order[source] + 1 : self.order[end] + 1]
        return [
            node
            for node in later
            if node in self.moving and self.above(source, node) and (node is end or self.above(node, end))
        ]

    def mixes(self, source: fx.Node, end: fx.Node) -> int:
        """How many operations between two nodes combine positions or channels."""
        return sum(op_name(node) in MIXING for node in self.between(source, end))

    def is_linear(self, source: fx.Node, end: fx.Node) -> bool:
        """Whether there is neither an activation function nor a product of two signals between two nodes."""
        return all(self._is_linear(node) for node in self.between(source, end))

    def _is_linear(self, node: fx.Node) -> bool:
        if op_name(node) in ("mul", "div"):
            return sum(each in self.moving for each in node.all_input_nodes) == 1
        return op_name(node) in LINEAR


def shape(node: fx.Node) -> tuple[int | torch.SymInt, ...] | None:
    """Shape of a node's tensor; None for numbers and tuples."""
    return tuple(value(node).shape) if isinstance(value(node), Tensor) else None
