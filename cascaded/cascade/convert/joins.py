"""Joins: where a skip connection meets the branch beside it, and which edges are delayed there.

An edge `source -> user` that is delayed gives the user what the source was one step ago. All other edges are
instantaneous.

    identity    x + f(x)                   f -> sum, if f mixes positions or channels
    projected   p(x) + f(x)                f -> sum, if p is linear and f is not
    gated       T(x) h(x) + (1 - T(x)) x   both T h -> sum and T -> (1 - T): an empty line is T = 0, pure carry
    concat      cat(x, f(x))               f -> cat: dense networks; in a U-Net the way through the deep layers
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from torch import fx

from cascaded.cascade.convert.flow import Flow, shape
from cascaded.cascade.convert.graph import Place, op_name, operands, place, value

Edge = tuple[fx.Node, fx.Node]


@dataclass(frozen=True)
class Join:
    """A place where a delayed branch meets a path that is not delayed.

    Attributes:
        name: The module that it is in; `#2` for the second one in the same module.
        kind: `identity`, `projected`, `gated`, `concat` or, for whole modules, `layer`.
        node: The sum or concatenation.
        skip: Where the path without delay begins.
        edges: The edges that are delayed.
        place: Its place in the source.
    """

    name: str
    kind: str
    node: fx.Node
    skip: fx.Node
    edges: tuple[Edge, ...]
    place: Place


def find_joins(flow: Flow) -> list[Join]:
    """All skip connections of a graph, in order."""
    found = []
    for node in flow.nodes:
        if node not in flow.moving:
            continue
        if op_name(node) in ("add", "sub"):
            found += filter(None, [_sum(flow, node)])
        elif op_name(node) in ("cat", "concat", "concatenate"):
            found += filter(None, [_concatenation(flow, node)])
    return named(found)


def named(joins: list[Join]) -> list[Join]:
    """Names that are unique: the module, and a number where a module has several joins."""
    counted: Counter[str] = Counter()
    for position, join in enumerate(joins):
        module = join.place.module or "model"
        counted[module] += 1
        joins[position] = replace(join, name=module if counted[module] == 1 else f"{module}#{counted[module]}")
    return joins


def make_join(kind: str, node: fx.Node, skip: fx.Node, *edges: Edge) -> Join:
    """A join without a name."""
    return Join("", kind, node, skip, edges, place(node))


def _sum(flow: Flow, node: fx.Node) -> Join | None:
    terms = [each for each in operands(node) if each in flow.moving and shape(each) == shape(node)]
    if len(terms) != 2 or terms[0] is terms[1] or not value(node).is_floating_point():
        return None
    pairs = [(terms[0], terms[1]), (terms[1], terms[0])]
    if any(flow.above(skip, branch) for skip, branch in pairs):
        return _identity(flow, node, pairs)
    return _third_term(flow, node) or _projected(flow, node, pairs) or _gated(flow, node, pairs)


def _identity(flow: Flow, node: fx.Node, pairs: list[Edge]) -> Join | None:
    """`x + f(x)`; `f(x) - x` takes the input away and is none."""
    for skip, branch in pairs:
        subtracted = op_name(node) == "sub" and skip is node.args[1]
        if flow.above(skip, branch) and flow.mixes(skip, branch) and not subtracted:
            return make_join("identity", node, skip, (branch, node))
    return None


def _third_term(flow: Flow, node: fx.Node) -> Join | None:
    """`x + f(x) + g(x)`: the inner sum delays f, this one delays g, so that both arrive together."""
    for skip in (terms := list(_terms(flow, node))):
        if len(terms) > 2 and all(each is skip or _is_branch(flow, skip, each) for each in terms):
            branch = next(each for each in operands(node) if skip not in _terms(flow, each) and each is not skip)
            return make_join("identity", node, skip, (branch, node))
    return None


def _is_branch(flow: Flow, skip: fx.Node, node: fx.Node) -> bool:
    return flow.above(skip, node) and flow.mixes(skip, node) > 0


def _terms(flow: Flow, node: fx.Node, outer: bool = True) -> Iterator[fx.Node]:
    """The terms of a sum, through sums that are used nowhere else."""
    if op_name(node) not in ("add", "sub") or not (outer or len(node.users) == 1):
        yield node
        return
    for each in operands(node):
        if each in flow.moving:
            yield from _terms(flow, each, outer=False)


def _projected(flow: Flow, node: fx.Node, pairs: list[Edge]) -> Join | None:
    """`p(x) + f(x)`: one way from the nearest common dominator is linear, the other is not."""
    source = flow.dominators[node]
    if source is None:
        return None
    for skip, branch in pairs:
        deeper = flow.mixes(source, branch) >= max(1, flow.mixes(source, skip))
        if deeper and flow.is_linear(source, skip) and not flow.is_linear(source, branch):
            return make_join("projected", node, source, (branch, node))
    return None


def _gated(flow: Flow, node: fx.Node, pairs: list[Edge]) -> Join | None:
    """`T h + (1 - T) x`: the gate is part of the branch and arrives with it."""
    source = flow.dominators[node]
    for carried, branch in pairs:
        factors = [each for each in operands(carried) if each in flow.moving]
        if source is None or op_name(carried) != "mul" or len(factors) != 2 or not flow.mixes(source, branch):
            continue
        for carry, gate in (factors, factors[::-1]):
            carries = carry is source or (flow.above(source, carry) and flow.is_linear(source, carry))
            edges = _gate_edges(flow, source, gate, branch)
            if carries and gate is not source and flow.mixes(source, gate) and edges:
                return make_join("gated", node, carry, (branch, node), *edges)
    return None


def _gate_edges(flow: Flow, source: fx.Node, gate: fx.Node, branch: fx.Node) -> list[Edge]:
    """The edges from T, the last node that gate and branch share, to the gate `1 - T`."""
    shared = [each for each in flow.between(source, gate) if flow.above(each, branch)]
    if not shared:
        return []
    last = max(shared, key=lambda each: flow.order[each])
    if not flow.is_linear(last, gate):
        return []
    users = [each for each in last.users if each in flow.moving]
    return [
        (last, user)
        for user in users
        if (user is gate or flow.above(user, gate)) and not (user is branch or flow.above(user, branch))
    ]


def _concatenation(flow: Flow, node: fx.Node) -> Join | None:
    """`cat(x, f(x))`: operands that descend from another one are delayed."""
    parts = [each for each in node.args[0] if each in flow.moving]  # pyright: ignore[reportGeneralTypeIssues,reportOptionalIterable]
    late = {each: None for each in parts if any(_is_branch(flow, skip, each) for skip in parts)}
    if not late:
        return None
    skip = next(each for each in parts if each not in late)
    return make_join("concat", node, skip, *((each, node) for each in late))
