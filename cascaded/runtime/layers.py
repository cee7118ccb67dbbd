"""Layers as ONNX nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from cascaded.cascade.block import Layers
from cascaded.cascade.conv import Conv2d
from cascaded.cascade.film import SETTLED
from cascaded.cascade.norm import TimeBatchNorm
from cascaded.errors import InputError
from cascaded.runtime.graph import Graph


def write_layer(graph: Graph, layer: nn.Module, x: str, step: int) -> str:
    """Add a layer to a graph, or a sequence of layers; returns its output.

    Args:
        graph: The graph.
        layer: A layer without memory.
        x: Its input.
        step: The step, which chooses norm statistics: from 0, or `SETTLED`.
    """
    if type(layer) in (Layers, nn.Sequential):
        for each in layer.children():
            x = write_layer(graph, each, x, step)
        return x
    if type(layer) is TimeBatchNorm:
        return _time_batch_norm(graph, layer, x, step)
    if type(layer) not in WRITERS:  # a subclass may compute something else
        known = ", ".join(sorted({each.__name__ for each in (*WRITERS, TimeBatchNorm)}))
        raise InputError(
            f"the network contains a {type(layer).__name__}, which cannot be exported: use some of {known}, or run the "
            "network with torch"
        )
    return WRITERS[type(layer)](graph, layer, x)


def _time_batch_norm(graph: Graph, norm: TimeBatchNorm, x: str, step: int) -> str:
    row = SETTLED if step == SETTLED else min(step, len(norm.running_mean) - 1)
    affine = SETTLED if step == SETTLED else min(step, len(norm.weight) - 1)
    rows = (norm.weight[affine], norm.bias[affine], norm.running_mean[row], norm.running_var[row])
    return graph.node("BatchNormalization", x, *map(graph.constant, rows), epsilon=norm.eps)


def _convolution(graph: Graph, conv: nn.Conv2d, x: str) -> str:
    if conv.padding_mode != "zeros" or isinstance(conv.padding, str):
        raise InputError(
            f"the network contains a convolution with padding {conv.padding!r} ({conv.padding_mode}), which cannot be "
            "exported: give padding as numbers, with zeros"
        )
    weights = [graph.constant(each) for each in (conv.weight, conv.bias) if each is not None]
    geometry: dict[str, Any] = {"kernel_shape": conv.kernel_size, "strides": conv.stride, "dilations": conv.dilation}
    return graph.node("Conv", x, *weights, pads=[*conv.padding] * 2, group=conv.groups, **geometry)


def _max_pool(graph: Graph, pool: nn.MaxPool2d, x: str) -> str:
    return graph.node("MaxPool", x, **_window(pool), dilations=_pair(pool.dilation))


def _average_pool(graph: Graph, pool: nn.AvgPool2d, x: str) -> str:
    if pool.divisor_override is not None or (pool.ceil_mode and any(_pair(pool.padding))):
        raise InputError(
            f"the network contains {pool}, which cannot be exported: use one without divisor_override, and without "
            "padding or without ceil_mode"
        )
    included = int(pool.count_include_pad and any(_pair(pool.padding)))
    return graph.node("AveragePool", x, **_window(pool), count_include_pad=included)


def _window(pool: nn.MaxPool2d | nn.AvgPool2d) -> dict[str, Any]:
    return {
        "kernel_shape": _pair(pool.kernel_size),
        "strides": _pair(pool.stride),
        "pads": _pair(pool.padding) * 2,
        "ceil_mode": int(pool.ceil_mode),
    }


def _pair(size: int | tuple[int, ...]) -> list[int]:
    return [size] * 2 if isinstance(size, int) else list(size)


def _group_norm(graph: Graph, norm: nn.GroupNorm, x: str) -> str:
    affine = (norm.weight[:, None, None], norm.bias[:, None, None]) if norm.affine else (None, None)
    return write_group_norm(graph, x, norm.num_groups, *affine, norm.eps)


def write_group_norm(
    graph: Graph, x: str, groups: int, weight: Tensor | None, bias: Tensor | None, epsilon: float
) -> str:
    """Add a group norm; weight and bias have the rank of an item, `(channels, 1, 1)` for a map."""
    grouped = graph.node("Reshape", x, graph.integers(0, groups, -1))
    ones = torch.ones(groups)
    normed = graph.node(
        "InstanceNormalization", grouped, graph.constant(ones), graph.constant(0 * ones), epsilon=epsilon
    )
    x = graph.node("Reshape", normed, graph.node("Shape", x))
    for operator, values in (("Mul", weight), ("Add", bias)):
        x = x if values is None else graph.node(operator, x, graph.constant(values))
    return x


def write_head(graph: Graph, head: nn.Module, features: str) -> str:
    """Add the mean over a map and a linear layer; returns the logits."""
    if type(head) is not nn.Linear:
        raise InputError(f"the network's head is a {type(head).__name__}, which cannot be exported: use nn.Linear")
    pooled = graph.node("Flatten", graph.node("GlobalAveragePool", features))
    weights = [graph.constant(each) for each in (head.weight, head.bias) if each is not None]
    return graph.node("Gemm", pooled, *weights, transB=1)


WRITERS: dict[type[nn.Module], Callable[[Graph, Any, str], str]] = {
    Conv2d: _convolution,
    nn.Conv2d: _convolution,
    nn.GroupNorm: _group_norm,
    nn.MaxPool2d: _max_pool,
    nn.AvgPool2d: _average_pool,
    nn.ReLU: lambda graph, layer, x: graph.node("Relu", x),
    nn.Sigmoid: lambda graph, layer, x: graph.node("Sigmoid", x),
    nn.SiLU: lambda graph, layer, x: graph.node("Mul", x, graph.node("Sigmoid", x)),
    nn.Tanh: lambda graph, layer, x: graph.node("Tanh", x),
    nn.Dropout: lambda graph, layer, x: x,
    nn.Identity: lambda graph, layer, x: x,
}
"""Layers by their exact type; in evaluation mode."""
