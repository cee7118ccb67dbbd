"""Text for language models of characters that is on every machine: the docstrings of Python's standard library.

Which text it is depends on the version of Python. Modules are read, never imported.
"""

from __future__ import annotations

import ast
import os
import sysconfig
from functools import lru_cache
from pathlib import Path

import torch
from jaxtyping import Int64
from torch import Tensor

from cascaded.errors import InputError, at_least, unknown

CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))
"""All characters of the text: a newline and printable ASCII, 96 in all. Others are left out."""
SPLITS = ("train", "validation", "test")
TENTH = 10  # of every ten modules, one is for validation and one for testing
LEFT_OUT = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "turtledemo", "__pycache__"}


def characters(
    split: str = "train", context: int = 64, items: int | None = None
) -> tuple[Int64[Tensor, "items tokens"], Int64[Tensor, "items tokens"]]:
    """Windows of text that do not overlap, and for every character the one that follows, as indices of `CHARACTERS`.

    Args:
        split: `train`, `validation` or `test`; a module of the library is in one of them only.
        context: Characters per window.
        items: How many windows, from the beginning; None for all.
    """
    at_least(1, context=context, items=items)
    codes = encode(docstrings(split))
    windows = codes[: (len(codes) - 1) // context * context + 1].unfold(0, context + 1, context)[:items]
    return windows[:, :-1].contiguous(), windows[:, 1:].contiguous()


def encode(text: str) -> Int64[Tensor, "tokens"]:
    """Characters as indices of `CHARACTERS`; others are left out."""
    places = {character: place for place, character in enumerate(CHARACTERS)}
    return torch.tensor([places[each] for each in text if each in places], dtype=torch.long)


def decode(codes: Int64[Tensor, "tokens"]) -> str:
    """The text of indices."""
    return "".join(CHARACTERS[code] for code in codes.tolist())


@lru_cache(maxsize=len(SPLITS))
def docstrings(split: str) -> str:
    """All docstrings of the modules of a split, in the order of their files, with an empty line between them."""
    if split not in SPLITS:
        raise unknown("split", split, SPLITS)
    files = modules()
    if len(files) < TENTH:
        raise InputError(f"{library()} has {len(files)} modules as text: use a Python that has its library's source")
    kept = [file for number, file in enumerate(files) if split_of(number) == split]
    return "\n\n".join(text for file in kept for text in docstrings_of(file.read_text(encoding="utf-8")))


def split_of(number: int) -> str:
    """The split of the module with this number."""
    return {TENTH - 2: "validation", TENTH - 1: "test"}.get(number % TENTH, "train")


def library() -> Path:
    """The folder of the standard library."""
    return Path(sysconfig.get_paths()["stdlib"])


def modules() -> list[Path]:
    """The modules of the standard library, without tests and installed packages."""
    found = []
    for folder, folders, files in os.walk(library()):
        folders[:] = sorted(set(folders) - LEFT_OUT)  # installed packages may be many: they are not even listed
        found += [Path(folder) / name for name in sorted(files) if name.endswith(".py")]
    return found


def docstrings_of(source: str) -> list[str]:
    """The docstrings of a module, its classes and functions, in the order of the source."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # templates among the modules
        return []
    owners = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    owners.sort(key=lambda node: getattr(node, "lineno", 0))
    return [text for node in owners if (text := ast.get_docstring(node))]
