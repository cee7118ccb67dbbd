"""Whether what JSON gave has the types that a dataclass asks for."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from reprlib import repr as shortened
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints


def check_types(told: Mapping[str, Any], kind: type) -> None:
    """That every field of a dataclass that is told has its type; raises ValueError with the first that has not."""
    hints = get_type_hints(kind)
    for field in fields(kind):
        if field.name in told and not fits(told[field.name], hints[field.name]):
            raise ValueError(f"{field.name} is {shortened(told[field.name])}, not {field.type}")


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type: lists stand for tuples, whole numbers for numbers, and numbers are finite."""
    parts = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return any(fits(value, each) for each in parts)
    if get_origin(hint) is Literal:
        return isinstance(value, str)  # the dataclass says which there are
    if get_origin(hint) is tuple:
        if not isinstance(value, (list, tuple)):
            return False
        hints = parts[:1] * len(value) if parts[-1] is ... else parts
        return len(hints) == len(value) and all(map(fits, value, hints))
    if get_origin(hint) is dict:
        pairs = value.items() if isinstance(value, dict) else [(None, None)]
        return all(fits(name, parts[0]) and fits(each, parts[1]) for name, each in pairs)
    if is_dataclass(hint):
        return isinstance(value, Mapping)
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return type(value) is hint and (hint is not int or abs(value) < 2**63)  # True is an int to isinstance
