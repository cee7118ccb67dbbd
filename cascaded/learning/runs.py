"""A run's folder: what it is, how far it is, and that nobody else is at it.

runs/<name>/<seed>/{spec.json, checkpoints/, metrics.jsonl}
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cascaded.errors import InputError
from cascaded.files import read_json, write_json
from cascaded.learning.spec import Spec

LOCK = ".lock"
MANIFEST = "manifest.json"  # a checkpoint without it is none


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Have a run's folder alone. The system lets go of the lock when the process ends, however it ends."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout as error:
        raise InputError(f"another process is training in {folder}: wait for it, or choose another --out") from error
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error.strerror}): choose another --out") from error
    try:
        yield
    finally:
        lock.release()


def is_locked(folder: Path) -> bool:
    """Whether a process is training there now."""
    if not (folder / LOCK).exists():
        return False
    try:
        with locked(folder):
            return False
    except InputError:
        return True


def enter(folder: Path, spec: Spec, resume: bool, made_with: dict[str, str]) -> None:
    """Say what the run is, or hold what is asked against what the folder says it is."""
    file = folder / "spec.json"
    if not file.exists():
        write_json(file, {**spec.to_json(), "made_with": made_with})
        return
    if differences := read_spec(folder).differences(spec):
        raise InputError(
            f"{folder} is another run ({', '.join(differences)}): ask for what it is, or choose another --out"
        )
    if not resume:
        raise InputError(f"{folder} holds this run already: say --resume to go on with it, or choose another --out")


def read_spec(folder: Path) -> Spec:
    """What the run in a folder is."""
    told = read_json(folder / "spec.json")
    try:
        told.pop("made_with", None)
        return Spec.from_json(told)
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError(f"{folder / 'spec.json'} does not describe a run ({error}): it is damaged") from error


class Metrics:
    """`metrics.jsonl`: a line an epoch, appended; cut back to where a checkpoint was made when a run goes on."""

    def __init__(self, folder: Path, length: int):
        self.file = folder / "metrics.jsonl"
        if self.file.exists():
            os.truncate(self.file, min(length, self.file.stat().st_size))

    def add(self, **told: Any) -> None:
        """Append a line, and have it on the disk."""
        try:
            with self.file.open("a") as opened:
                opened.write(json.dumps(told) + "\n")
                opened.flush()
                os.fsync(opened.fileno())
        except OSError as error:
            raise InputError(f"{self.file} cannot be written ({error.strerror}): make room, then --resume") from error

    @property
    def length(self) -> int:
        """How long the file is now, in bytes."""
        return self.file.stat().st_size if self.file.exists() else 0


def checkpoint_places(folder: Path) -> list[Path]:
    """The checkpoints of a run that were finished, oldest first."""
    found = (folder / "checkpoints").glob(f"*/{MANIFEST}")
    return sorted(manifest.parent for manifest in found if manifest.parent.name.isdigit())


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """What a run has told so far; a last line that is still being written is left out."""
    file = folder / "metrics.jsonl"
    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def last_metrics(folder: Path) -> dict[str, Any] | None:
    """The newest line of a run's metrics."""
    known = read_metrics(folder)
    return known[-1] if known else None


def is_done(folder: Path) -> bool:
    """Whether a run has ended and its last checkpoint is of its last step."""
    last = last_metrics(folder)
    if last is None or not (folder / "spec.json").exists():
        return False
    ended = last["epoch"] >= read_spec(folder).recipe.epochs
    return ended and [int(place.name) for place in checkpoint_places(folder)][-1:] == [last["step"]]
