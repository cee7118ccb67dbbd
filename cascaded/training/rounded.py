"""Weights in half precision, for where space is scarce, with the digest of those that they are rounded from."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np

from cascaded.errors import InputError
from cascaded.files import read_tensors, sha256, write_tensors, write_whole
from cascaded.training.run_file import WEIGHTS
from cascaded.training.runs import weights_file

ROUNDED_FROM = "rounded_from"


def half(weights: np.ndarray) -> np.ndarray:
    """A weight as it is stored: convolutions, nearly all of the file, in half precision; norms and heads exactly."""
    with np.errstate(over="ignore"):
        return np.asarray(weights, np.float16 if weights.ndim == 4 else None, order="C")


def write_rounded(run: Path, folder: Path) -> bool:
    """Store the weights of a run in another folder, rounded; False if it has none. Rounded ones are copied.

    Beside the `config.json` of the run they are a saved network.

    Args:
        run: The run or saved network.
        folder: The other folder.
    """
    file = weights_file(run)
    if file is None:
        return False
    if rounded_from(run):
        write_whole(folder / WEIGHTS, lambda part: shutil.copyfile(file, part))
        return True
    _, tensors = read_tensors(file)
    rounded = {name if name.startswith("net.") else f"net.{name}": half(each) for name, each in tensors.items()}
    if not all(np.isfinite(each).all() for each in rounded.values()):
        raise InputError(f"{file} has weights that are too large for half precision: copy the file itself")
    write_tensors(folder / WEIGHTS, rounded, {ROUNDED_FROM: sha256(file)})
    return True


def rounded_from(run: Path) -> str | None:
    """SHA-256 of the weights that those of a run or saved network are rounded from; None if they are not rounded."""
    file = weights_file(run)
    if file is None:
        return None
    try:
        found = read_tensors(file, values=False)[0].get(ROUNDED_FROM)
    except InputError:  # damaged: whoever loads them says so
        return None
    return found if isinstance(found, str) and re.fullmatch("[0-9a-f]{64}", found) else None


def trained_weights(run: Path) -> str | None:
    """SHA-256 of the weights of a run as they were trained, also if there is a rounded copy only; None without any."""
    file = weights_file(run)
    return None if file is None else rounded_from(run) or sha256(file)
