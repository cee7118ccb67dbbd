"""What is not there: which analyses some runs lack, and the commands that would fill them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from cascaded.exhibits.kinds import Missing
from cascaded.exhibits.material import Material
from cascaded.results.questions import Settings
from cascaded.results.registry import ANALYSES, OUTSIDE_SET, missing
from cascaded.results.subjects import Subject

RUN = "\0"
"""Stands for the runs in a command until it is known which."""
COARSE = "cifar100"
"""The data whose classes have a coarser level."""
TRAIN_COARSE = f"cascaded sweep --data {COARSE} --methods cascaded-td cascaded-ce --lam 0 --out runs/{COARSE}"


def gaps(material: Material, *names: str, subjects: Sequence[Subject] = ()) -> tuple[Missing, ...]:
    """What is missing of some analyses, a line for each thing that would have to be done.

    Args:
        material: The runs.
        names: The analyses.
        subjects: Some of the runs; all by default.
    """
    found = []
    for name in names:
        wanted: dict[str, list[Subject]] = {}
        for subject in subjects or material.subjects:
            if commands := _wanting(subject, name, material):
                wanted.setdefault("\n".join(commands), []).append(subject)
        for command, those in wanted.items():
            about = _told(name, those, material)
            runs = command.startswith("cascaded ")  # else it is a sentence: no command would do
            filled = _filled(command, those, material) if runs else ""
            found.append(Missing(about if runs else f"{about}; {command}", filled))
    return tuple(found)


def _wanting(subject: Subject, name: str, material: Material) -> list[str]:
    """What would answer a question about a subject, its run left open: commands, or why there is none.

    Nothing where it is answered. Traces are looked at as they are now: some may be newer than the results.
    """
    told = material.results(subject)
    if told.get("analyses", {}).get(name) or name in told.get("refused", {}):
        return []
    if ANALYSES[name].ask(subject, Settings()):
        return [f"cascaded analyse {RUN} --only {name}"]
    if name == "taxonomic_compliance":
        return [f"cascaded record {RUN}" if subject.config.data == COARSE else TRAIN_COARSE]
    run = shlex.quote(subject.runs[0].as_posix())
    found = [each.strip() for each in missing(subject, name).replace(run, RUN).split(";")]
    if not found[0].startswith("cascaded "):  # a sentence: no command would do
        return found
    return [each.replace(f"--data {OUTSIDE_SET}", f"--data {_outside(material)}") for each in found]


def _outside(material: Material) -> str:
    """Images of another kind that other runs were shown; where there are none, those of the paper's first."""
    known = [
        outside
        for asked in material.rows("out_of_distribution")
        for result in material.told(asked)
        for outside in result.get("pairs", {})
    ]
    return shlex.quote(known[0]) if known else OUTSIDE_SET


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
        told = material.results(subject)
        for name in names:
            for of, why in told.get("refused", {}).get(name, {}).items():
                found[f"{subject.name}, {of}: {why}"] = None
    return tuple(found)


def passed_over(material: Material) -> tuple[str, ...]:
    """Traces that were there when the runs were analysed, and could not be used."""
    return tuple(
        f"{subject.name}, {of}: {why}"
        for subject in material.subjects
        for of, why in material.results(subject).get("passed_over", {}).items()
    )
