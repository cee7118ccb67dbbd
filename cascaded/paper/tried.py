"""What was tried beside a scale: a run that differs from one of its own, and what that changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cascaded.errors import InputError
from cascaded.files import check_types, parsing, read_json, write_json
from cascaded.results.answers import read_results
from cascaded.results.asked import Asked

FORMAT = 1
FILE = "tried.json"


@dataclass(frozen=True)
class Change:
    """A figure that both runs have.

    Attributes:
        of: On which images, in which time.
        what: What was measured.
        before: In the scale's own run.
        after: In the one that was tried.
    """

    of: str
    what: str
    before: float
    after: float


@dataclass(frozen=True)
class Trial:
    """A run that was tried.

    Attributes:
        what: What is different, in a few words.
        command: What trained it.
        run: Its name.
        against: The run of the scale that it is held against.
        changes: Their figures.
    """

    what: str
    command: str
    run: str
    against: str
    changes: tuple[Change, ...]


def changes(run: Path, against: Path, asked_for: Sequence[str] = ()) -> tuple[Change, ...]:
    """The headline figures that two runs have of the same images.

    Args:
        run: The folder of the one that was tried.
        against: The folder of the other.
        asked_for: Which figures; all of them where none is named.
    """
    before, after = _headlines(against), _headlines(run)
    both = [key for key in before if key in after and (not asked_for or key[1] in asked_for)]
    if not both:
        wanted = ", ".join(asked_for) or "no figure"
        raise InputError(f"{run} and {against} do not both have {wanted} of the same images: record and analyse both")
    return tuple(Change(*key, before[key], after[key]) for key in both)


def _headlines(run: Path) -> dict[tuple[str, str], float]:
    """By what was shown and what was measured; what several analyses say is the same."""
    answers = [each for of in read_results(run / "results.json").get("analyses", {}).values() for each in of.values()]
    return {
        (Asked.from_json(each["asked"]).what, name): value
        for each in answers
        for name, value in each["result"]["headline"].items()
    }


def keep_trial(folder: Path, trial: Trial) -> None:
    """Put a trial beside a scale's results; an earlier one of the same run is replaced."""
    others = [each for each in read_trials(folder) if each.run != trial.run]
    write_json(folder / FILE, {"format": FORMAT, "trials": [asdict(each) for each in (*others, trial)]})


def read_trials(folder: Path) -> list[Trial]:
    """What was kept of them; none where there is no file."""
    file = folder / FILE
    if not file.exists():
        return []
    told = read_json(file)
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise InputError(f"{file} holds no trials of format {FORMAT}, the one this cascaded reads: move it away")
    with parsing(file, "move it away"):
        return [_read_trial(each) for each in told["trials"]]


def _read_trial(told: dict[str, Any]) -> Trial:
    for each, kind in ((told, Trial), *((change, Change) for change in told["changes"])):
        check_types({name: value for name, value in each.items() if name != "changes"}, kind)
    return Trial(**{**told, "changes": tuple(Change(**each) for each in told["changes"])})
