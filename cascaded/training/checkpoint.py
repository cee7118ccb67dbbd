"""Checkpoints that are complete or do not count.

    checkpoints/000000351/model.safetensors        weights and norm statistics, or their moving average
                          optimizer.safetensors    its averages; if the model is an average, the weights in training too
                          position.json            step, loss, time
                          manifest.json            SHA-256 of the three, written last

A folder without a matching manifest is not a checkpoint. Nothing is ever unpickled.
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
from cascaded.files import from_json, sha256, write_json, write_whole
from cascaded.training.runs import MANIFEST, PARTS, WEIGHTS, checkpoint_places, manifest_of

KEPT = 2
"""Checkpoints that a run keeps: if the last one is damaged, the one before it is used."""


class DamagedError(InputError):
    """A checkpoint is not what was written."""


class DamagedCheckpoint(CascadedWarning):
    """A checkpoint is damaged and an earlier one is used."""


@dataclass
class Position:
    """The progress of a run. With weights and optimizer this is its whole state.

    Attributes:
        step: Steps done.
        loss: Sum of the losses of the epoch's steps so far.
        seconds: Training time, over all sessions.
        processor_seconds: The processor time of it, without that of other programs.
        metrics: Length of `metrics.jsonl` in bytes.
    """

    step: int = 0
    loss: float = 0.0
    seconds: float = 0.0
    processor_seconds: float = 0.0
    metrics: int = 0

    @classmethod
    def from_json(cls, content: Any) -> Position:
        """The position in a checkpoint, with checked types and signs."""
        try:
            position = from_json(content, cls)
            if min(position.step, position.seconds, position.processor_seconds, position.metrics) < 0:
                raise ValueError(f"{position} is negative")
        except ValueError as error:
            raise InputError(
                f"position.json of a checkpoint is not valid ({error}): bring back an older copy, or train again"
            ) from error
        return position


@dataclass(frozen=True)
class Checkpoint:
    """The whole state of a run, and the SHA-256 of the file with its weights."""

    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    position: dict[str, Any]
    weights: str = ""


def save(folder: Path, step: int, model: Mapping[str, Tensor], optimizer: Mapping[str, Tensor], position: Any) -> Path:
    """Write a checkpoint into a run's folder, then remove all but this one and the one before it.

    Unfinished ones are removed as well, and so are later steps: they belong to a run that continued differently.
    """
    place = folder / "checkpoints" / f"{step:09d}"
    _remove(place)
    for name, tensors in (("model", model), ("optimizer", optimizer)):
        kept = {key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}
        write_whole(place / f"{name}.safetensors", lambda part, kept=kept: save_file(kept, part))
    write_json(place / "position.json", position)
    digests = {name: sha256(place / name) for name in PARTS}
    write_whole(place / MANIFEST, lambda part: part.write_bytes(manifest_of(digests)))
    remaining = [each for each in checkpoint_places(folder) if int(each.name) <= step][-KEPT:]
    for other in place.parent.iterdir():
        if other not in remaining and other.name.isdigit():
            _remove(other)
    return place


def newest(folder: Path) -> Checkpoint | None:
    """The last intact checkpoint of a run; a warning names each damaged one and the one used in its place."""
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
    """A checkpoint from its folder, compared with its manifest before anything in it is read."""
    parts = {name: _read(place / name) for name in PARTS}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in parts.items()}
    # compared as bytes: changes of the manifest itself are detected as well
    if _read(place / MANIFEST) != manifest_of(digests):
        raise DamagedError(f"checkpoint {place} does not fit its manifest: it is damaged or was never finished")
    model, optimizer, position = parts.values()
    try:
        return Checkpoint(load(model), load(optimizer), json.loads(position), digests[WEIGHTS])
    except (SafetensorError, ValueError, RecursionError) as error:
        raise DamagedError(f"checkpoint {place} holds something else ({error})") from error


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise DamagedError(f"checkpoint {file.parent} has no readable {file.name} ({error.strerror})") from error


def _remove(place: Path) -> None:
    """Remove a checkpoint, the manifest first: a half-removed one must not look complete."""
    if place.exists():
        (place / MANIFEST).unlink(missing_ok=True)
        shutil.rmtree(place)
