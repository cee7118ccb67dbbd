"""The folder of a run: its configuration, its progress, and a lock against two processes at once.

    runs/<name>/<seed>/{config.json, checkpoints/, metrics.jsonl, traces/, results/}

A saved network (config.json and model.safetensors, no checkpoints) is read in the same way.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cascaded.errors import InputError
from cascaded.files import read_json, sha256, write_json
from cascaded.progress import readable
from cascaded.shell import program
from cascaded.training.config import RunConfig
from cascaded.training.run_file import CONFIG, WEIGHTS, Inputs, RunFile

if TYPE_CHECKING:
    from filelock import BaseFileLock

LOCK = ".lock"
WITH_PARENT = "CASCADED_WITH_PARENT"
"""Environment variable with the process that a run ends with: everything is saved when that process has ended."""
METRICS = "metrics.jsonl"
PARTS = (WEIGHTS, "optimizer.safetensors", "position.json")  # of a checkpoint
MANIFEST = "manifest.json"  # without it there is no checkpoint


class LockedError(InputError):
    """Another process is working in the folder."""


@contextmanager
def locked(folder: Path, seconds: float = 1.0) -> Iterator[None]:
    """Lock a run's folder. The system releases the lock when the process ends, however it ends.

    The file of the lock is removed while it is still held. A process that waited with this file open gets the lock of a
    file without a name, and takes that of the file in the folder instead.

    Args:
        folder: The folder; it is made if there is none.
        seconds: How long to wait for another process.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=seconds)  # `is_locked` of another process takes it for a moment
        while not _is_in_folder(lock):
            lock.release()
            lock.acquire(timeout=seconds)
    except Timeout as error:
        raise LockedError(f"another process is working in {folder}: wait for it, or choose another folder") from error
    except OSError as error:
        raise InputError(
            f"{folder} cannot be written ({error.strerror}): make it writable, or choose another"
        ) from error
    try:
        yield
    finally:
        with suppress(OSError):  # the folder cannot be written any more; on Windows, releasing it removes the file
            if _is_in_folder(lock):
                os.unlink(lock.lock_file)
        lock.release()


def _is_in_folder(lock: BaseFileLock) -> bool:
    """Whether the file that is locked is still the one in the folder, where other processes look for it."""
    descriptor = lock._context.lock_file_fd
    if os.name == "nt" or descriptor is None:  # Windows does not remove open files
        return True
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(lock.lock_file))
    except FileNotFoundError:
        return False


def is_locked(folder: Path) -> bool:
    """Whether a process is working in the folder."""
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
    """The run in a folder, or the only unfinished one below it.

    Args:
        place: The folder of a run, or a folder above it.
        seed: Which of several, by its seed.
    """
    runs = [run for run in find_runs([place]) if run == place or seed in (None, read_config(run).seed)]
    if not runs:
        raise InputError(f"{place} contains no run with seed {seed}: leave --seed out, or give another")
    runs = [run for run in runs if not is_done(run)] or runs
    if len(runs) > 1:
        state = "finished" if is_done(runs[0]) else "unfinished"
        raise InputError(f"{place} contains {len(runs)} {state} runs, {', '.join(map(str, runs))}: give one of them")
    return runs[0]


def enter(folder: Path, config: RunConfig, resume: bool) -> None:
    """Compare a configuration with that of the run in the folder, if there is one."""
    if not has_config(folder):
        if checkpoint_places(folder):
            raise InputError(f"{folder} has checkpoints but no {CONFIG}: bring it back, or choose another --out")
        return
    check_config(folder, config)
    if not resume:
        raise InputError(
            f"{folder} contains this run already: resume it with {resume_command(folder)}, or choose another --out"
        )


def check_config(folder: Path, config: RunConfig) -> None:
    """Refuse a configuration that differs from that of the run in a folder."""
    if differences := read_config(folder).differences(config):
        raise InputError(
            f"{folder} is another run ({', '.join(differences)}): leave these options out to resume it, or choose "
            "another --out"
        )


def begin(folder: Path, config: RunConfig, images: str, inputs: Inputs, made_with: dict[str, str]) -> None:
    """Write `config.json` of a new run; for a run that is resumed, check that it has the same training images.

    Args:
        folder: The folder of the run.
        config: Its configuration.
        images: A digest of its training images.
        inputs: What its network expects.
        made_with: Versions of what computes here.
    """
    if not has_config(folder):
        write_json(folder / CONFIG, RunFile(config, inputs, images, made_with).to_json())
    elif read_run_file(folder).images != images:
        raise InputError(
            f"{config.data} has other images than those that {folder} was started with: bring them back, or choose "
            "another --out"
        )


def has_config(folder: Path) -> bool:
    """Whether a folder contains a run or a saved network; a run of version 0.1 is refused."""
    if (folder / CONFIG).exists():
        return True
    if (folder / "spec.json").exists():
        raise InputError(
            f"{folder} is a run of cascaded 0.1, which this version does not read: train it again, or use cascaded 0.1"
        )
    return False


def read_run_file(folder: Path) -> RunFile:
    """The `config.json` of a run or of a saved network."""
    if not has_config(folder):
        raise InputError(f"{folder} contains no run, there is no {CONFIG}: give OUT/SEED of a cascaded train")
    content = read_json(folder / CONFIG)
    if isinstance(content, dict) and "spec" in content:
        raise InputError(
            f"{folder} is a network of cascaded 0.1, which this version does not read: train it again and save it"
        )
    if isinstance(content, dict) and str(content.get("format")).startswith("cascaded export"):
        raise InputError(
            f"{folder} is an exported network, for {program()} serve, live and cascaded.runtime.Runner: give the run "
            "that it was exported from"
        )
    try:
        return RunFile.from_json(content)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise InputError(
            f"{folder / CONFIG} does not describe a run ({readable(str(error))}): it is damaged"
        ) from error


def read_config(folder: Path) -> RunConfig:
    """The configuration of a run or of a saved network."""
    return read_run_file(folder).config


def read_inputs(folder: Path) -> Inputs:
    """What the network of a run expects."""
    return read_run_file(folder).inputs


def weights_file(folder: Path) -> Path | None:
    """The weights of a run (its newest intact checkpoint) or of a saved network; None if there are none."""
    for place in reversed(checkpoint_places(folder)):
        if is_whole(place):
            return place / WEIGHTS
    return folder / WEIGHTS if (folder / WEIGHTS).exists() else None


def weights_digest(folder: Path) -> str | None:
    """SHA-256 of the weights of a run or of a saved network; None if there are none."""
    file = weights_file(folder)
    return None if file is None else sha256(file)


def resolve_init(config: RunConfig) -> tuple[RunConfig, Path | None]:
    """A configuration whose `init_from` is a path, with the SHA-256 of the weights in its place; and that path."""
    if config.init_from is None or re.fullmatch("[0-9a-f]{64}", config.init_from):
        return config, None
    run = Path(config.init_from)
    read_config(run)
    if (weights := weights_digest(run)) is None:
        raise InputError(f"--init-from is {run}, which has no checkpoint yet: train it first")
    return replace(config, init_from=weights), run


def checkpoint_places(folder: Path) -> list[Path]:
    """The finished checkpoints of a run, oldest first."""
    found = (folder / "checkpoints").glob(f"*/{MANIFEST}")
    return sorted(manifest.parent for manifest in found if manifest.parent.name.isdigit())


def manifest_of(digests: Mapping[str, str]) -> bytes:
    """The content of a manifest, to the byte, so that changes of the manifest itself are detected as well."""
    return (json.dumps({"format": 1, "sha256": dict(digests)}, indent=2) + "\n").encode()


def is_whole(place: Path) -> bool:
    """Whether a checkpoint is intact."""
    try:
        return (place / MANIFEST).read_bytes() == manifest_of({name: sha256(place / name) for name in PARTS})
    except OSError:
        return False


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The metrics of a run, one record per epoch; a last line that is still being written is left out."""
    file = folder / METRICS
    try:
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        return [dict(json.loads(line)) for line in lines if line.endswith("\n")]
    except (OSError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{file} is not one line of JSON per epoch ({error}): it is damaged, remove it") from error


def last_metrics(folder: Path) -> dict[str, Any] | None:
    """The last line of a run's metrics."""
    known = read_metrics(folder)
    return known[-1] if known else None


def find_runs(places: Sequence[Path]) -> list[Path]:
    """The runs and saved networks in or below some folders, in order; each folder must contain at least one."""
    found: list[Path] = []
    for place in places:
        if place.is_file():
            raise InputError(f"{place} is a file: give the folder of a run, such as runs/td0/0")
        if not place.is_dir():
            raise InputError(f"there is no folder {place}: give the folder of a run, such as runs/td0/0")
        below = sorted(file.parent for file in place.glob(f"**/{CONFIG}"))
        for old in place.glob("**/spec.json"):
            has_config(old.parent)
        if not below:
            raise InputError(f"{place} contains no run, no {CONFIG} is in or below it: train one with cascaded train")
        known = {run.resolve() for run in found}
        found += [run for run in below if run.resolve() not in known]
    return found


def is_done(folder: Path) -> bool:
    """Whether a run has ended and its last checkpoint is of its last step, and intact; or it is a saved network."""
    if not has_config(folder):
        return False
    if (folder / WEIGHTS).exists():
        return True
    last = last_metrics(folder)
    if last is None:
        return False
    if not all(type(last.get(name)) is int for name in ("epoch", "step")):
        raise InputError(f"the last line of {folder / METRICS} has no epoch and step: it is damaged, remove it")
    if last["epoch"] < read_config(folder).epochs:
        return False
    places = [place for place in checkpoint_places(folder) if int(place.name) == last["step"]]
    return bool(places) and is_whole(places[0])
