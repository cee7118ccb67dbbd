"""A segment of a captured graph as ONNX nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, fx
from torch.utils._pytree import tree_leaves, tree_map

from cascaded.cascade.convert.graph import at_batch, batch_axis, is_number, named_arguments, op_name, value
from cascaded.runtime.converted.layers import LAYERS
from cascaded.runtime.converted.operations import OPERATIONS
from cascaded.runtime.converted.stacked import STACKED
from cascaded.runtime.converted.writer import Part, Row, Value, Writer, Zeros, cannot, for_one_item

WRITERS = {**LAYERS, **OPERATIONS, **STACKED}


def write_segment(writer: Writer, segment: fx.Graph, taken: Sequence[Value]) -> list[Value]:
    """Add a segment to a graph; returns what it gives.

    Args:
        writer: Writes its operations.
        segment: Its graph, the last two of whose inputs are the number of items and the steps.
        taken: What it takes.
    """
    values: dict[fx.Node, Any] = {}
    inputs = iter(taken)
    for node in segment.nodes:
        if node.op == "placeholder":
            values[node] = next(inputs, None)
        elif node.op != "output":  # what takes a sub-graph is refused below
            values[node] = _write(writer, node, values) if node.op == "call_function" else None
    return [values[node] for node in next(iter(reversed(segment.nodes))).args[0]]


@dataclass(frozen=True)
class Folded:
    """What two items get that does not depend on the input."""

    node: fx.Node
    tensor: Tensor


def _write(writer: Writer, node: fx.Node, values: dict[fx.Node, Any]) -> Any:
    if is_number(node):
        return value(node)
    args, kwargs = cast("Any", fx.map_arg((node.args, node.kwargs), lambda each: values[each]))
    if op_name(node) == "getitem":
        return args[0][args[1]]
    known = not any(isinstance(each, str | Row | Part | Zeros) for each in tree_leaves((args, kwargs)))
    if known and op_name(node) != "normalize":
        return _fold(node, args, kwargs)
    if op_name(node) not in WRITERS or not isinstance(value(node), Tensor | tuple | list):
        raise cannot(node, f"the operation {op_name(node)}")
    args, kwargs = tree_map(lambda each: _unfold(writer, node, each), (args, kwargs))
    return WRITERS[op_name(node)](writer, node, **named_arguments(node, args, kwargs))


def _fold(node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute what does not depend on the input, for two items."""

    def known(each: Any) -> Any:
        if isinstance(each, torch.SymInt):
            return at_batch(each.node.expr, 2)
        return each.tensor if isinstance(each, Folded) else each

    args, kwargs = tree_map(known, (args, kwargs))
    result = cast("Callable[..., Any]", node.target)(*args, **kwargs)
    return Folded(node, result) if isinstance(result, Tensor) and batch_axis(node) is not None else result


def _unfold(writer: Writer, node: fx.Node, each: Any) -> Any:
    """What was folded as an operand: attention takes a mask for all items, others take one per item."""
    if not isinstance(each, Folded):
        return each
    one = for_one_item(each.node, each.tensor)
    is_shared = "attention" in op_name(node) and one.shape[batch_axis(each.node) or 0] == 1
    return one if is_shared else writer.for_all_items(each.node, one)
