"""Functional graphs: no operation overwrites a tensor.

A delay line remembers tensors, so none may change afterwards: `out += x; relu_(out)` becomes `relu(out + x)`. Views
become reshapes, because what comes out of a delay line may lie in memory in another order.
"""

from __future__ import annotations

import warnings

import torch
from torch import fx
from torch.export import ExportedProgram

from cascaded.cascade.convert.graph import is_in_place, op_name, place
from cascaded.errors import InputError

aten = torch.ops.aten
ASSERTIONS = {"_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range"}
ASSERTIONS |= {"sym_constrain_range_for_size"}
VIEWS = {"view", "reshape", "transpose", "permute", "expand", "slice", "select", "unsqueeze", "squeeze", "t", "flatten"}
VIEWS |= {"unflatten", "alias", "detach", "as_strided", "narrow", "diagonal", "contiguous", "to"}
SPLITS = {"split", "chunk", "unbind", "split_with_sizes", "tensor_split"}


class SharedMemoryError(InputError):
    """An operation writes into memory that is read again under another name."""


def make_functional(program: ExportedProgram) -> ExportedProgram:
    """Rewrite an exported program in place, or return a decomposed one where views are written to."""
    try:
        _without_writes(program.graph)
    except SharedMemoryError:
        # torch's own functionalization handles writes into views, but takes batch norms apart
        if any(op_name(node) == "batch_norm" for node in program.graph.nodes):
            raise
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*LeafSpec.* is deprecated", FutureWarning)  # torch's use of its own
            program = program.run_decompositions({})
        _without_writes(program.graph)
    _check_buffers(program)
    for node in program.graph.nodes:
        if op_name(node) in ("view", "_unsafe_view"):
            node.target = aten.reshape.default
    return program


def _without_writes(graph: fx.Graph) -> None:
    """Replace `x.op_(...)` by `op(x, ...)`; later uses of x get the result."""
    for node in list(graph.nodes):
        if op_name(node) in ASSERTIONS:
            graph.erase_node(node)
    nodes = list(graph.nodes)
    order = {node: position for position, node in enumerate(nodes)}
    groups = _aliases(nodes)
    for node in nodes:
        if not is_in_place(node) or node.args[0].op == "placeholder":
            continue
        written = node.args[0]
        node.target = _out_of_place(node, groups[written], order)
        for user in list(written.users):
            if order[user] > order[node]:
                user.replace_input_with(written, node)


def _out_of_place(node: fx.Node, same_memory: list[fx.Node], order: dict[fx.Node, int]) -> torch._ops.OpOverload:
    """The operation that returns what this one writes; refused if the old memory is read later under another name."""

    def is_read_later(other: fx.Node) -> bool:
        return any(order[user] > order[node] and user not in same_memory for user in other.users)

    others = [each for each in same_memory if each is not node.args[0] and order[each] < order[node]]
    packet = getattr(aten, op_name(node)[:-1], None)
    overload = str(getattr(node.target, "_overloadname", ""))
    if op_name(node) == "bernoulli_":
        overload = "p"
    plain = getattr(packet, overload, None)
    if plain is None or any(map(is_read_later, others)):
        raise SharedMemoryError(
            f"{place(node)} writes into memory that other operations read, and a delay line would remember the new "
            "values: write this line without an in-place operation"
        )
    return plain


def _aliases(nodes: list[fx.Node]) -> dict[fx.Node, list[fx.Node]]:
    """For every node, the nodes that may share its memory."""
    groups: dict[fx.Node, list[fx.Node]] = {}
    for node in nodes:
        source = node.args[0] if node.args and isinstance(node.args[0], fx.Node) else None
        group = groups[source] if source is not None and _shares_memory(node, source) else []
        group.append(node)
        groups[node] = group
    return groups


def _shares_memory(node: fx.Node, source: fx.Node) -> bool:
    name = op_name(node)
    is_part = name == "getitem" and op_name(source) in SPLITS
    returns_input = name == "dropout" and not (node.args[2] and node.args[1])
    return name in VIEWS or is_part or returns_input or is_in_place(node)


def _check_buffers(program: ExportedProgram) -> None:
    """Refuse models that remember something from call to call; batch norms count their batches, which is allowed."""
    names = {spec.arg.name: str(spec.target) for spec in program.graph_signature.input_specs}
    specs = program.graph_signature.output_specs
    written = [str(spec.target) for spec in specs if spec.kind.name == "BUFFER_MUTATION"]
    writes = [node.args[0] for node in program.graph.nodes if is_in_place(node)]
    written += [names[node.name] for node in writes if node.op == "placeholder"]
    for name in written:
        if not name.endswith("num_batches_tracked"):
            raise InputError(
                f"the model keeps state in {name}, but a cascade computes some layers more than once per call: update "
                "it outside of forward"
            )
