"""Operations of a captured graph other than layers, as ONNX nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from cascaded.cascade.convert.graph import value
from cascaded.runtime.converted.writer import Value, Writer, Zeros, cannot, rank, shape

# --- one value from one or two


def _unary(kind: str) -> Callable[..., str]:
    return lambda w, node, x, **_: w.node(kind, x)


def _same(w: Writer, node: fx.Node, x: Value, **_: Any) -> Value:
    before = value(node.args[0])  # pyright: ignore[reportArgumentType]
    if value(node).is_floating_point() != before.is_floating_point():
        raise cannot(node, f"a conversion to {value(node).dtype}")
    return x


def _gelu(w: Writer, node: fx.Node, x: Value, approximate: str) -> str:
    """X (1 + erf(x / sqrt 2)) / 2, in the order of operations that runtimes recognize."""
    if approximate == "tanh":
        cubic = w.node("Mul", w.node("Mul", w.node("Mul", x, x), x), 0.044715)
        inner = w.node("Mul", w.node("Add", x, cubic), math.sqrt(2 / math.pi))
        gate = w.node("Tanh", inner)
    else:
        gate = w.node("Erf", w.node("Div", x, math.sqrt(2)))
    return w.node("Mul", w.node("Mul", x, w.node("Add", gate, 1.0)), 0.5)


def _add(w: Writer, node: fx.Node, x: Value, other: Any, alpha: float = 1) -> Value:
    if isinstance(other, Zeros) and value(node).shape == shape(node):
        return x
    if isinstance(x, Zeros) and alpha == 1 and value(node).shape == shape(node, 1):
        return other
    return w.node("Add", x, other if alpha == 1 else w.node("Mul", other, alpha))


def _sub(w: Writer, node: fx.Node, x: Value, other: Any, alpha: float = 1) -> str:
    return w.node("Sub", x, other if alpha == 1 else w.node("Mul", other, alpha))


def _rsub(w: Writer, node: fx.Node, x: Value, other: Any, alpha: float = 1) -> str:
    return w.node("Sub", other, x if alpha == 1 else w.node("Mul", x, alpha))


def _binary(kind: str) -> Callable[..., str]:
    return lambda w, node, x, other: w.node(kind, x, other)


def _matmul(w: Writer, node: fx.Node, x: Value, **given: Any) -> str:
    return w.node("MatMul", x, given.get("other", given.get("mat2")))  # pyright: ignore[reportArgumentType]


# --- axes


def _reshape(w: Writer, node: fx.Node, x: Value, **_: Any) -> str:
    return w.reshaped(x, node)


def _transpose(w: Writer, node: fx.Node, x: Value, dim0: int, dim1: int) -> str:
    return w.swapped(x, rank(node), dim0, dim1)


def _permute(w: Writer, node: fx.Node, x: Value, dims: Sequence[int]) -> str:
    return w.node("Transpose", x, perm=[dim % rank(node) for dim in dims])


def _select(w: Writer, node: fx.Node, x: Value, dim: int, index: int) -> str:
    return w.graph.node("Gather", w.name(x), w.graph.integer(index), axis=dim)


def _unbind(w: Writer, node: fx.Node, x: Value, dim: int) -> list[str]:
    return [_select(w, node, x, dim, index) for index in range(len(value(node)))]


def _split(w: Writer, node: fx.Node, x: Value, dim: int = 0, **_: Any) -> list[str]:
    ends, parts = 0, []
    for part in value(node):
        starts, ends = ends, ends + int(part.shape[dim])
        parts.append(_slice(w, node, x, dim, starts, ends))
    return parts


def _slice(w: Writer, node: fx.Node, x: Value, dim: int, start: int | None, end: int | None, step: int = 1) -> str:
    last = torch.iinfo(torch.int64).max if end is None else int(end)
    return w.graph.node("Slice", w.name(x), *map(w.graph.integers, (int(start or 0), last, dim, step)))


def _expand(w: Writer, node: fx.Node, x: Value, **_: Any) -> str:
    return w.graph.node("Expand", w.name(x), w.sizes(value(node).shape))


def _cat(w: Writer, node: fx.Node, tensors: Sequence[Value], dim: int) -> str:
    return w.node("Concat", *tensors, axis=dim)


def _pad(w: Writer, node: fx.Node, x: Value, pad: Sequence[int], mode: str, value: float | None) -> str:
    if mode != "constant":
        raise cannot(node, f"padding of mode {mode!r}")
    ends = [list(pad[0::2]), list(pad[1::2])]
    pads = [each for side in ends for each in [0] * (rank(node) - len(side)) + side[::-1]]
    return w.graph.node("Pad", w.name(x), w.graph.integers(*pads), w.graph.number(float(value or 0)))


def _mean(w: Writer, node: fx.Node, x: Value, dim: Sequence[int] | None = None, keepdim: bool = False, **_: Any):
    axes = {} if not dim else {"axes": list(dim)}
    return w.node("ReduceMean", x, keepdims=int(keepdim), **axes)


def _roll(w: Writer, node: fx.Node, x: Value, shifts: Sequence[int], dims: Sequence[int]) -> Value:
    for shift, dim in zip(shifts, dims, strict=True):
        size = int(value(node).shape[dim])
        at = -shift % size
        x = w.node("Concat", _slice(w, node, x, dim, at, None), _slice(w, node, x, dim, 0, at), axis=dim)
    return x


UNARY = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "exp": "Exp", "log": "Log", "sqrt": "Sqrt"}
UNARY |= {"neg": "Neg", "abs": "Abs", "erf": "Erf", "softplus": "Softplus", "hardswish": "HardSwish"}
SHAPED = ("reshape", "flatten", "unflatten", "unsqueeze", "squeeze")
IDENTITIES = ("contiguous", "clone", "alias", "detach", "to", "_to_copy", "dropout")
BINARY = {"mul": "Mul", "div": "Div", "maximum": "Max", "minimum": "Min"}
OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: _unary(kind) for name, kind in UNARY.items()},
    **{name: _binary(kind) for name, kind in BINARY.items()},
    **dict.fromkeys(SHAPED, _reshape),
    **dict.fromkeys(IDENTITIES, _same),
    **dict.fromkeys(("matmul", "mm", "bmm"), _matmul),
    **dict.fromkeys(("split", "split_with_sizes", "chunk"), _split),
    "silu": lambda w, node, x: w.node("Mul", x, w.node("Sigmoid", x)),
    "rsqrt": lambda w, node, x: w.node("Reciprocal", w.node("Sqrt", x)),
    "leaky_relu": lambda w, node, x, negative_slope: w.node("LeakyRelu", x, alpha=float(negative_slope)),
    "pow": lambda w, node, x, exponent: w.node("Pow", x, exponent),
    "prelu": lambda w, node, x, weight: w.node("PRelu", x, weight.reshape(-1, *[1] * (rank(node) - 2))),
    "softmax": lambda w, node, x, dim, dtype: w.node("Softmax", x, axis=dim),
    "einsum": lambda w, node, equation, tensors, path: w.node("Einsum", *tensors, equation=equation),
    "gelu": _gelu,
    "add": _add,
    "sub": _sub,
    "rsub": _rsub,
    "transpose": _transpose,
    "permute": _permute,
    "select": _select,
    "unbind": _unbind,
    "slice": _slice,
    "expand": _expand,
    "cat": _cat,
    "pad": _pad,
    "mean": _mean,
    "roll": _roll,
}
"""What each operation becomes, by its name."""
