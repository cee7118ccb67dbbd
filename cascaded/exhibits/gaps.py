"""What is not there: which analyses some runs lack, and the commands that would fill them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from cascaded.exhibits.kinds import Missing
from cascaded.exhibits.material import Material
from cascaded.results.answers import read_results
from cascaded.results.registry import ANALYSES
from cascaded.results.subjects import Subject

RUN = "\0"
"""Stands for the runs in a command until it is known which."""


def gaps(material: Material, *names: str) -> tuple[Missing, ...]:
    """What is missing of some analyses, a line for each thing that would have to be done.

    Args:
        material: The runs.
        names: The analyses.
    """
    found = []
    for name in names:
        wanted: dict[str, list[Subject]] = {}
        for subject in material.subjects:
            for command in _wanting(subject, name):
                wanted.setdefault(command, []).append(subject)
        for command, subjects in wanted.items():
            found.append(Missing(_told(name, subjects, material), _filled(command, subjects, material)))
    return tuple(found)


def _wanting(subject: Subject, name: str) -> list[str]:
    """The commands that would answer a question about a subject, with its run left open; none where it is answered."""
    told = read_results(subject.file)
    if told.get("analyses", {}).get(name) or name in told.get("refused", {}):
        return []
    if name not in told.get("missing", {}):
        return [f"cascaded analyse {RUN} --only {name}"]
    run = shlex.quote(subject.runs[0].as_posix())
    return [each.strip().replace(run, RUN) for each in str(told["missing"][name]).split(";")]


def _told(name: str, subjects: list[Subject], material: Material) -> str:
    about = f"{name.replace('_', ' ')}: {ANALYSES[name].about}"
    whole = len(subjects) == len(material.subjects)
    return about if whole else f"{about} (of {len(subjects)} of {len(material.subjects)} runs)"


def _filled(command: str, subjects: list[Subject], material: Material) -> str:
    """A command for the runs it is meant for; for all of them, as the user named them."""
    if len(subjects) == len(material.subjects):
        return command.replace(RUN, material.words)
    runs = (run for subject in subjects for run in subject.runs)
    return command.replace(RUN, " ".join(shlex.quote(run.as_posix()) for run in runs))


def refusals(material: Material, *names: str) -> tuple[str, ...]:
    """What was asked and could not be answered, and traces that were passed over, a sentence each."""
    found: dict[str, None] = {}
    for subject in material.subjects:
        told = read_results(subject.file)
        for name in names:
            for of, why in told.get("refused", {}).get(name, {}).items():
                found[f"{subject.name}, {of}: {why}"] = None
    return tuple(found)


def passed_over(subjects: Iterable[Subject]) -> tuple[str, ...]:
    """Traces that were there when the runs were analysed, and could not be used."""
    return tuple(
        f"{subject.name}, {of}: {why}"
        for subject in subjects
        for of, why in read_results(subject.file).get("passed_over", {}).items()
    )
