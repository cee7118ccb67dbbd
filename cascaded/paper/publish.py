"""Copy what finished networks of a queue have measured to a folder that can be committed; on request with weights."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from cascaded.errors import InputError
from cascaded.paper.work import DONE, WORK, Done, Work, has_weights
from cascaded.training.rounded import trained_weights, write_rounded
from cascaded.training.run_file import CONFIG
from cascaded.training.runs import METRICS, check_config, has_config, read_config


def publish(runs: Path, folder: Path, weights: bool = False) -> dict[str, bool]:
    """Copy configuration, metrics, results and `done.json` of every finished network.

    Returns by name whether the weights of a network are in the folder.

    A queue whose OUT/runs is a copy of the folder counts these networks as done. Networks that are in the folder
    already are replaced, others stay.

    Args:
        runs: The folder of all runs, OUT/runs.
        folder: Where to copy them, in folders of the same names.
        weights: Also store the weights that there are, rounded to half precision.
    """
    finished = _finished(runs)
    for work in finished:
        for run in (*map(Path, work.folds), work.path):
            _check_target(run, folder / run.relative_to(runs))
    found = {}
    for work in finished:
        for fold in map(Path, work.folds):
            _copy(fold, folder / fold.relative_to(runs), weights)
        _publish(work.path, folder / work.path.relative_to(runs), runs, weights)
        copies = [folder / Path(run).relative_to(runs) for run in work.folds or [work.folder]]
        found[work.path.relative_to(runs).as_posix()] = all(map(has_weights, copies))
    return found


def _check_target(run: Path, target: Path) -> None:
    """Another network is not replaced, and neither are the weights of another training."""
    if not (has_config(run) and has_config(target)):
        return
    check_config(target, read_config(run))
    here, there = trained_weights(run), trained_weights(target)
    if here and there and here != there:
        raise InputError(
            f"{target} has weights {there[:12]} of another training than {run}, {here[:12]}: remove it, or publish to "
            "another folder"
        )


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


def _publish(source: Path, target: Path, runs: Path, weights: bool) -> None:
    """Copy a network; `done.json` comes last, so that one that is copied in part is not done."""
    (target / DONE).unlink(missing_ok=True)
    shutil.rmtree(target / "results", ignore_errors=True)
    (target / "results").mkdir(parents=True)
    for file in sorted((source / "results").glob("*.parquet")):
        shutil.copyfile(file, target / "results" / file.name)
    _copy(source, target, weights)
    done = Done.read(source)
    notes = tuple(note.replace(f"{runs}/", "") for note in done.notes)
    replace(done, keep="weights", notes=notes).write(target)  # weights that are copied back are not deleted


def _copy(source: Path, target: Path, weights: bool) -> None:
    """Copy configuration and metrics, and round the weights; joined folds have none."""
    target.mkdir(parents=True, exist_ok=True)
    for name in (CONFIG, METRICS):
        if (source / name).exists():
            shutil.copyfile(source / name, target / name)
    if weights:
        write_rounded(source, target)
