"""Options of the command line that are written in a way of their own: `--lam 1:0` and `--fold 3/10`."""

from __future__ import annotations

from typing import Any

from tyro.constructors import PrimitiveConstructorSpec

from cascaded.errors import InputError
from cascaded.training.method import parse_lam


def parse_fold(text: str) -> tuple[int, int]:
    """`3/10` is the third of ten folds."""
    number, slash, folds = text.partition("/")
    if not (slash and number.isdecimal() and folds.isdecimal() and 1 <= int(number) <= int(folds) > 1):
        raise InputError(f"--fold is {text!r}: give its number and how many there are, from 1/10 to 10/10")
    return int(number), int(folds)


LAM = PrimitiveConstructorSpec[Any](
    nargs=1,
    metavar="FLOAT[:FLOAT...]",
    instance_from_str=lambda words: parse_lam(words[0]),
    is_instance=lambda value: value is None or isinstance(value, (int, float, tuple)),
    str_from_instance=lambda value: [":".join(map(str, value)) if isinstance(value, tuple) else str(value)],
)
FOLD = PrimitiveConstructorSpec[Any](
    nargs=1,
    metavar="K/N",
    instance_from_str=lambda words: parse_fold(words[0]),
    is_instance=lambda value: value is None or isinstance(value, tuple),
    str_from_instance=lambda value: ["/".join(map(str, value)) if isinstance(value, tuple) else str(value)],
)
