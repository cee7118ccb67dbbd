"""Strided convolutions of maps narrower than their stride, rewritten so that every tap sees a pixel.

In bfloat16 oneDNN leaves the other gradients of their weights unwritten: see `cascaded/cascade/conv.py`. Here zeros are
put around the map, as there, and where there is one column of outputs, the columns that it does not see are cut off.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from cascaded.cascade.convert.graph import named_arguments, op_name, value

aten = torch.ops.aten


def pad_narrow_maps(graph: fx.Graph) -> None:
    """Rewrite these convolutions of a graph that was captured on a CPU."""
    for node in list(graph.nodes):
        if op_name(node) in ("conv1d", "conv2d", "conv3d") and value(node).device.type == "cpu":
            _rewrite(node, named_arguments(node, node.args, node.kwargs))


def _rewrite(node: fx.Node, given: dict[str, Any]) -> None:
    x, kernel = given["x"], value(given["weight"]).shape[2:]
    stride, padding, dilation = (_each(given[name], len(kernel)) for name in ("stride", "padding", "dilation"))
    if isinstance(given["padding"], str) or value(x).shape[-1] >= stride[-1]:
        return
    sizes = [*value(x).shape[:2], *(size + 2 * each for size, each in zip(value(x).shape[2:], padding, strict=True))]
    x = _before(node, sizes, aten.pad.default, x, [side for each in padding[::-1] for side in (each, each)])
    if value(node).shape[-1] == 1:
        seen = dilation[-1] * (kernel[-1] - 1) + 1
        x = _before(node, [*sizes[:-1], seen], aten.slice.Tensor, x, len(kernel) + 1, 0, seen)
        stride = [*stride[:-1], 1]
    node.args = (x, given["weight"], given["bias"], stride, [0] * len(kernel), dilation, given["groups"])
    node.kwargs = {}


def _each(given: Any, dims: int) -> list[Any]:
    """One value per dimension; one for all of them is repeated."""
    values = list(given) if isinstance(given, list | tuple) else [given]
    return values * dims if len(values) == 1 else values


def _before(node: fx.Node, sizes: list[Any], target: Any, x: fx.Node, *arguments: Any) -> fx.Node:
    """An operation before a node, of the same place in the model. Its sizes are given: computing it fixes the batch."""
    with node.graph.inserting_before(node):
        made = node.graph.call_function(target, (x, *arguments))
    made.meta.update(node.meta, val=value(x).new_empty(sizes))
    return made
