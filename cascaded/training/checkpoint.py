"""Checkpoints that are whole or not there, and say so themselves.

    checkpoints/000000351/model.safetensors        weights and statistics
                          optimiser.safetensors    momentum
                          position.json            how far the run is
                          manifest.json            SHA-256 of the three, written last

A folder without a manifest that fits is not a checkpoint. Nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor

from cascaded.errors import CascadedWarning, InputError
from cascaded.files import sha256, write_json, write_whole
from cascaded.training.runs import MANIFEST, PARTS, WEIGHTS, checkpoint_places, manifest_of

KEPT = 2
"""How many checkpoints a run keeps: should the last one turn out damaged, the one before it is there."""


class DamagedError(InputError):
    """A checkpoint is not what was written."""


class DamagedCheckpoint(CascadedWarning):
    """A checkpoint is damaged and an earlier one is used."""


@dataclass(frozen=True)
class Checkpoint:
    """Everything a run needs to go on exactly, and the SHA-256 of the file with its weights."""

    model: dict[str, Tensor]
    optimiser: dict[str, Tensor]
    position: dict[str, Any]
    weights: str = ""


def save(folder: Path, step: int, model: Mapping[str, Tensor], optimiser: Mapping[str, Tensor], position: Any) -> Path:
    """Write a checkpoint into a run's folder, then let go of all but it and the one before it.

    What was never finished goes as well, and so do later steps: they are of a run that went on differently.
    """
    place = folder / "checkpoints" / f"{step:09d}"
    _remove(place)
    for name, tensors in (("model", model), ("optimiser", optimiser)):
        write_whole(place / f"{name}.safetensors", lambda part, told=tensors: save_file(_plain(told), part))
    write_json(place / "position.json", position)
    digests = {name: sha256(place / name) for name in PARTS}
    write_whole(place / MANIFEST, lambda part: part.write_bytes(manifest_of(digests)))
    kept = [each for each in checkpoint_places(folder) if int(each.name) <= step][-KEPT:]
    for other in place.parent.iterdir():
        if other not in kept and other.name.isdigit():
            _remove(other)
    return place


def newest(folder: Path) -> Checkpoint | None:
    """The last checkpoint of a run that is whole; a warning names each damaged one and the one used in its place."""
    places = checkpoint_places(folder)
    damaged: list[DamagedError] = []
    for place in reversed(places):
        try:
            found = load_checkpoint(place)
        except DamagedError as error:
            damaged.append(error)
            continue
        for error in damaged:
            warnings.warn(f"{error}; checkpoint {place.name} is used instead", DamagedCheckpoint, stacklevel=2)
        return found
    if places:
        raise DamagedError(
            f"no checkpoint in {folder} is intact ({len(places)} damaged): remove the folder to begin again, or "
            "restore one from a copy"
        )
    return None


def load_checkpoint(place: Path) -> Checkpoint:
    """A checkpoint from its folder, checked against its manifest before anything in it is read."""
    parts = {name: _bytes(place / name) for name in PARTS}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in parts.items()}
    # compared as bytes: whatever is changed in the manifest itself shows as well
    if _bytes(place / MANIFEST) != manifest_of(digests):
        raise DamagedError(f"checkpoint {place} does not fit its manifest: it is damaged or was never finished")
    model, optimiser, position = parts.values()
    try:
        return Checkpoint(load(model), load(optimiser), json.loads(position), digests[WEIGHTS])
    except (SafetensorError, ValueError, RecursionError) as error:
        raise DamagedError(f"checkpoint {place} holds something else ({error})") from error


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise DamagedError(f"checkpoint {file.parent} has no readable {file.name} ({error.strerror})") from error


def _remove(place: Path) -> None:
    """The manifest first: what is half removed must not look whole."""
    if place.exists():
        (place / MANIFEST).unlink(missing_ok=True)
        shutil.rmtree(place)


def _plain(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """On the CPU and contiguous, as safetensors keeps them; values are the same."""
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
