"""Capture: from a model to a graph of functional operations, by `torch.export`.

The graph holds for the mode (train or eval), dtype and device that the model has, and for any batch size if the model
allows it.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.export import Dim, ExportedProgram
from torch.utils import _pytree as pytree

from cascaded.cascade.convert.functional import make_functional
from cascaded.cascade.convert.graph import place, symbols, value
from cascaded.cascade.convert.narrow import pad_narrow_maps
from cascaded.cascade.convert.randomness import draw_once
from cascaded.errors import InputError, first_line


@dataclass(frozen=True)
class Call:
    """Arguments of one call of a model."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    batch_dim: int = 0

    def leaves(self) -> list[Any]:
        """All arguments, flat."""
        return pytree.tree_leaves((self.args, self.kwargs))

    @property
    def batch(self) -> int:
        """Number of items: the size of the first tensor along the batch dimension."""
        for leaf in self.leaves():
            if isinstance(leaf, Tensor) and leaf.dim() > self.batch_dim:
                return leaf.shape[self.batch_dim]
        raise InputError(f"no input has a dimension {self.batch_dim} for the batch: give at least one such tensor")

    def batched(self, leaf: Any) -> bool:
        """Whether an argument has one row per item."""
        return isinstance(leaf, Tensor) and leaf.dim() > self.batch_dim and leaf.shape[self.batch_dim] == self.batch

    def map(self, change: Any) -> Call:
        """The same call with other items: `change` is applied to every argument that has one row per item."""
        changed = [change(leaf) if self.batched(leaf) else leaf for leaf in self.leaves()]
        return self.with_leaves(changed)

    def widened(self) -> Call:
        """The same call with at least two items: a second one is made from the first."""

        def twice(leaf: Tensor) -> Tensor:
            other = leaf / 2 if leaf.is_floating_point() else leaf.roll(1, -1)
            return torch.cat([leaf, other], dim=self.batch_dim)

        return self.map(twice) if self.batch == 1 else self

    def with_leaves(self, leaves: list[Any]) -> Call:
        """The same structure with other arguments."""
        spec = pytree.tree_structure((self.args, self.kwargs))
        return Call(*pytree.tree_unflatten(leaves, spec), batch_dim=self.batch_dim)


@dataclass
class Captured:
    """The graph of a model.

    Attributes:
        graph: Functional operations, in order.
        root: The exported module, which holds the sub-graphs of operations such as `torch.cond`.
        inputs: Nodes of the arguments, flat.
        state: Nodes of parameters and buffers, with their names in the model.
        constants: Nodes of tensors that the model made while it was traced.
        output: The node of the predicted tensor.
        any_batch: Whether the graph holds for any batch size; otherwise for the one of the example only.
    """

    graph: fx.Graph
    root: nn.Module
    inputs: list[fx.Node]
    state: dict[fx.Node, str]
    constants: dict[fx.Node, Tensor]
    output: fx.Node
    any_batch: bool


def capture(model: nn.Module, call: Call, output: str | int | None) -> Captured:
    """Export a model, with a batch of any size if that works and of this size otherwise."""
    program = make_functional(_export(model, call))
    draw_once(program.graph)
    pad_narrow_maps(program.graph)
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    inputs, state, constants = [], {}, {}
    for spec in program.graph_signature.input_specs:
        node, kind = nodes[spec.arg.name], spec.kind.name
        if kind == "USER_INPUT":
            inputs.append(node)
        elif kind in ("PARAMETER", "BUFFER"):
            state[node] = str(spec.target)
        elif kind == "CONSTANT_TENSOR":
            constants[node] = program.constants[str(spec.target)]
        else:
            raise InputError(f"{type(model).__name__} has an input of kind {kind}: give it tensors and numbers only")
    chosen = _output_node(program, output)
    return Captured(program.graph, program.graph_module, inputs, state, constants, chosen, _any_batch(program.graph))


def _export(model: nn.Module, call: Call) -> ExportedProgram:
    wide = call.widened()  # the export would treat a size of 1 as fixed
    with _traceable():
        try:
            return torch.export.export(model, wide.args, wide.kwargs, dynamic_shapes=_shapes(model, wide), strict=False)
        except Exception:  # the reason is given by the second attempt, if that fails too
            pass
        try:
            return torch.export.export(model, call.args, call.kwargs, strict=False)
        except Exception as error:
            raise _refusal(model, call, error) from error


def _refusal(model: nn.Module, call: Call, error: Exception) -> InputError:
    """Why a model cannot be captured: its inputs do not fit, or `torch.export` has a reason."""
    name = type(model).__name__
    try:
        with torch.no_grad():
            copy.deepcopy(model)(*call.args, **call.kwargs)  # a copy: buffers may change
    except Exception as own:
        return InputError(f"{name} cannot be called with these inputs ({_reason(own)}): give inputs that it takes")
    fix = "compute everything with torch operations, without branches on the values of tensors"
    if "Cache" in str(error):
        fix = "set use_cache=False in its configuration"
    return InputError(f"torch.export cannot capture {name} ({_reason(error)}): {fix}")


def _reason(error: Exception) -> str:
    return first_line(error).split(". ")[0].rstrip(". ")


def _shapes(model: nn.Module, call: Call) -> dict[str, Any]:
    """Which axes of which arguments are the batch."""
    batch = Dim("batch")
    signature = inspect.signature(model.forward)
    named = signature.bind(*call.args, **call.kwargs).arguments
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD and name in named:
            named |= named.pop(name)
    return pytree.tree_map(lambda leaf: {call.batch_dim: batch} if call.batched(leaf) else None, dict(named))


@contextmanager
def _traceable() -> Iterator[None]:
    """Trace layers, not fused kernels, and the dtypes of the model, not those of autocast."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # it would hide the additions of nn.TransformerEncoder
    try:
        with warnings.catch_warnings(), torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
            warnings.filterwarnings("ignore", "The tensor attributes .* were assigned during export")  # by nn.LSTM
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def _any_batch(graph: fx.Graph) -> bool:
    """Whether sizes depend on the batch; refused if they depend on anything else."""
    found: set[Any] = set()
    for node in graph.nodes:
        leaves = pytree.tree_leaves(value(node))
        sizes = [size for leaf in leaves for size in (leaf.shape if isinstance(leaf, Tensor) else [leaf])]
        found |= {symbol for size in sizes for symbol in symbols(size)}
        if len(found) > 1:
            raise InputError(f"{place(node)} returns a tensor whose size depends on values: give it a fixed size")
    return bool(found)


def _output_node(program: ExportedProgram, output: str | int | None) -> fx.Node:
    kinds = [spec.kind.name for spec in program.graph_signature.output_specs]
    nodes = next(node for node in program.graph.nodes if node.op == "output").args[0]
    user = [node for node, kind in zip(nodes, kinds, strict=True) if kind in ("USER_OUTPUT", "LOSS_OUTPUT")]
    spec = program.call_spec.out_spec
    assert spec is not None
    return choose_output(pytree.tree_unflatten(user, spec), output)


def choose_output(outputs: Any, output: str | int | None) -> Any:
    """The predicted tensor among a model's outputs: a field, an index, by default `logits` or the only one."""
    if isinstance(outputs, Tensor | fx.Node):
        return outputs
    items = outputs.items() if isinstance(outputs, Mapping) else enumerate(outputs or ())
    found: dict[str | int, Any] = {name: each for name, each in items if isinstance(each, Tensor | fx.Node)}
    chosen = output
    if output is None:
        chosen = next(iter(found)) if len(found) == 1 else "logits"
    if chosen is None or chosen not in found:
        raise InputError(
            f"the model returns {', '.join(map(repr, found)) or 'no tensor'} and not {chosen!r}: choose the predicted "
            "tensor with output="
        )
    return found[chosen]
