"""Blocks that are alike, computed in one call.

At one step, what a delayed branch computes depends on values of the step before alone. Branches whose graphs differ in
their parameters only, such as the layers of a transformer, are therefore computed together, with stacked parameters.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx, nn

from cascaded.cascade.convert.code import Delay
from cascaded.cascade.convert.graph import is_number, shape_at, value
from cascaded.cascade.convert.segments import Plan, Segment
from cascaded.cascade.convert.stacked import CannotStackError, StackedCode

EXACT = {torch.float64: 1e-9, torch.float32: 1e-5}
"""How much rounding may change a result, relative to the largest value."""


@dataclass
class Alike:
    """Segments that differ in their parameters only.

    Attributes:
        positions: Their positions in the plan, in order.
        segments: The segments.
        shared: For every input, whether it is the same in all of them.
        moving: For every input, whether it depends on the model's inputs.
        module: Computes several of them at once; every tensor that is not shared has a leading axis.
    """

    positions: tuple[int, ...]
    segments: tuple[Segment, ...]
    shared: tuple[bool, ...]
    moving: tuple[bool, ...]
    module: fx.GraphModule
    _stacks: dict[int, Tensor] = field(default_factory=dict)
    _made_of: tuple[tuple[Tensor, int], ...] = ()

    def stacks(self, values: dict[fx.Node, Any]) -> dict[int, Tensor]:
        """The stacked parameters, by the position of the input; stacked again when one has changed."""
        stacked = [k for k in range(len(self.shared)) if not self.shared[k] and not self.moving[k]]
        parameters = [[values[segment.takes[k].source] for segment in self.segments] for k in stacked]
        # an optimizer's step counts as a new version; writing to `parameter.data` does not
        made_of = tuple((x, 0 if x.is_inference() else x._version) for each in parameters for x in each)
        is_same = len(made_of) == len(self._made_of) and all(
            one is other and version == before
            for (one, version), (other, before) in zip(made_of, self._made_of, strict=True)
        )
        if not is_same:
            self._stacks = {k: torch.stack(each) for k, each in zip(stacked, parameters, strict=True)}
            self._made_of = made_of
        return self._stacks

    def compute(
        self, values: dict[fx.Node, Any], taken: Sequence[Sequence[Any]], members: Sequence[int], batch: int
    ) -> list[tuple[Tensor, ...]]:
        """What some of the segments give, each a tuple.

        Args:
            values: Parameters, buffers and constants.
            taken: What each of these segments takes.
            members: Which ones: consecutive numbers.
            batch: Number of items.
        """
        stacks, some = self.stacks(values), slice(members[0], members[-1] + 1)
        inputs = [
            taken[0][k]
            if self.shared[k]
            else torch.stack([each[k] for each in taken])
            if self.moving[k]
            else stacks[k][some]
            for k in range(len(self.shared))
        ]
        results = self.module.forward(*inputs, batch, None)
        return list(zip(*(result.unbind() for result in results), strict=True))


def find_alike(plan: Plan, values: dict[fx.Node, Any]) -> list[Alike]:
    """Groups of segments that can be computed in one call, and are as exact.

    Args:
        plan: The graph and its segments.
        values: Parameters, buffers and constants.
    """
    groups: dict[Hashable, list[int]] = {}
    for position, segment in enumerate(plan.moving):
        if _is_late(plan, segment):
            groups.setdefault(_form(plan, segment), []).append(position)
    found = (_alike(plan, positions) for positions in groups.values() if len(positions) > 1)
    return [each for each in found if each is not None and _is_exact(each, values)]


def _is_late(plan: Plan, segment: Segment) -> bool:
    """Whether a segment takes what was computed at an earlier step, and nothing else but parameters."""
    takes = [take for take in segment.takes if take.source in plan.flow.moving]
    return bool(takes) and all(
        take.delay is Delay.NONE and plan.keys[take.source].distance < segment.key.distance for take in takes
    )


def _form(plan: Plan, segment: Segment) -> Hashable:
    """What is the same in segments that are alike."""
    numbers: dict[fx.Node, int] = {}

    def known(node: fx.Node) -> tuple[str, int]:
        return ("node", numbers[node])

    lines: list[Hashable] = [segment.key.distance]
    for node in segment.module.graph.nodes:
        numbers[node] = len(numbers)
        target = "size" if is_number(node) else str(node.target) if node.op == "call_function" else node.op
        described = repr(value(node)) if is_number(node) else _described(value(node))
        lines.append((target, repr(fx.map_arg((node.args, node.kwargs), known)), described))
    lines += [(take.delay, take.source in plan.flow.moving) for take in segment.takes]
    return tuple(lines)


def _described(found: Any) -> str:
    if isinstance(found, Tensor):
        return f"{tuple(map(str, found.shape))} {found.dtype} {found.device}"
    return repr(list(map(_described, found))) if isinstance(found, tuple | list) else type(found).__name__


def _alike(plan: Plan, positions: list[int]) -> Alike | None:
    segments = tuple(plan.moving[position] for position in positions)
    columns = list(zip(*(segment.takes for segment in segments), strict=True))
    shared = tuple(len({take.source for take in column}) == 1 for column in columns)
    moving = tuple(column[0].source in plan.flow.moving for column in columns)
    try:
        graph = StackedCode(segments[0].module.graph, shared).graph
    except CannotStackError:
        return None
    return Alike(tuple(positions), segments, shared, moving, fx.GraphModule(nn.Module(), graph))


@torch.no_grad()
def _is_exact(alike: Alike, values: dict[fx.Node, Any]) -> bool:
    """Whether all segments in one call give what each of them gives, for two random items."""
    generator = torch.Generator().manual_seed(0)

    def drawn(node: fx.Node) -> Tensor:
        like = value(node)
        return torch.randn(shape_at(node, 2), generator=generator).to(like.device, like.dtype)

    sources = {take.source for segment in alike.segments for take in segment.takes if take.source not in values}
    if not all(value(each).is_floating_point() for each in sources):
        return False
    known = {**values, **{each: drawn(each) for each in alike_order(alike, sources)}}
    taken = [[known[take.source] for take in segment.takes] for segment in alike.segments]
    try:
        results = alike.compute(values, taken, range(len(taken)), 2)
    except (RuntimeError, IndexError, TypeError):
        return False
    apart = [segment.module.forward(*each, 2, None) for segment, each in zip(alike.segments, taken, strict=True)]
    pairs = [pair for one, other in zip(results, apart, strict=True) for pair in zip(one, other, strict=True)]
    return all(_same(one, other) for one, other in pairs)


def alike_order(alike: Alike, sources: set[fx.Node]) -> list[fx.Node]:
    """Sources in the order in which they are taken."""
    return list(dict.fromkeys(t.source for segment in alike.segments for t in segment.takes if t.source in sources))


def _same(one: Tensor, other: Tensor) -> bool:
    limit = EXACT.get(other.dtype, 3e-2) * float(other.abs().max().clamp(min=1e-12))
    return one.shape == other.shape and one.dtype == other.dtype and bool((one - other).abs().max() <= limit)
