"""Layers of a captured graph as ONNX nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from cascaded.cascade.convert.graph import value
from cascaded.runtime.converted.writer import Value, Writer, cannot, rank, shape
from cascaded.runtime.layers import write_group_norm


def _linear(w: Writer, node: fx.Node, x: Value, weight: Value, bias: Value | None) -> str:
    if not isinstance(weight, Tensor):
        raise cannot(node, "a linear layer whose weights are computed from the input")
    if rank(node) == 2:
        return w.graph.node("Gemm", *w.names(x, weight, bias), transB=1)
    product = w.node("MatMul", x, weight.mT)
    return product if bias is None else w.node("Add", product, bias)


def _conv(w: Writer, node: fx.Node, x: Value, weight: Value, bias: Value | None, **given: Any) -> str:
    if isinstance(given["padding"], str):
        raise cannot(node, f"a convolution with padding {given['padding']!r}")
    return w.graph.node("Conv", *w.names(x, weight, bias), **_geometry(node, given), group=given["groups"])


def _conv_transpose(w: Writer, node: fx.Node, x: Value, weight: Value, bias: Value | None, **given: Any) -> str:
    more = {"output_padding": _each(given["output_padding"], rank(node) - 2), "group": given["groups"]}
    return w.graph.node("ConvTranspose", *w.names(x, weight, bias), **_geometry(node, given), **more)


def _geometry(node: fx.Node, given: dict[str, Any]) -> dict[str, Any]:
    stride, padding, dilation = (_each(given[name], rank(node) - 2) for name in ("stride", "padding", "dilation"))
    return {"strides": stride, "pads": padding * 2, "dilations": dilation}


def _each(size: int | Sequence[int], dims: int) -> list[int]:
    """A size per spatial axis."""
    sizes = [size] if isinstance(size, int) else list(size)
    return sizes * dims if len(sizes) == 1 else sizes


def _max_pool(w: Writer, node: fx.Node, x: Value, kernel_size: Any, stride: Any, ceil_mode: bool, **given: Any):
    kernel = _each(kernel_size, rank(node) - 2)
    geometry = _geometry(node, {**given, "stride": stride or kernel})
    return w.node("MaxPool", x, kernel_shape=kernel, ceil_mode=int(ceil_mode), **geometry)


def _avg_pool(w: Writer, node: fx.Node, x: Value, kernel_size: Any, stride: Any, padding: Any, **given: Any) -> str:
    dims = rank(node) - 2
    kernel, pads = _each(kernel_size, dims), _each(padding, dims)
    if given.get("divisor_override") is not None or (given["ceil_mode"] and any(pads)):
        raise cannot(node, "an average pool with divisor_override, or with padding and ceil_mode")
    more = {"count_include_pad": int(given["count_include_pad"] and any(pads)), "ceil_mode": int(given["ceil_mode"])}
    return w.node("AveragePool", x, kernel_shape=kernel, strides=_each(stride or kernel, dims), pads=pads * 2, **more)


def _adaptive_pool(w: Writer, node: fx.Node, x: Value, output_size: Any) -> str:
    sizes = [int(size) for size in shape(node)[2:]]
    wanted = _each(output_size, len(sizes))
    if any(size % want for size, want in zip(sizes, wanted, strict=True)):
        raise cannot(node, f"an adaptive pool from {sizes} to {wanted}")
    kernel = [size // want for size, want in zip(sizes, wanted, strict=True)]
    return w.node("AveragePool", x, kernel_shape=kernel, strides=kernel)


def _batch_norm(
    w: Writer, node: fx.Node, clock: None, name: str | None, x: Value, mean: Tensor, var: Tensor, **given: Any
) -> str:
    if name is None or given["training"]:
        raise cannot(node, "a batch norm without running statistics")
    rows = w.statistics.rows(name) if w.statistics else None
    if rows is not None and w.step is not None and w.step < len(rows.mean):
        mean, var = rows.mean[w.step], rows.var[w.step]
    ones, zeros = torch.ones_like(mean), torch.zeros_like(mean)
    weight, bias = (b if a is None else a for a, b in ((given["weight"], ones), (given["bias"], zeros)))
    return w.node("BatchNormalization", x, weight, bias, mean, var, epsilon=given["eps"])


def _layer_norm(
    w: Writer,
    node: fx.Node,
    x: Value,
    normalized_shape: list[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    cudnn_enable: bool,
) -> str:
    weight = torch.ones(normalized_shape) if weight is None else weight
    return w.graph.node(
        "LayerNormalization", *w.names(x, weight, bias), axis=-len(normalized_shape), epsilon=float(eps)
    )


def _group_norm(
    w: Writer, node: fx.Node, x: Value, num_groups: int, weight: Any, bias: Any, eps: float, cudnn_enabled: bool
) -> str:
    dims = rank(node) - 2
    weight, bias = (None if each is None else each.reshape(-1, *[1] * dims) for each in (weight, bias))
    return write_group_norm(w.graph, w.name(x), num_groups, weight, bias, eps)


def _instance_norm(w: Writer, node: fx.Node, x: Value, weight: Any, bias: Any, eps: float, **given: Any) -> str:
    ones = torch.ones(int(value(node).shape[1]))
    weight, bias = ones if weight is None else weight, 0 * ones if bias is None else bias
    return w.node("InstanceNormalization", x, weight, bias, epsilon=eps)


def _attention(
    w: Writer,
    node: fx.Node,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
    dropout_p: float,
) -> str:
    if enable_gqa:
        raise cannot(node, "attention with fewer keys than queries per head (enable_gqa)")
    return write_attention(w, node, query, key, value, attn_mask, is_causal, scale)


def write_attention(
    w: Writer,
    node: fx.Node,
    query: Value,
    key: Value,
    values: Value,
    mask: Value | None,
    is_causal: bool,
    scale: float | None,
) -> str:
    """Add softmax(q k' / sqrt(d) + mask) v."""
    *_, tokens, features = map(int, shape(node)[-2:])
    scores = w.node("MatMul", query, w.swapped(key, rank(node)))
    scores = w.node("Mul", scores, features**-0.5 if scale is None else scale)
    if is_causal:
        mask = torch.ones(tokens, tokens, dtype=torch.bool).tril()
    if isinstance(mask, Tensor) and mask.dtype == torch.bool:
        mask = None if mask.all() else torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)
    if mask is not None:
        scores = w.node("Add", scores, mask)
    return w.node("MatMul", w.node("Softmax", scores, axis=-1), values)


def _upsample(mode: str) -> Callable[..., str]:
    def write(w: Writer, node: fx.Node, x: Value, align_corners: bool = False, **_: Any) -> str:
        scales = [int(new) / int(old) for new, old in zip(value(node).shape[2:], shape(node)[2:], strict=True)]
        at = "asymmetric" if mode == "nearest" else "align_corners" if align_corners else "half_pixel"
        more = {"nearest_mode": "floor"} if mode == "nearest" else {}
        scale = w.graph.numbers(1.0, 1.0, *scales)
        return w.graph.node("Resize", w.name(x), "", scale, mode=mode, coordinate_transformation_mode=at, **more)

    return write


LAYERS: dict[str, Callable[..., str]] = {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _conv),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _conv_transpose),
    **dict.fromkeys(("max_pool1d", "max_pool2d", "max_pool3d"), _max_pool),
    **dict.fromkeys(("avg_pool1d", "avg_pool2d", "avg_pool3d"), _avg_pool),
    **dict.fromkeys(("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"), _adaptive_pool),
    "upsample_nearest2d": _upsample("nearest"),
    "upsample_bilinear2d": _upsample("linear"),
    "linear": _linear,
    "normalize": _batch_norm,
    "layer_norm": _layer_norm,
    "group_norm": _group_norm,
    "instance_norm": _instance_norm,
    "scaled_dot_product_attention": _attention,
}
"""What each layer becomes, by the name of its operation."""
