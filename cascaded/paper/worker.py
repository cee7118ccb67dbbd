"""The process of one network in the queue: train it, record it, analyze it, experiment by experiment.

python -m cascaded.paper.worker FOLDER --threads 1

FOLDER/work.json contains the work. Finished parts are skipped, interrupted ones resume.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import torch

from cascaded.errors import InputError
from cascaded.hub.locate import NETWORKS
from cascaded.paper.work import DONE, Done, Measurement, Work, has_weights
from cascaded.results.analyzed import Analyzed, find_analyzed
from cascaded.results.gallery_images import write_galleries
from cascaded.results.run import run_analysis
from cascaded.results.tasks import Settings
from cascaded.traces.record import record
from cascaded.training.distributed import be_deterministic, choose_device
from cascaded.training.load import load_run
from cascaded.training.loop import StoppedError, train
from cascaded.training.rounded import rounded_from
from cascaded.training.run_file import WEIGHTS
from cascaded.training.runs import WITH_PARENT, is_done, locked, read_config, resolve_init, weights_digest

PATIENCE = 60.0
"""Seconds to wait for the process of a killed queue, which still finishes its step."""
PARENT_SECONDS = 1.0


def main() -> None:
    """Do the work in a folder; bad input ends in one sentence and exit code 2."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    _stop_with_parent()
    try:
        work(Work.read(given.folder))
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except StoppedError as stopped:
        print(stopped, file=sys.stderr)
        sys.exit(130)


def work(own: Work) -> None:
    """Train a network as far as it is not trained, then measure what is missing."""
    if own.deterministic:
        be_deterministic()
    with locked(own.path / "results", PATIENCE):
        _train(own)
        done = replace(Done.read(own.path), keep=own.keep)
        for name in own.missing():
            start, wanted = time.monotonic(), own.measurements[name]
            files, notes = _record(own, wanted), [*_analyze(own, wanted), *_rounded(own, wanted)]
            done = done.also(name, wanted, files, notes, time.monotonic() - start)
            done.write(own.path)
        done.write(own.path)


def _train(own: Work) -> None:
    if own.shipped:
        shutil.copytree(NETWORKS / own.shipped, own.path, dirs_exist_ok=True)
    if own.config is None or is_done(own.path):
        return
    _check_weights(own.path, ", ".join(own.missing()))
    if own.config.init_from is not None:
        _check_weights(Path(own.config.init_from), str(own.path))
    config, start = resolve_init(own.config)
    train(config, own.path, init_from=start, resume=True)


def _check_weights(folder: Path, users: str) -> None:
    """Refuse a finished network without weights: training it again is for the user to decide."""
    if (folder / DONE).exists() and not has_weights(folder):
        raise InputError(
            f"the weights in {folder} were deleted, and {users} need them: remove the folder to train the network "
            f"again, or copy {WEIGHTS} into it"
        )


def _rounded(own: Work, wanted: Measurement) -> list[str]:
    """What was measured on rounded weights, or on a network that was trained from such."""
    notes, start = [], own.config and own.config.init_from
    if wanted.recordings and any(rounded_from(Path(each)) for each in own.folds or [own.folder]):
        notes.append(f"{own.path}: rows that were added later were measured on weights rounded to half precision")
    if start and rounded_from(Path(start)) and weights_digest(Path(start)) == read_config(own.path).init_from:
        notes.append(f"{own.path}: training started from weights of {start} that are rounded to half precision")
    return notes


def _record(own: Work, wanted: Measurement) -> list[str]:
    """Record what an experiment needs; returns the files."""
    if not wanted.recordings or own.folds:
        return []
    run = load_run(own.path, choose_device("auto"))
    files = [file for config in wanted.recordings for file in record(run, config)]
    return [file.relative_to(own.path).as_posix() for file in files]


def _analyze(own: Work, wanted: Measurement) -> list[str]:
    """Compute the rows of an experiment from all recordings that there are; returns what could not be computed."""
    if not wanted.analyses:
        return []
    analyzed, settings = _analyzed(own), Settings(epochs=own.fit_epochs, claim_draws=own.claim_draws)
    failures = [each for name in wanted.analyses for each in run_analysis(analyzed, name, settings)]
    notes = [f"{each.run}: {each.analysis} of {each.trace} failed, {each.reason}" for each in failures]
    if "selection_latency" in wanted.analyses:
        try:
            write_galleries(analyzed, settings)
        except InputError as error:
            notes.append(f"no gallery of {own.path}: {error}")
    return notes


def _analyzed(own: Work) -> Analyzed:
    """The run with its recordings, or all folds."""
    (found,) = find_analyzed([Path(each) for each in own.folds] or [own.path])
    return found


def _stop_with_parent() -> None:
    """Stop with SIGTERM when the queue has ended: training saves its state, everything else resumes."""
    parent = os.environ.get(WITH_PARENT)

    def watch() -> None:
        while parent == str(os.getppid()):
            time.sleep(PARENT_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    if parent is not None:
        threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    main()
