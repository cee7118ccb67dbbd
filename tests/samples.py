"""A valid file and what reads it, and the list of all such readers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Sample:
    """A valid file and what reads it.

    Attributes:
        file: The file that is damaged.
        kind: `json`, `safetensors`, or another.
        read: Reads it.
        prepare: Called after the file was changed, before it is read.
    """

    file: Path
    kind: str
    read: Callable[[], object]
    prepare: Callable[[], object] | None = None


READERS: dict[str, Callable[[Path, Callable[..., Path]], Sample]] = {}


def reader(make: Callable[..., Sample], called: str = "", **options: Any) -> Callable[..., Sample]:
    """Add a reader under its function's name."""
    READERS[called or make.__name__.replace("_", "-")] = lambda place, tiny: make(place, tiny, **options)
    return make
