"""A segment rewritten for several sets of parameters at once: every tensor gets a leading axis, the set.

linear(x, W) of one block          x (batch, tokens, features), W (outputs, features)
the same of K blocks, one call     x (K, batch, tokens, features), W (K, outputs, features)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor, fx
from torch.nn import functional as F
from torch.utils._pytree import tree_map

from cascaded.cascade.convert.functional import SPLITS
from cascaded.cascade.convert.graph import is_number, named_arguments, op_name, value

# --- operations on stacked tensors


def stacked_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """A linear layer per set."""
    rows = x.flatten(1, -2)
    out = torch.bmm(rows, weight.mT) if bias is None else torch.baddbmm(bias.unsqueeze(1), rows, weight.mT)
    return out.unflatten(1, x.shape[1:-1])


def stacked_layer_norm(
    x: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    """A layer norm per set."""
    normed = F.layer_norm(x, list(normalized_shape), None, None, eps)
    if weight is not None:
        normed = normed * aligned(weight, x.dim())
    return normed if bias is None else normed + aligned(bias, x.dim())


def stacked_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, is_causal: bool, scale: float | None
) -> Tensor:
    """Attention of every set; without a mask, the sets are more items of a batch, for which torch has fast code."""
    if attn_mask is not None:
        return F.scaled_dot_product_attention(query, key, value, attn_mask, is_causal=is_causal, scale=scale)
    folded = [each.flatten(0, 1) for each in (query, key, value)]
    mixed = F.scaled_dot_product_attention(folded[0], folded[1], folded[2], is_causal=is_causal, scale=scale)
    return mixed.unflatten(0, query.shape[:2])


def stacked_reshape(x: Tensor, shape: Sequence[int]) -> Tensor:
    """A reshape of every set."""
    return x.reshape(len(x), *shape)


def aligned(x: Tensor, rank: int) -> Tensor:
    """A stacked tensor with as many axes as another, so that both are broadcast as without the sets."""
    return x.reshape(len(x), *[1] * (rank - x.dim()), *x.shape[1:])


# --- the graph of a segment, stacked

UNARY = {"relu", "gelu", "silu", "sigmoid", "tanh", "neg", "exp", "erf", "sqrt", "rsqrt", "abs", "leaky_relu", "pow"}
UNARY |= {"contiguous", "clone", "alias", "detach", "getitem"}
BINARY = {"add", "sub", "rsub", "mul", "div", "matmul", "bmm", "maximum", "minimum"}
SHIFTED = {"transpose", "permute", "unsqueeze", "squeeze", "select", "softmax", "mean", "sum", "flatten", "unflatten"}
SHIFTED |= {"slice", "cat"} | SPLITS
AXES = {"dim", "dims", "dim0", "dim1", "start_dim", "end_dim"}


class CannotStackError(Exception):
    """An operation has no counterpart on stacked tensors."""


class StackedCode:
    """Rewrites the graph of a segment.

    Args:
        graph: The graph.
        shared: Which of its inputs are the same in all sets, and have no leading axis.
    """

    def __init__(self, graph: fx.Graph, shared: Sequence[bool]):
        self.graph, self.made, self.stacked = fx.Graph(), dict[fx.Node, fx.Node](), set[fx.Node]()
        flags = iter(shared)
        for node in graph.nodes:
            if node.op == "placeholder":
                self.made[node] = self.graph.placeholder(node.name)
                if not next(flags, True):  # the number of items and the steps come last, and are shared
                    self.stacked.add(node)
            elif node.op == "output":
                self.graph.output(fx.map_arg(node.args[0], lambda each: self.made[each]))
            else:
                self.made[node] = self._copy(node)
            self._describe(node)
        self.graph.lint()

    def _describe(self, node: fx.Node) -> None:
        """What is known of a node's value, with the leading axis."""
        if node in self.made:
            self.made[node].meta.update(node.meta)
        if node in self.stacked:
            described = tree_map(lambda x: x.unsqueeze(0) if isinstance(x, Tensor) else x, value(node))
            self.made[node].meta.update(val=described, stacked=True)

    def _copy(self, node: fx.Node) -> fx.Node:
        args, kwargs = fx.map_arg((node.args, node.kwargs), lambda each: self.made[each])
        target, name = cast("Callable[..., Any]", node.target), op_name(node)
        if node.op != "call_function":
            raise CannotStackError(node.op)
        if not any(each in self.stacked for each in node.all_input_nodes):
            return self.graph.call_function(target, args, kwargs)  # pyright: ignore[reportArgumentType]
        if is_number(node):
            raise CannotStackError(name)
        self.stacked.add(node)
        if name in UNARY:
            return self.graph.call_function(target, args, kwargs)  # pyright: ignore[reportArgumentType]
        given = named_arguments(node, args, kwargs)
        if name in BINARY:
            return self._binary(node, target, given)
        if name in SHIFTED:
            return self._shifted(node, target, given)
        if name in ("linear", "layer_norm", "scaled_dot_product_attention", "reshape"):
            return self._layer(node, name, given)
        raise CannotStackError(name)

    def _binary(self, node: fx.Node, target: Callable[..., Any], given: dict[str, Any]) -> fx.Node:
        """Operands of different ranks are aligned at their last axes."""
        ranks = {each: value(each).dim() for each in node.all_input_nodes if isinstance(value(each), Tensor)}
        most = max(ranks.values())
        if any(rank == most for each, rank in ranks.items() if each not in self.stacked) and any(
            rank < most for each, rank in ranks.items() if each in self.stacked
        ):
            raise CannotStackError(op_name(node))
        for name, each in given.items():
            source = next((old for old in ranks if self.made[old] is each), None)
            if source in self.stacked and ranks[source] < most:
                given[name] = self.graph.call_function(aligned, (each, most + 1))
                given[name].meta.update(each.meta)
        if op_name(node) == "bmm":
            target = torch.ops.aten.matmul.default
        return self._call(target, given)

    def _shifted(self, node: fx.Node, target: Callable[..., Any], given: dict[str, Any]) -> fx.Node:
        """Axes are counted from behind, or one further from the front."""
        operands = given["tensors"] if "tensors" in given else [given["x"]]
        if not all(each.meta.get("stacked") for each in operands) or not AXES & set(given):
            raise CannotStackError(op_name(node))
        rank = operands[0].meta["val"].dim()
        for name in AXES & set(given):
            axes = given[name] if isinstance(given[name], Sequence) else [given[name]]
            if not axes or None in axes:
                raise CannotStackError(op_name(node))
            # a new axis at the end is counted by the rank after it is there
            new = [axis + 1 if axis >= 0 else axis + rank + (op_name(node) == "unsqueeze") for axis in axes]
            given[name] = new if isinstance(given[name], Sequence) else new[0]
        if op_name(node) == "permute":
            given["dims"] = [0, *given["dims"]]
        return self._call(target, given)

    def _layer(self, node: fx.Node, name: str, given: dict[str, Any]) -> fx.Node:
        stacked = {key for key, each in given.items() if isinstance(each, fx.Node) and each.meta.get("stacked")}
        tensors = {
            key
            for key, each in given.items()
            if isinstance(each, fx.Node) and (isinstance(value(each), Tensor) and key != "attn_mask")
        }
        if not tensors <= stacked or given.get("enable_gqa"):
            raise CannotStackError(name)
        kind, names = {
            "linear": (stacked_linear, ("x", "weight", "bias")),
            "layer_norm": (stacked_layer_norm, ("x", "normalized_shape", "weight", "bias", "eps")),
            "scaled_dot_product_attention": (
                stacked_attention,
                ("query", "key", "value", "attn_mask", "is_causal", "scale"),
            ),
            "reshape": (stacked_reshape, ("x", "shape")),
        }[name]
        if name == "scaled_dot_product_attention" and given["query"].meta["val"].dim() < 5:
            raise CannotStackError(name)
        return self.graph.call_function(kind, tuple(given.get(each) for each in names))

    def _call(self, target: Callable[..., Any], given: dict[str, Any]) -> fx.Node:
        """Call an operation with all its arguments by name."""
        schema = cast("torch._ops.OpOverload", target)._schema.arguments
        names = {("x" if each.name in ("self", "input") else each.name): each for each in schema}
        args = [given[name] for name, each in names.items() if not each.kwarg_only and name in given]
        kwargs = {name: given[name] for name, each in names.items() if each.kwarg_only and name in given}
        return self.graph.call_function(target, tuple(args), kwargs)
