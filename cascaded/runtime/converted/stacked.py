"""Operations on the stacked tensors of blocks that are alike, as ONNX nodes: see `convert.stacked`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, fx

from cascaded.runtime.converted.layers import write_attention
from cascaded.runtime.converted.writer import Part, Value, Writer, cannot, shape


def _linear(w: Writer, node: fx.Node, x: Value, weight: Value, bias: Value | None) -> str:
    if not isinstance(weight, Part):
        raise cannot(node, "a linear layer whose weights are computed from the input")
    features = int(shape(node)[-1])
    rows = w.node("Reshape", x, w.graph.integers(0, -1, features))
    product = w.node("MatMul", rows, weight.map(lambda each: each.mT))
    if bias is not None:
        product = w.node("Add", product, _aligned(w, node, bias, 3))
    return w.reshaped(product, node)


def _layer_norm(
    w: Writer,
    node: fx.Node,
    x: Value,
    normalized_shape: Sequence[int],
    weight: Value | None,
    bias: Value | None,
    eps: float,
) -> Value:
    rank = len(shape(node))
    normed = w.node(
        "LayerNormalization", x, torch.ones(*normalized_shape), axis=-len(normalized_shape), epsilon=float(eps)
    )
    for kind, values in (("Mul", weight), ("Add", bias)):
        normed = normed if values is None else w.node(kind, normed, _aligned(w, node, values, rank))
    return normed


def _attention(
    w: Writer,
    node: fx.Node,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None,
    is_causal: bool,
    scale: float | None,
) -> str:
    return write_attention(w, node, query, key, value, attn_mask, is_causal, scale)


def _aligned(w: Writer, node: fx.Node, x: Value, rank: int) -> Value:
    if isinstance(x, Part):
        return x.map(lambda each: each.reshape(len(each), *[1] * (rank - each.dim()), *each.shape[1:]))
    if isinstance(x, Tensor):
        raise cannot(node, "a parameter that is not stacked")
    missing = rank - len(shape(node))
    return w.graph.node("Unsqueeze", w.name(x), w.graph.integers(*range(1, 1 + missing)))


def _reshape(w: Writer, node: fx.Node, x: Value, **_: object) -> str:
    return w.reshaped(x, node)


STACKED: dict[str, Callable[..., Value]] = {
    "stacked_linear": _linear,
    "stacked_layer_norm": _layer_norm,
    "stacked_attention": _attention,
    "stacked_reshape": _reshape,
    "aligned": _aligned,
}
"""What each operation becomes, by its name."""
