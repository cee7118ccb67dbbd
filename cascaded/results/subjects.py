"""Who is analysed: a run with its traces, or the folds of a cross-validation as one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from cascaded.errors import InputError
from cascaded.learning.method import TD
from cascaded.learning.runs import find_runs, read_spec
from cascaded.learning.spec import Spec
from cascaded.trace.store import Header, load_trace, read_header
from cascaded.trace.trace import Trace, joined


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
        loss = self.spec.method.loss
        return (
            f"{self.spec.model}({':'.join(f'{each:g}' for each in loss.knots)})"
            if isinstance(loss, TD)
            else (self.spec.model)
        )

    @cached_property
    def traces(self) -> list[Found]:
        """What was recorded; of folds, what was recorded of all of them."""
        names = sorted({file.name for run in self.runs for file in (run / "traces").glob("*.safetensors")})
        found = []
        for name in names:
            files = [run / "traces" / name for run in self.runs]
            if all(file.exists() for file in files):
                headers = [read_header(file) for file in files]
                if len(files) > 1 and headers[0].origin.split != "validation":
                    continue  # all folds have judged the same images: such traces cannot be joined
                digest = hashlib.sha256(repr(headers).encode()).hexdigest()  # of values and of what is told of them
                items = sum(header.items for header in headers)
                found.append(Found(Path(name).stem, tuple(files), headers[0], digest, items))
        return found


def find_subjects(places: Sequence[Path]) -> list[Subject]:
    """Everything in or below some folders that can be analysed."""
    subjects: dict[tuple[Path, Spec], Subject] = {}
    for run in find_runs(places):
        spec = read_spec(run)
        if spec.fold is None:
            subjects[run / "results.json", spec] = Subject((run,), spec, run / "results.json")
            continue
        home, folds = run.parent.parent, spec.fold[1]  # OUT/MODEL/foldKofN/SEED
        key = (home / f"results-{folds}folds-{spec.seed}.json", replace(spec, fold=None))
        before = subjects.get(key)
        subjects[key] = Subject((*(before.runs if before else ()), run), key[1], key[0])
    for subject in subjects.values():
        _check_folds(subject)
    return list(subjects.values())


def _check_folds(subject: Subject) -> None:
    """Of a cross-validation all folds are there: what one has not seen, no other can stand for."""
    fold = read_spec(subject.runs[0]).fold
    if fold is not None and len(subject.runs) != fold[1]:
        raise InputError(
            f"{subject.file.parent} holds {len(subject.runs)} of {fold[1]} folds: the same cascaded crossval again "
            "trains and records the others"
        )
