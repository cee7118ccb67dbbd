"""The table of a converted model's skip connections."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cascaded.cascade.convert.segments import Plan


@dataclass(frozen=True)
class JoinInfo:
    """A skip connection of a converted model.

    Attributes:
        name: Its name, for `joins=` and `exclude=`: the module that it is in.
        kind: `identity`, `projected`, `gated`, `concat` or `layer`.
        settles: The step at which it reaches its final value, for a still input and a one-step delay.
        source: File, line and text of the source code.
    """

    name: str
    kind: str
    settles: int
    source: str

    @property
    def form(self) -> tuple[str, str, int]:
        """What does not depend on the version of the source."""
        return self.name, self.kind, self.settles


def join_infos(plan: Plan) -> list[JoinInfo]:
    """The skip connections that the output depends on."""
    joins = [join for join in plan.joins if join.node in plan.keys]
    return [JoinInfo(join.name, join.kind, plan.keys[join.node].stage, join.place.line) for join in joins]


def format_table(joins: Iterable[JoinInfo], looped: Iterable[str]) -> str:
    """One line per skip connection, then what cannot be computed for several steps at once, and why."""
    rows = [("skip connection", "kind", "final at step", "source")]
    rows += [(join.name, join.kind, str(join.settles), join.source) for join in joins]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ["  ".join([*(f"{row[k]:{widths[k]}}" for k in range(3)), row[3]]) for row in rows]
    return "\n".join(lines + [f"computed step by step: {reason}" for reason in sorted(set(looped))])
