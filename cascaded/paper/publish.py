"""Copy what finished networks of a queue have measured, without their weights, to a folder that can be committed."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from cascaded.errors import InputError
from cascaded.paper.work import DONE, WORK, Done, Work, has_weights
from cascaded.training.run_file import CONFIG
from cascaded.training.runs import METRICS, check_config, has_config, read_config


def publish(runs: Path, folder: Path) -> list[str]:
    """Copy configuration, metrics, results and `done.json` of every finished network; returns their names.

    A queue whose OUT/runs is a copy of the folder counts these networks as done. Networks that are in the folder
    already are replaced, others stay.

    Args:
        runs: The folder of all runs, OUT/runs.
        folder: Where to copy them, in folders of the same names.
    """
    finished = _finished(runs)
    for work in finished:
        if has_config(work.path) and has_config(target := folder / work.path.relative_to(runs)):
            check_config(target, read_config(work.path))  # another network is not replaced
    for work in finished:
        for fold in work.folds:
            _copy(Path(fold), folder / Path(fold).relative_to(runs))
        _publish(work.path, folder / work.path.relative_to(runs), runs)
    return [work.path.relative_to(runs).as_posix() for work in finished]


def _finished(runs: Path) -> list[Work]:
    """The work that is done, or cannot go on because the weights were deleted.

    A network that was published before and copied back has `done.json`, but no `work.json` as long as it is done.
    """
    works = []
    for folder in sorted(file.parent for file in runs.rglob(DONE)):
        work = Work.read(folder) if (folder / WORK).exists() else Work(str(folder))
        before = work.path.parent  # the runs may have been moved since
        folds = tuple(str(folder.parent / Path(fold).relative_to(before)) for fold in work.folds)
        work = replace(work, folder=str(folder), folds=folds)
        if work.is_done() or not (work.folds or has_weights(folder)):
            works.append(work)
    if not works:
        raise InputError(f"no network in {runs} is finished: publish them once the queue has finished one")
    return works


def _publish(source: Path, target: Path, runs: Path) -> None:
    """Copy a network; `done.json` comes last, so that one that is copied in part is not done."""
    (target / DONE).unlink(missing_ok=True)
    shutil.rmtree(target / "results", ignore_errors=True)
    (target / "results").mkdir(parents=True)
    for file in sorted((source / "results").glob("*.parquet")):
        shutil.copyfile(file, target / "results" / file.name)
    _copy(source, target)
    done = Done.read(source)
    notes = tuple(note.replace(f"{runs}/", "") for note in done.notes)
    replace(done, keep="weights", notes=notes).write(target)  # weights that are copied back are not deleted


def _copy(source: Path, target: Path) -> None:
    """Copy configuration and metrics; joined folds have none."""
    target.mkdir(parents=True, exist_ok=True)
    for name in (CONFIG, METRICS):
        if (source / name).exists():
            shutil.copyfile(source / name, target / name)
