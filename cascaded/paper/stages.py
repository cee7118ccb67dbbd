"""Training, recording, analysing: the stages between a plan and what it gives. Each leaves alone what is done."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from cascaded.errors import InputError
from cascaded.files import read_json, write_whole
from cascaded.progress import print_line
from cascaded.traces.config import RecordingConfig
from cascaded.training.sweep import Job

if TYPE_CHECKING:
    from rich.console import Console


COMPARISON = "comparison.json"


def train_all(asked: Sequence[Job], jobs: int | None) -> None:
    """Train networks side by side, all of them to the end.

    Args:
        asked: The runs.
        jobs: Runs at a time; as many as there are cores by default.
    """
    from cascaded.cli.sweep import train_jobs
    from cascaded.training.runs import is_done

    train_jobs(asked, num_workers=jobs)
    if going := [job.folder for job in asked if not is_done(job.folder)]:
        raise InputError(
            f"{len(going)} of {len(asked)} networks are not trained to the end, the first in {going[0]}, another "
            "process is at it: wait for it, then the same command goes on"
        )


def record_all(folder: Path, shown: Sequence[RecordingConfig]) -> None:
    """Show one network everything, in a process of its own; what is recorded already is left as it is."""
    from cascaded.traces.record import record
    from cascaded.training.distributed import choose_device
    from cascaded.training.load import load_run

    run = load_run(folder, choose_device("auto"))
    for each in shown:
        record(run, each)


def analyse_all(folder: Path, epochs: int, names: Sequence[str] = ()) -> None:
    """Answer some questions about one network, all by default; what is answered already is left as it is."""
    from cascaded.results.answers import answer_all
    from cascaded.results.questions import Settings
    from cascaded.results.registry import ANALYSES
    from cascaded.results.subjects import find_subjects

    for subject in find_subjects([folder]):
        for _ in answer_all(subject, list(names or ANALYSES), Settings(epochs=epochs)):
            pass


def trained_in(place: Path) -> list[Path]:
    """The runs below a folder that are trained to the end: others have nothing to be held against yet."""
    from cascaded.training.runs import find_runs, is_done

    return [run for run in find_runs([place]) if is_done(run)]


def _is_compared(place: Path) -> bool:
    """Whether all trained runs in a folder were compared, by all that they have answered."""
    from cascaded.results.answers import fingerprints
    from cascaded.results.subjects import find_subjects, place_in

    subjects, known = find_subjects(trained_in(place)), place / COMPARISON
    told = read_json(known) if known.exists() else {}
    made_from = told.get("made_from", {}) if isinstance(told, dict) else {}
    return made_from == {place_in(known.parent, subject): fingerprints(subject) for subject in subjects}


def compare(place: Path, epochs: int, file: Path, console: Console) -> None:
    """Hold analysed networks against each other; the tables, too much for a terminal, go to a file.

    Args:
        place: The folder that holds the runs.
        epochs: For which stopper and MetaCog were trained.
        file: Where the tables go.
        console: Who is told what could not be answered.
    """
    from cascaded.cli.analyze import compare_runs
    from cascaded.results.questions import Settings

    if file.exists() and _is_compared(place):
        return
    told = io.StringIO()
    try:
        with redirect_stdout(told):
            compare_runs(trained_in(place), Settings(epochs=epochs), place / COMPARISON)
    except InputError as error:  # an analysis without an answer does not keep the others from being shown
        print_line(console, f"not everything could be answered: {error}")
    write_whole(file, lambda part: part.write_text(told.getvalue()))
