"""What some runs have to show: everything that was answered of them, grouped, and how they compare."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cascaded.errors import InputError
from cascaded.exhibits.names import PAPER, spoken
from cascaded.files import check_digest, parsing, read_json
from cascaded.results.answers import fingerprints, read_answers, read_results
from cascaded.results.asked import Asked, Row
from cascaded.results.groups import Condition, Group, conditions, grouped
from cascaded.results.subjects import Subject, comparison_file, find_subjects, place_in
from cascaded.results.summary import FORMAT
from cascaded.shell import program

Answer = tuple[Asked, dict[str, Any]]


@dataclass(frozen=True)
class Material:
    """Runs with all that is known of them.

    Attributes:
        places: What the user named, for commands to type.
        subjects: The runs, or whole cross-validations.
        conditions: What stands in one colour: runs that differ in their seed alone, under one schedule.
        comparison: What `cascaded analyse` wrote about all of them; empty where it did not.
        uncompared: Why there is no comparison; empty where there is.
    """

    places: tuple[Path, ...]
    subjects: tuple[Subject, ...]
    conditions: tuple[Condition[Asked], ...]
    comparison: dict[str, Any]
    uncompared: str

    @property
    def words(self) -> str:
        """The runs, as one types them."""
        return " ".join(shlex.quote(str(place)) for place in self.places)

    @property
    def data(self) -> str:
        """The data of the first run, with what else its images depend on, as options of `train` and `sweep`."""
        config = self.subjects[0].config
        given = {
            "data": config.data,
            "image-size": config.image_size,
            "image-column": config.image_column,
            "label-column": config.label_column,
        }
        words = [word for name, value in given.items() if value is not None for word in (f"--{name}", str(value))]
        return shlex.join([*words, *(("--classes", *config.classes) if config.classes else ())])

    @cached_property
    def names(self) -> dict[str, str]:
        """What every condition is called, by its label."""
        return {each.label: spoken(each.label) for each in self.conditions}

    @cached_property
    def _results(self) -> dict[Path, dict[str, Any]]:
        return {subject.file: read_results(subject.file) for subject in self.subjects}

    def results(self, subject: Subject) -> dict[str, Any]:
        """What `results.json` of a subject says, read once."""
        return self._results[subject.file]

    def rows(self, analysis: str, noise: str | None = None) -> list[Asked]:
        """What an analysis was asked, once each; validation images only of models that have seen no others of the data.

        Args:
            analysis: Its name.
            noise: Only what was recorded under this noise.
        """
        found: dict[Row, Asked] = {}
        for condition in self.conditions:
            shown = rows_of(condition, analysis, noise)
            found |= {asked.row: asked for asked in shown if asked.row not in found}
        return sorted(found.values(), key=lambda asked: asked.is_fine)  # whole steps first

    def answers(self, row: Row) -> dict[str, dict[int, dict[str, Any]]]:
        """What was answered, by condition and seed."""
        told = {
            each.label: {seed: by_row[row][1] for seed, by_row in sorted(each.by_seed.items()) if row in by_row}
            for each in self.conditions
        }
        return {label: by_seed for label, by_seed in told.items() if by_seed}

    def seeds_of(self, label: str, row: Row) -> set[int]:
        """The seeds whose answers to something stand together under a label."""
        return {seed for seed, by_row in self._condition(label).by_seed.items() if row in by_row}

    def runs_of(self, label: str, row: Row, seeds: Collection[int] | None = None) -> tuple[str, ...]:
        """Their runs; where some seeds are named, of these alone."""
        known = self._condition(label).group.by_seed
        shown = self.seeds_of(label, row) & (set(known) if seeds is None else set(seeds))
        return tuple(known[seed].subject.name for seed in sorted(shown))

    def _condition(self, label: str) -> Condition[Asked]:
        return next(each for each in self.conditions if each.label == label)

    def told(self, asked: Asked) -> list[dict[str, Any]]:
        """All answers to one question, whoever gave them."""
        return [result for by_seed in self.answers(asked.row).values() for result in by_seed.values()]

    def tables(self, analysis: str, metric: str) -> list[dict[str, Any]]:
        """The comparisons of one figure, a table for every row that is shown."""
        shown = {asked.row for asked in self.rows(analysis)}
        tables = [table for table in self.comparison.get("tables", []) if table.get("metric") == metric]
        return [table for table in tables if row_of(table) in shown]


BOTH = ("prototypicality",)
"""Analyses whose measures are of training images or of test images, so that either says what the other cannot."""


def rows_of(condition: Condition[Asked], analysis: str, noise: str | None = None) -> list[Asked]:
    """What one model was asked, once each; validation images only where it has seen no others of the data."""
    asked = {each.row: each for by_row in condition.by_seed.values() for each, _ in by_row.values()}
    own = [each for each in asked.values() if each.analysis == analysis and noise in (None, each.noise)]
    if analysis in BOTH:
        return own
    tested = {each.data for each in own if each.split != "validation"}
    return [each for each in own if each.split != "validation" or each.data not in tested]


def row_of(table: dict[str, Any]) -> Row:
    """What a table of a comparison is of."""
    return table.get("analysis", ""), table.get("of", ""), table.get("images", ""), table.get("shown", "")


OTHER = ", other schedule"


def role(condition: Condition[Asked]) -> tuple[str, str]:
    """Which of the paper's models a condition is, and its lambda; under another schedule than its own it is another."""
    first = condition.group.first
    return first.config.method + ("" if condition.label == condition.group.label else OTHER), first.lam


def gather(places: Sequence[Path], compared: Path | None = None) -> Material:
    """Everything there is about some runs, from their results; no trace is read.

    Args:
        places: Folders of runs, or folders that hold some.
        compared: Where they were compared, perhaps with others beside them; in their common folder by default.
    """
    subjects = find_subjects(places)
    found = grouped([read_answers(subject) for subject in subjects])
    shown = conditions(found)
    bare = [Condition(group.label, group, {}) for group in found if group.label not in {each.label for each in shown}]
    comparison, why = {}, "there is one run"
    if len(subjects) > 1 or compared is not None:
        comparison, why = _comparison(subjects, found, compared or comparison_file(subjects))
    ordered = sorted((*shown, *bare), key=_place)
    return Material(tuple(places), tuple(subjects), tuple(ordered), comparison, why)


def _place(condition: Condition[Asked]) -> tuple[int, str]:
    """Where a model stands among others: as the paper names them, by lambda."""
    model, lam = role(condition)
    known = list(PAPER)
    model = model.partition(",")[0]
    return known.index(model) if model in known else len(known), lam


def _comparison(subjects: Sequence[Subject], groups: Sequence[Group[Asked]], file: Path) -> tuple[dict[str, Any], str]:
    """What was written about all of these subjects, as their results are now; or why that is not so."""
    if not file.exists():
        return {}, "these runs have not been compared"
    told = read_json(file)
    if not isinstance(told, dict) or told.get("format") != FORMAT or not isinstance(told.get("made_from"), dict):
        raise InputError(f"{file} is no comparison that this cascaded reads: {program()} analyse writes it anew")
    check_digest(file, told, f"{program()} analyse writes it anew")
    with parsing(file, f"{program()} analyse writes it anew"):
        for each in (told.get("groups", {}), *told["made_from"].values(), *told.get("tables", [])):
            if not isinstance(each, dict):
                raise TypeError(f"{each!r:.40} has no keys")
    for subject in subjects:
        place = place_in(file.parent, subject)
        if place not in told["made_from"]:
            return {}, f"{file} does not know {subject.name}"
        now = fingerprints(subject)
        if any(now.get(name) != then for name, then in told["made_from"][place].items()):
            return {}, f"{subject.name} was analysed again after {file} was written"
    for group in groups:  # of more runs, whose names and means may be others
        if told.get("groups", {}).get(group.label) != sorted(group.by_seed):
            return {}, f"{file} is of other runs beside those of {group.label}"
    return told, ""
