"""Segments: the parts of a graph that are computed together.

For every node n, with a one-step delay and a still input:

    stage(n)      1 + delayed edges on the longest path from the input     how many different values n takes
    distance(n)   delayed edges on the shortest path to the output         n at step t matters for step t + distance

Nodes of the same stage and distance are one segment. In the order of (stage, distance) every segment comes after those
that it depends on, and a segment is computed for all its steps at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from torch import Tensor, fx

from cascaded.cascade.convert.capture import Captured
from cascaded.cascade.convert.code import Delay, SegmentCode, Take
from cascaded.cascade.convert.flow import Flow
from cascaded.cascade.convert.graph import Place, is_in_place, is_number, op_name, place, symbols, value
from cascaded.cascade.convert.joins import Join
from cascaded.cascade.convert.randomness import check_drawn_once, is_drawn
from cascaded.cascade.convert.statistics import Clock
from cascaded.cascade.kernels import Kernel
from cascaded.errors import InputError


class Key(NamedTuple):
    """What the nodes of a segment have in common."""

    stage: int  # 0 for what does not depend on the inputs
    behind_stem: bool
    distance: int


@dataclass(frozen=True)
class Segment:
    """Nodes that are computed together: a function from `takes` to `gives`."""

    key: Key
    nodes: tuple[fx.Node, ...]
    takes: tuple[Take, ...]
    gives: tuple[fx.Node, ...]
    module: fx.GraphModule

    def distinct(self, kernel: Kernel) -> float:
        """How many different values its nodes take for a still input."""
        delays = self.key.stage - 1 + self.key.behind_stem
        return 1 + (kernel.memory * delays + kernel.lag * (self.key.stage - 1) if delays > 0 else 0)

    def lead(self, kernel: Kernel) -> int:
        """How many steps ahead of the output it is: at step t it is needed up to its step t - lead."""
        return kernel.lag * self.key.distance

    @property
    def place(self) -> Place:
        """Where its last operation comes from."""
        return place(self.nodes[-1])

    def __call__(self, values: list[Any], batch: int, clock: Clock) -> tuple[Tensor, ...]:
        """Compute it for the clock's steps; tensors contain `batch` items, those of all steps together."""
        return self.module.forward(*values, batch, clock)


class Plan:
    """Delays, stages and segments of a captured graph.

    Args:
        captured: The graph.
        joins: Its skip connections.
        from_rest: Whether delay lines start with the branches' outputs for a zero input: see `stem`.
    """

    def __init__(self, captured: Captured, joins: list[Join], from_rest: bool):
        self.captured, self.joins = captured, joins
        self.flow = Flow(captured.graph, captured.inputs)
        self.delayed = {edge for join in joins for edge in join.edges}
        if captured.output not in self.flow.moving:
            raise InputError("the output does not depend on the inputs: give tensors that the model computes with")
        check_drawn_once([node for node in self.flow.nodes if node in self.flow.moving])
        self.inputs = [node for node in captured.inputs if node in self.flow.moving]
        self.stem = self._find_stem() if from_rest else None
        self.keys = self._keys()
        self.segments = self._segments()
        self.still, self.moving = (
            [each for each in self.segments if (each.key.stage == 0) == is_still] for is_still in (True, False)
        )
        self.final_stage = self.keys[captured.output].stage

    def _find_stem(self) -> fx.Node:
        """The node before all joins: at rest nothing comes out of it."""
        stem = self.flow.common(join.skip for join in self.joins)
        if stem is None:
            raise InputError(
                "the skip connections do not begin at one common layer, so that there is no stem to start from rest: "
                "use start='empty'"
            )
        return stem

    # --- stages

    def _keys(self) -> dict[fx.Node, Key]:
        """Stage and distance of every node that the output depends on."""
        stages, behind = {}, {}
        for node in self.flow.nodes:
            sources = [each for each in node.all_input_nodes if each in self.flow.moving]
            if node in self.flow.moving:
                stages[node] = max([1, *(stages[each] + ((each, node) in self.delayed) for each in sources)])
                behind[node] = any(each is self.stem or behind[each] for each in sources)
            else:
                stages[node], behind[node] = 0, False
        distances = self._distances()
        return {node: Key(stages[node], behind[node], distances[node]) for node in distances}

    def _distances(self) -> dict[fx.Node, int]:
        found: dict[fx.Node, int] = {self.captured.output: 0}
        for node in reversed(self.flow.nodes):
            paths = [found[user] + ((node, user) in self.delayed) for user in node.users if user in found]
            if paths:
                found[node] = min([*paths, found.get(node, paths[0])])
            elif is_in_place(node):
                found[node] = 0  # a batch norm counts its batches
        for node in found:
            if op_name(node) == "getitem":  # a tuple is not passed on: its parts are taken where it is computed
                found[node] = found[node.args[0]]  # pyright: ignore[reportArgumentType]
            if node not in self.flow.moving:
                found[node] = 0
        return found

    # --- segments

    def _segments(self) -> list[Segment]:
        groups: dict[Key, list[fx.Node]] = {}
        for node in self.flow.nodes:
            if node in self.keys and node.op == "call_function" and not self._is_remade(node):
                groups.setdefault(self.keys[node], []).append(node)
        return [self._segment(key, groups[key]) for key in sorted(groups)]

    def _segment(self, key: Key, nodes: list[fx.Node]) -> Segment:
        inside = set(nodes)
        takes: dict[Take, None] = {}
        for node in nodes:
            for source in node.all_input_nodes:
                take = Take(source, self.delay(source, node))
                if not self._is_remade(source) and (source not in inside or take.delay is not Delay.NONE):
                    takes[take] = None
        gives = [node for node in nodes if self._is_given(node, inside)]
        module = SegmentCode(self.captured, self.delay, list(takes)).module(nodes, gives)
        return Segment(key, tuple(nodes), tuple(takes), tuple(gives), module)

    def _is_given(self, node: fx.Node, inside: set[fx.Node]) -> bool:
        users = [user for user in node.users if user in self.keys]
        outside = any(user not in inside or self.delay(node, user) is not Delay.NONE for user in users)
        return node is self.captured.output or outside

    def delay(self, source: fx.Node, user: fx.Node) -> Delay:
        """What happens on an edge."""
        if (source, user) in self.delayed:
            return Delay.BRANCH
        return Delay.STEM if source is self.stem else Delay.NONE

    def _is_remade(self, node: fx.Node) -> bool:
        """Whether a node depends on the batch size only and is made where it is used: sizes, `arange(batch)`."""
        return node.op == "get_attr" or is_number(node) or node in self._made_of_sizes

    @cached_property
    def _made_of_sizes(self) -> set[fx.Node]:
        found: set[fx.Node] = set()
        for node in self.flow.nodes:
            is_tensor = node.op == "call_function" and isinstance(value(node), Tensor)
            known = all(is_number(each) or each in found for each in node.all_input_nodes)
            if is_tensor and known and not is_drawn(node) and not is_in_place(node):
                found.add(node)
        return {node for node in found if any(symbols(size) for size in value(node).shape)}

    def steps_to_settle(self, kernel: Kernel) -> float:
        """The step at which the output for a still input is final."""
        output = self.captured.output
        return next(each for each in self.moving if output in each.gives).distinct(kernel)
