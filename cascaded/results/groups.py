"""Which subjects belong together: those that differ in their seed alone."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

from cascaded.errors import InputError
from cascaded.results.asked import Asked, Row
from cascaded.results.questions import Question
from cascaded.results.subjects import Subject

Key = tuple[str, str]  # analysis, and the name of the trace it was asked of
Q = TypeVar("Q", Question, Asked)


@dataclass(frozen=True)
class Answered(Generic[Q]):
    """A subject with everything that was asked of it, and answered.

    Attributes:
        subject: Who was asked.
        answers: What was asked, as a question while the traces are at hand, in words later; and the answer.
    """

    subject: Subject
    answers: Mapping[Key, tuple[Q, dict[str, Any]]]


@dataclass(frozen=True)
class Group(Generic[Q]):
    """Subjects that differ in their seed alone.

    Attributes:
        label: What it is called; no other group is called alike.
        by_seed: Its subjects.
    """

    label: str
    by_seed: Mapping[int, Answered[Q]]

    @property
    def first(self) -> Subject:
        """One of them, for what they have in common."""
        return next(iter(self.by_seed.values())).subject


def grouped(all_answered: Sequence[Answered[Q]]) -> list[Group[Q]]:
    """Subjects by all that they are but their seed. Where two groups would be called alike, their folders tell them."""
    found: dict[str, dict[int, Answered[Q]]] = {}
    for answered in all_answered:
        subject = answered.subject
        by_seed = found.setdefault(kind_of(subject), {})
        if (twin := by_seed.get(subject.config.seed)) is not None:
            raise InputError(
                f"{twin.subject.name} and {subject.name} are one run, seed {subject.config.seed}: give one of them"
            )
        by_seed[subject.config.seed] = answered
    firsts = [next(iter(by_seed.values())).subject for by_seed in found.values()]
    return [Group(label, by_seed) for label, by_seed in zip(labels_of(firsts), found.values(), strict=True)]


def kind_of(subject: Subject, *aside: str) -> str:
    """All that a subject is but its seed, and but what else is named."""
    told = asdict(subject.config)
    # which weights a run begins with goes with its model and seed; that it begins with some is what counts
    config = {**told, "init_from": told["init_from"] is not None, "folds": len(subject.runs)}
    return repr(sorted((name, value) for name, value in config.items() if name not in ("seed", *aside)))


def labels_of(subjects: Sequence[Subject]) -> list[str]:
    """Model and lambda; where that is not enough the folder as well, and where that is not enough all of its path."""
    homes = [subject.file.parent if len(subject.runs) > 1 else subject.file.parent.parent for subject in subjects]
    common = os.path.commonpath([home.resolve() for home in homes])
    names = [subject.label for subject in subjects]
    paths = [os.path.relpath(home.resolve(), common) for home in homes]
    files = [subject.file.resolve().as_posix() for subject in subjects]
    for more in (paths, files):
        often = Counter(names)
        names = [f"{name} {told}" if often[name] > 1 else name for name, told in zip(names, more, strict=True)]
    return names


@dataclass(frozen=True)
class Condition(Generic[Q]):
    """A group under one schedule: what stands in one column.

    Attributes:
        label: The group's; the schedule is told where it is not the model's own, as in SerialCE x 9.
        group: Whose it is.
        by_seed: What was answered, by seed and by what was asked, whatever the schedule.
    """

    label: str
    group: Group[Q]
    by_seed: Mapping[int, Mapping[Row, tuple[Q, dict[str, Any]]]]


def conditions(groups: Sequence[Group[Q]]) -> list[Condition[Q]]:
    """Groups schedule by schedule, so that serial and cascaded networks that saw the same stand in one row."""
    found = []
    for group in groups:
        own = group.first.config.get_method().schedule
        by_schedule: dict[str, dict[int, dict[Row, tuple[Q, dict[str, Any]]]]] = {own: {}}
        for seed, each in group.by_seed.items():
            for question, result in each.answers.values():
                schedule, row = question.schedule, question.row
                by_schedule.setdefault(schedule, {}).setdefault(seed, {})[row] = question, result
        for schedule, by_seed in by_schedule.items():
            label = group.label if schedule == own else f"{group.label}, {schedule}"
            found += [Condition(label, group, by_seed)] if by_seed else []
    return found
