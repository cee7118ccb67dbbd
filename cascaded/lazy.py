"""Public names that are imported when they are first used: importing torch takes more than a second."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package that imports its public names under `if TYPE_CHECKING:`.

    That block is the only list of them: type checkers read it, and so does this function. Names are imported as
    themselves, `from package.module import Name as Name`, by which type checkers know that they are public.
    """

    @cache
    def homes() -> dict[str, str]:
        """The module that each public name is imported from."""
        tree = ast.parse(Path(str(sys.modules[package].__file__)).read_text())
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        return {each.name: str(node.module) for node in imports for each in node.names if each.asname == each.name}

    def get(name: str) -> Any:
        if name == "__all__":
            return sorted(homes())
        if name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes()[name]
        return import_module(f"{package}.{name}") if home == package else getattr(import_module(home), name)

    return get, lambda: sorted({*vars(sys.modules[package]), *homes()})
