"""Who is analysed: a run with its traces, or the folds of a cross-validation as one."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from cascaded.errors import InputError
from cascaded.results.asked import is_fine
from cascaded.traces.store import Header, load_trace, read_header
from cascaded.traces.trace import Trace, joined
from cascaded.training.checkpoint import DamagedError, newest
from cascaded.training.config import Spec
from cascaded.training.load import digest
from cascaded.training.method import TD
from cascaded.training.runs import find_runs, is_done, last_metrics, read_spec


@dataclass(frozen=True)
class Found:
    """A trace that was recorded: the files of all folds where there are several, and the header of the first."""

    name: str
    files: tuple[Path, ...]
    header: Header
    digest: str
    items: int

    @property
    def images(self) -> int:
        """How many there are, each counted once."""
        return self.items // self.header.origin.trials

    @property
    def what(self) -> str:
        """What was asked of the network, whatever its schedule: `cifar10 test, 9 cycles, 10000 images`."""
        origin, noise = self.header.origin, self.header.origin.noise
        fine = is_fine(origin.kernel)
        time = f"{origin.kernel}, {self.header.steps} steps" if fine else f"{self.header.steps} cycles"
        if noise is not None:
            time = f"{noise.protocol} {noise.name}" + (f", {origin.kernel}" if fine else "")
        return f"{origin.data} {origin.split}, {time}, {self.images} image{'' if self.images == 1 else 's'}"

    def load(self) -> Trace:
        """The trace; of folds, all of them joined."""
        traces = self.parts()
        return traces[0] if len(traces) == 1 else joined(traces)

    def parts(self) -> list[Trace]:
        """The trace of every fold."""
        return [load_trace(file) for file in self.files]


@dataclass(frozen=True)
class Subject:
    """A trained network, or those of a cross-validation that together have judged every image once.

    Attributes:
        runs: The folder of the run, or of every fold's.
        spec: What the run is; of folds, what they have in common.
        file: Where its results are kept.
    """

    runs: tuple[Path, ...]
    spec: Spec
    file: Path

    @property
    def name(self) -> str:
        """As people say it: its folder, and how many folds."""
        return self.file.parent.as_posix() + (f" ({len(self.runs)} folds)" if len(self.runs) > 1 else "")

    @property
    def label(self) -> str:
        """Model and lambda: `cascaded-td(0)`."""
        return f"{self.spec.model}({self.lam})" if self.lam else self.spec.model

    @property
    def lam(self) -> str:
        """Its lambda, or those it ran through, `1:0`; empty where its loss has none."""
        loss = self.spec.method.loss
        return ":".join(f"{each:g}" for each in loss.knots) if isinstance(loss, TD) else ""

    @cached_property
    def has_test(self) -> bool:
        """Whether its data has a test split: a finished run without one has no test accuracy."""
        if any(found.header.origin.known and found.header.origin.split == "test" for found in self.traces):
            return True
        return not is_done(self.runs[0]) or "test" in (last_metrics(self.runs[0]) or {})

    @property
    def traces(self) -> list[Found]:
        """What was recorded of the network as it is now; of folds, what was recorded of all of them."""
        return self._looked[0]

    @property
    def passed_over(self) -> dict[str, str]:
        """Files among the traces that cannot be used, and why."""
        return self._looked[1]

    @cached_property
    def _looked(self) -> tuple[list[Found], dict[str, str]]:
        found, passed = [], {}
        weights = [weights_of(run) for run in self.runs]
        for name in sorted({file.name for run in self.runs for file in (run / "traces").glob("*.safetensors")}):
            looked = look([run / "traces" / name for run in self.runs], weights)
            if isinstance(looked, Found):
                found.append(looked)
            else:
                passed[Path(name).stem] = looked
        return found, passed


def look(files: Sequence[Path], weights: Sequence[str | None]) -> Found | str:
    """A trace by its files, one a fold, held against the networks that are there now; or why it cannot be used."""
    try:
        return _look(files, weights)
    except InputError as error:
        return str(error)


def _look(files: Sequence[Path], weights: Sequence[str | None]) -> Found:
    there = [file for file in files if file.exists()]
    if len(there) < len(files):
        raise InputError(
            f"{there[0].name} is recorded of {len(there)} of {len(files)} folds: the same cascaded crossval again "
            "records the others"
        )
    headers = [read_header(file) for file in files]
    for file, header, now in zip(files, headers, weights, strict=True):
        if now is not None and header.origin.weights != now:
            raise InputError(
                f"{file} is of weights {header.origin.weights[:12]}, the run's last checkpoint has {now[:12]}: record "
                "it with --again"
            )
    if len(files) > 1 and headers[0].origin.split != "validation":
        raise InputError(f"{files[0].name} shows all folds the same images, and cannot be joined: look at one fold")
    made_from = hashlib.sha256(repr(headers).encode()).hexdigest()  # of values and of what is told of them
    return Found(files[0].stem, tuple(files), headers[0], made_from, sum(header.items for header in headers))


def weights_of(run: Path) -> str | None:
    """The digest of a run's newest weights; None where there are none to hold a trace against."""
    try:
        found = newest(run)
    except DamagedError:
        return None
    return None if found is None else digest(found.model)


def find_subjects(places: Sequence[Path]) -> list[Subject]:
    """Everything in or below some folders that can be analysed. Folds that are not all there stand each for itself."""
    folds: dict[Path, list[Path]] = {}
    subjects: dict[Path, Subject] = {}
    for run in find_runs(places):
        spec = read_spec(run)
        subjects[run] = Subject((run,), spec, run / "results.json")
        if spec.fold is not None:  # OUT/MODEL/foldKofN/SEED
            folds.setdefault(run.parent.parent / f"results-{spec.fold[1]}folds-{spec.seed}.json", []).append(run)
    for file, runs in folds.items():
        specs = [subjects[run].spec for run in runs]
        if len({spec.fold for spec in specs}) == (specs[0].fold or (0, 0))[1]:
            whole = Subject(tuple(runs), replace(specs[0], fold=None), file)
            subjects = {run: subject for run, subject in subjects.items() if run not in runs} | {runs[0]: whole}
    return list(subjects.values())


def place_in(folder: Path, subject: Subject) -> str:
    """A subject by its place below a folder: however that folder is called, and wherever it is moved."""
    return Path(os.path.relpath(subject.file.resolve(), folder.resolve())).as_posix()


def comparison_file(subjects: Sequence[Subject]) -> Path:
    """Where the comparison of some subjects is kept: in the folder that holds them all, or here if that is the root."""
    common = Path(os.path.commonpath([subject.file.parent.resolve() for subject in subjects]))
    return (common if len(common.parts) > 2 else Path()) / "comparison.json"
