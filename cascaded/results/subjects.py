"""Who is analysed: a run with its traces, or the folds of a cross-validation as one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from cascaded.results.asked import is_fine
from cascaded.traces.store import TraceFile, scan_traces
from cascaded.training.config import RunConfig
from cascaded.training.method import TD
from cascaded.training.runs import find_runs, is_done, last_metrics, read_config


def what_of(found: TraceFile) -> str:
    """What was asked of the network, whatever its schedule: `cifar10 test, 9 cycles, 10000 images`."""
    config = found.config
    fine = is_fine(config.kernel)
    time = f"{config.kernel}, {found.header.steps} steps" if fine else f"{found.header.steps} cycles"
    if config.noise is not None:
        time = f"{config.protocol} {config.noise}" + (f", {config.kernel}" if fine else "")
    return f"{config.data} {config.split}, {time}, {found.images} image{'' if found.images == 1 else 's'}"


@dataclass(frozen=True)
class Subject:
    """A trained network, or those of a cross-validation that together have judged every image once.

    Attributes:
        runs: The folder of the run, or of every fold's.
        config: What the run is; of folds, what they have in common.
        file: Where its results are kept.
    """

    runs: tuple[Path, ...]
    config: RunConfig
    file: Path

    @property
    def name(self) -> str:
        """As people say it: its folder, and how many folds."""
        return self.file.parent.as_posix() + (f" ({len(self.runs)} folds)" if len(self.runs) > 1 else "")

    @property
    def label(self) -> str:
        """Model and lambda: `cascaded-td(0)`."""
        return f"{self.config.method}({self.lam})" if self.lam else self.config.method

    @property
    def lam(self) -> str:
        """Its lambda, or those it ran through, `1:0`; empty where its loss has none."""
        loss = self.config.get_method().loss
        return ":".join(f"{each:g}" for each in loss.knots) if isinstance(loss, TD) else ""

    @cached_property
    def has_test(self) -> bool:
        """Whether its data has a test split: a finished run without one has no test accuracy."""
        if any(found.provenance.in_distribution and found.config.split == "test" for found in self.traces):
            return True
        return not is_done(self.runs[0]) or "test" in (last_metrics(self.runs[0]) or {})

    @property
    def traces(self) -> list[TraceFile]:
        """What was recorded of the network as it is now; of folds, what was recorded of all of them."""
        return self._looked[0]

    @property
    def passed_over(self) -> dict[str, str]:
        """Files among the traces that cannot be used, and why."""
        return self._looked[1]

    @cached_property
    def _looked(self) -> tuple[list[TraceFile], dict[str, str]]:
        return scan_traces(self.runs)


def find_subjects(places: Sequence[Path]) -> list[Subject]:
    """Everything in or below some folders that can be analysed. Folds that are not all there stand each for itself."""
    folds: dict[Path, list[Path]] = {}
    subjects: dict[Path, Subject] = {}
    for run in find_runs(places):
        config = read_config(run)
        subjects[run] = Subject((run,), config, run / "results.json")
        if config.fold is not None:  # OUT/MODEL/foldKofN/SEED
            folds.setdefault(run.parent.parent / f"results-{config.fold[1]}folds-{config.seed}.json", []).append(run)
    for file, runs in folds.items():
        configs = [subjects[run].config for run in runs]
        if len({config.fold for config in configs}) == (configs[0].fold or (0, 0))[1]:
            whole = Subject(tuple(runs), replace(configs[0], fold=None), file)
            subjects = {run: subject for run, subject in subjects.items() if run not in runs} | {runs[0]: whole}
    return list(subjects.values())


def place_in(folder: Path, subject: Subject) -> str:
    """A subject by its place below a folder: however that folder is called, and wherever it is moved."""
    return Path(os.path.relpath(subject.file.resolve(), folder.resolve())).as_posix()


def comparison_file(subjects: Sequence[Subject]) -> Path:
    """Where the comparison of some subjects is kept: in the folder that holds them all, or here if that is the root."""
    common = Path(os.path.commonpath([subject.file.parent.resolve() for subject in subjects]))
    return (common if len(common.parts) > 2 else Path()) / "comparison.json"
