"""Which skip connections are delayed: those that were found, whole layers, or some by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cascaded.cascade.convert.capture import Captured
from cascaded.cascade.convert.flow import Flow
from cascaded.cascade.convert.joins import Join, find_joins
from cascaded.cascade.convert.layers import layer_joins
from cascaded.errors import InputError, unknown


@dataclass(frozen=True)
class Choice:
    """What to delay.

    Attributes:
        joins: `auto` for all that are found, a regular expression of module names for whole layers, or names.
        exclude: Names that are not delayed, or a regular expression of names.
    """

    joins: str | Sequence[str] = "auto"
    exclude: str | Sequence[str] = ()


def chosen_joins(captured: Captured, choice: Choice, model: str) -> list[Join]:
    """The joins of a captured model that are delayed."""
    if isinstance(choice.joins, str) and choice.joins != "auto":
        found = layer_joins(captured, choice.joins)
    else:
        found = find_joins(Flow(captured.graph, captured.inputs))
    names = {join.name: join for join in found}
    kept = list(names) if isinstance(choice.joins, str) else _known(choice.joins, names)
    if isinstance(choice.exclude, str):
        dropped = [name for name in names if re.fullmatch(choice.exclude, name)]
    else:
        dropped = _known(choice.exclude, names)
    joins = [join for name, join in names.items() if name in kept and name not in dropped]
    if found and not joins:
        raise InputError(f"all {len(found)} skip connections of {model} are excluded: keep at least one")
    if not found:
        raise InputError(
            f"{model} has no skip connection: a cascade needs sums or concatenations of a layer's input and output, so "
            "add skip connections to the model"
        )
    return joins


def _known(chosen: Sequence[str], names: dict[str, Join]) -> list[str]:
    for name in chosen:
        if name not in names:
            raise unknown("skip connection", name, names, "see table() of the model converted with joins='auto'")
    return list(chosen)
