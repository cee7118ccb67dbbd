"""A run's folder: what it is, how far it is, and that nobody else is at it.

runs/<name>/<seed>/{spec.json, checkpoints/, metrics.jsonl, traces/, results.json}
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cascaded.errors import InputError
from cascaded.files import check_types, read_json, sha256, write_json
from cascaded.shell import program
from cascaded.training.config import Spec
from cascaded.training.recipe import Recipe

LOCK = ".lock"
WITH_PARENT = "CASCADED_WITH_PARENT"
"""Holds, in the environment of a run, the process that it is to end with: everything is kept when that one is gone."""
PARTS = ("model.safetensors", "optimiser.safetensors", "position.json")  # of a checkpoint
MANIFEST = "manifest.json"  # without it there is no checkpoint


@dataclass(frozen=True)
class Inputs:
    """What a network takes and what its answers mean, so that it can be used where its training images are not.

    Attributes:
        shape: Channels, height and width of an image.
        mean: Mean of each channel over the images it was trained on, in 0..1.
        std: Their deviation.
        classes: What its classes are called.
    """

    shape: tuple[int, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    classes: tuple[str, ...]


class LockedError(InputError):
    """Somebody else is at it."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Have a run's folder alone. The system lets go of the lock when the process ends, however it ends."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=1)  # someone may just be looking
    except Timeout as error:
        raise LockedError(f"another process is at work in {folder}: wait for it, or choose another folder") from error
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error.strerror}): make it so, or choose another") from error
    try:
        yield
    finally:
        lock.release()


def is_locked(folder: Path) -> bool:
    """Whether a process is at work there now."""
    if not (folder / LOCK).exists():
        return False
    try:
        with locked(folder):
            return False
    except LockedError:
        return True


def resume_command(folder: Path) -> str:
    """The command that resumes a run."""
    return f"{program()} train --resume {shlex.quote(str(folder))}"


def run_to_resume(place: Path, seed: int | None = None) -> Path:
    """The run that is meant by a folder: itself, or the one below it that is not finished.

    Args:
        place: The folder of a run, or one that holds runs.
        seed: Which of several, by its seed.
    """
    found = [run for run in find_runs([place]) if run == place or seed in (None, read_spec(run).seed)]
    if not found:
        raise InputError(f"{place} holds no run with seed {seed}: leave --seed out, or give one that is there")
    left = [run for run in found if not is_done(run)] or found
    if len(left) > 1:
        state = "finished" if is_done(left[0]) else "unfinished"
        raise InputError(f"{place} holds {len(left)} {state} runs, {', '.join(map(str, left))}: give one of them")
    return left[0]


def enter(folder: Path, spec: Spec, resume: bool) -> None:
    """Hold what is asked against what the folder says it is, if it says anything yet."""
    if not (folder / "spec.json").exists():
        if checkpoint_places(folder):
            raise InputError(
                f"{folder} holds checkpoints but no spec.json that says of what: bring it back, or choose another --out"
            )
        return
    check_spec(folder, spec)
    if not resume:
        raise InputError(
            f"{folder} holds this run already: resume it with {resume_command(folder)}, or choose another --out"
        )


def check_spec(folder: Path, spec: Spec) -> None:
    """The run in a folder is the one that is asked for."""
    if differences := read_spec(folder).differences(spec):
        raise InputError(
            f"{folder} is another run ({', '.join(differences)}): leave these options out to resume it, or choose "
            "another --out"
        )


def begin(folder: Path, spec: Spec, fingerprint: str, inputs: Inputs, made_with: dict[str, str]) -> None:
    """Say what the run is and which images it has, once all is known to be good; later, hold the images against it."""
    file = folder / "spec.json"
    told = read_json(file) if file.exists() else {**spec.to_json(), "images": fingerprint, "made_with": made_with}
    if not isinstance(told, dict) or told.get("images") != fingerprint:
        raise InputError(
            f"{spec.data} holds other images than those that {folder} began with: bring them back, or choose another "
            "--out"
        )
    if "inputs" not in told:
        write_json(file, {**told, "inputs": asdict(inputs)})


def read_inputs(folder: Path) -> Inputs:
    """What the network of a run takes."""
    told = read_json(folder / "spec.json")
    try:
        told = told["inputs"]
        check_types(told, Inputs)
        inputs = Inputs(**{name: tuple(value) for name, value in told.items()})
        channels = inputs.shape[0] if len(inputs.shape) == 3 and min(inputs.shape) > 0 else 0
        if not channels or len(inputs.mean) != channels or len(inputs.std) != channels:
            raise ValueError(f"mean and deviation do not fit channels, height and width {list(inputs.shape)}")
        return inputs
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{folder / 'spec.json'} does not tell what its network takes ({error}): {resume_command(folder)} adds it"
        ) from error


def read_spec(folder: Path) -> Spec:
    """What the run in a folder is."""
    told = read_json(folder / "spec.json")
    try:
        about = {"made_with", "images", "inputs"}  # known of the run, not asked for
        told = {name: value for name, value in told.items() if name not in about}
        for each, kind in ((told, Spec), (told["recipe"], Recipe)):
            check_types(each, kind)
        spec = Spec.from_json(told)
        _ = spec.method
        return spec
    except InputError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
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
            raise InputError(
                f"{self.file} cannot be written ({error.strerror}): make room, then {resume_command(self.file.parent)}"
            ) from error

    @property
    def length(self) -> int:
        """How long the file is now, in bytes."""
        return self.file.stat().st_size if self.file.exists() else 0


def checkpoint_places(folder: Path) -> list[Path]:
    """The checkpoints of a run that were finished, oldest first."""
    found = (folder / "checkpoints").glob(f"*/{MANIFEST}")
    return sorted(manifest.parent for manifest in found if manifest.parent.name.isdigit())


def manifest_of(digests: Mapping[str, str]) -> bytes:
    """What a manifest says, to the byte: whatever is changed in it shows as well."""
    return (json.dumps({"format": 1, "sha256": dict(digests)}, indent=2) + "\n").encode()


def weights_digest(folder: Path, step: int | None = None) -> str | None:
    """SHA-256 of a run's weights as its newest checkpoint's manifest has it; None without a checkpoint.

    Args:
        folder: A run, or a saved network: there the file of weights itself is read.
        step: Of the checkpoint at this step.
    """
    places = [place for place in checkpoint_places(folder) if step is None or int(place.name) == step]
    try:
        if places:
            return str(read_json(places[-1] / MANIFEST)["sha256"][PARTS[0]])
        return sha256(folder / PARTS[0]) if (folder / PARTS[0]).exists() else None
    except (InputError, KeyError, TypeError):
        return None


def is_whole(place: Path) -> bool:
    """Whether a checkpoint is what was written."""
    try:
        return (place / MANIFEST).read_bytes() == manifest_of({name: sha256(place / name) for name in PARTS})
    except OSError:
        return False


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """What a run has told so far; a last line that is still being written is left out."""
    file = folder / "metrics.jsonl"
    try:
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        return [dict(json.loads(line)) for line in lines if line.endswith("\n")]
    except (OSError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{file} does not hold a line of JSON an epoch ({error}): it is damaged, remove it") from error


def last_metrics(folder: Path) -> dict[str, Any] | None:
    """The newest line of a run's metrics."""
    known = read_metrics(folder)
    return known[-1] if known else None


def find_runs(places: Sequence[Path]) -> list[Path]:
    """The runs in or below some folders, in order; each folder must hold at least one."""
    found: list[Path] = []
    for place in places:
        if place.is_file():
            raise InputError(f"{place} is a file: give the folder of a run, such as runs/td0/0")
        if not place.is_dir():
            raise InputError(f"there is no folder {place}: give the folder of a run, such as runs/td0/0")
        below = sorted(spec.parent for spec in place.glob("**/spec.json"))
        if not below:
            raise InputError(f"{place} holds no run, no spec.json is in or below it: train one with cascaded train")
        known = {run.resolve() for run in found}
        found += [run for run in below if run.resolve() not in known]
    return found


def is_done(folder: Path) -> bool:
    """Whether a run has ended and its last checkpoint is of its last step, and whole."""
    last = last_metrics(folder)
    if last is None or not (folder / "spec.json").exists():
        return False
    if not all(type(last.get(name)) is int for name in ("epoch", "step")):
        raise InputError(f"the last line of {folder / 'metrics.jsonl'} has no epoch and step: it is damaged, remove it")
    if last["epoch"] < read_spec(folder).recipe.epochs:
        return False
    places = [place for place in checkpoint_places(folder) if int(place.name) == last["step"]]
    return bool(places) and is_whole(places[0])
