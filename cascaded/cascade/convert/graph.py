"""Nodes of an exported graph: their operation, their place in the source, their shape for any batch size."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, fx

NUMBERS = (bool, int, float, torch.SymInt, torch.SymFloat, torch.SymBool)
FRAME = re.compile(r'File "(.*)", line (\d+), in .*(?:\n +(?!File ")(.*))?')
"""A frame of a stack trace: file, line number and, if it is known, the text of the line."""


class Place(NamedTuple):
    """Where a node comes from."""

    module: str  # path of the innermost module, "" for the model itself
    line: str  # file, line number and text of the source line

    def __str__(self) -> str:
        return f"{self.module or 'the model'} ({self.line})"


def op_name(node: fx.Node) -> str:
    """Name of a node's operation without its overload: `add`, `conv2d`, `getitem`; "" for inputs and parameters."""
    if node.op != "call_function":
        return ""
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return target._schema.name.split("::")[-1]
    return getattr(target, "__name__", str(target))


def place(node: fx.Node) -> Place:
    """Module and source line of a node."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    module = next((path for path, _ in reversed(stack) if not path.startswith("_empty")), "")
    frames = FRAME.findall(node.meta.get("stack_trace") or "")
    if not frames:
        return Place(module, node.name)
    file, number, text = frames[-1]
    return Place(module, f"{Path(file).name}:{number}" + (f": {text.strip()}" if text else ""))


def value(node: fx.Node) -> Any:
    """What the export knows of a node's value: a tensor without content, a number, or a tuple of these."""
    return node.meta.get("val")


def is_number(node: fx.Node) -> bool:
    """Whether a node is a size or another number, not a tensor."""
    return isinstance(value(node), NUMBERS)


def is_in_place(node: fx.Node) -> bool:
    """Whether an operation writes into its first operand."""
    name = op_name(node)
    mutable = isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable
    return mutable and name.endswith("_") and not name.endswith("__")


def operands(node: fx.Node) -> Iterator[fx.Node]:
    """The first two arguments that are nodes: the operands of an addition or a product."""
    return (arg for arg in node.args[:2] if isinstance(arg, fx.Node))


def named_arguments(node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments of a node's operation by name, defaults among them; the first operand is `x`."""
    if isinstance(node.target, torch._ops.OpOverload):
        known = node.target._schema.arguments
        given = {each.name: each.default_value for each in known if each.has_default_value()}
        given |= dict(zip([each.name for each in known], args, strict=False)) | kwargs
    else:
        bound = inspect.signature(cast("Callable[..., Any]", node.target)).bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
    return {"x" if name in ("self", "input") else name: each for name, each in given.items()}


def symbols(size: int | torch.SymInt) -> set[Any]:
    """Free symbols of a size: empty for a plain number."""
    return set(size.node.expr.free_symbols) if isinstance(size, torch.SymInt) else set()


@lru_cache(maxsize=4096)
def at_batch(expression: Any, batch: int) -> int:
    """The value of a size for a batch size; the batch is its only symbol."""
    return int(expression.subs(dict.fromkeys(expression.free_symbols, batch)))


def sizes_at(sizes: Iterable[int | torch.SymInt], batch: int) -> list[int]:
    """Sizes or strides for a batch size."""
    return [at_batch(size.node.expr, batch) if isinstance(size, torch.SymInt) else int(size) for size in sizes]


def shape_at(node: fx.Node, batch: int) -> list[int]:
    """Shape of a node's tensor for a batch size."""
    return sizes_at(value(node).shape, batch)


def batch_axis(node: fx.Node) -> int | None:
    """The axis that grows with the batch; None if there is none, or more than one."""
    tensor = value(node)
    axes = [axis for axis, size in enumerate(tensor.shape) if symbols(size)] if isinstance(tensor, Tensor) else []
    return axes[0] if len(axes) == 1 else None


def ones(node: fx.Node, batch: int) -> Tensor:
    """Ones that lie in memory as a node's tensor does: random numbers are drawn in that order."""
    tensor = value(node)
    strides = sizes_at(tensor.stride(), batch)
    made = torch.empty_strided(shape_at(node, batch), strides, dtype=tensor.dtype, device=tensor.device)
    return made.fill_(1)


def zeros(node: fx.Node, batch: int, dtype: torch.dtype | None = None) -> Tensor:
    """Zeros of a node's shape, without memory of their own."""
    tensor = value(node)
    return torch.zeros((), dtype=dtype or tensor.dtype, device=tensor.device).expand(shape_at(node, batch))
