"""Whole layers as branches: y = M(x) becomes x[t] + (M(x) - x)[t-1].

A transformer layer has two skip connections, around its attention and around its MLP. Delaying the layer as a whole
takes half as many steps and half the operations. The final value is M(x), up to rounding.
"""

from __future__ import annotations

import re

import torch
from torch import fx

from cascaded.cascade.convert.capture import Captured
from cascaded.cascade.convert.flow import Flow, shape
from cascaded.cascade.convert.graph import Place, place
from cascaded.cascade.convert.joins import Join
from cascaded.errors import InputError

aten = torch.ops.aten


def layer_joins(captured: Captured, pattern: str) -> list[Join]:
    """Rewrite a graph so that every module whose name matches is one delayed branch."""
    flow = Flow(captured.graph, captured.inputs)
    modules: dict[str, list[fx.Node]] = {}
    for node in flow.nodes:
        for path, _ in (node.meta.get("nn_module_stack") or {}).values():
            if node in flow.moving and re.fullmatch(pattern, path):
                modules.setdefault(path, []).append(node)
    if not modules:
        raise InputError(f"no module's name matches {pattern!r}: give a regular expression of names in named_modules()")
    return [_layer_join(captured, flow, path, set(nodes)) for path, nodes in modules.items()]


def _layer_join(captured: Captured, flow: Flow, path: str, inside: set[fx.Node]) -> Join:
    x, y = _input_and_output(flow, path, inside)
    users = [user for user in y.users if user not in inside]
    change = _after(y, aten.sub.Tensor, (y, x))
    join = _after(change, aten.add.Tensor, (x, change))
    flow.moving |= {change, join}
    for user in users:
        user.replace_input_with(y, join)
    if captured.output is y:
        captured.output = join
    return Join(path, "layer", join, x, ((change, join),), Place(path, place(y).line))


def _after(node: fx.Node, target: torch._ops.OpOverload, arguments: tuple[fx.Node, fx.Node]) -> fx.Node:
    with node.graph.inserting_after(node):
        made = node.graph.call_function(target, arguments)
    made.meta.update(node.meta)
    return made


def _input_and_output(flow: Flow, path: str, inside: set[fx.Node]) -> tuple[fx.Node, fx.Node]:
    """The one tensor that a module changes, before and after."""
    outputs = [node for node in inside if any(user not in inside for user in node.users)]
    if len(outputs) != 1:
        raise InputError(f"{path} has {len(outputs)} outputs: match modules that return one tensor")
    (y,) = outputs
    sources = {each for node in inside for each in node.all_input_nodes if each not in inside and each in flow.moving}
    inputs = [each for each in sources if shape(each) == shape(y)]
    if len(inputs) != 1:
        raise InputError(
            f"{path} has {len(inputs)} inputs of its output's shape {tuple(shape(y) or ())}: match modules that take "
            "one tensor and return it changed"
        )
    return inputs[0], y
