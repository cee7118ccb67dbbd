"""Public names that are imported when they are first used: torch takes more than a second, `--help` should not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy(
    package: str, homes: Mapping[str, Sequence[str]], parts: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package whose public names live in other modules.

    Args:
        package: Its own name.
        homes: Which names each module is home to.
        parts: Packages within it that are public as a whole.
    """
    where = {name: home for home, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name in parts:
            return import_module(f"{package}.{name}")
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(where[name]), name)

    def listed() -> list[str]:
        return sorted({*vars(import_module(package)), *where, *parts})

    return get, listed
