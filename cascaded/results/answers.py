"""Ask everything that the traces allow, once: what was answered from the same traces is not computed again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from cascaded.errors import InputError
from cascaded.files import read_json, write_json
from cascaded.results.questions import Question, Settings
from cascaded.results.registry import ANALYSES, Analysis, missing
from cascaded.results.subjects import Subject

FORMAT = 1


def read_results(file: Path) -> dict[str, Any]:
    """What was answered before; nothing where there is no file."""
    if not file.exists():
        return {}
    told = read_json(file)
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise InputError(f"{file} holds no results of format {FORMAT}, the one this cascaded reads: move it away")
    return told


def answer_all(
    subject: Subject, names: Sequence[str], settings: Settings, again: bool = False
) -> Iterator[tuple[Question, dict[str, Any]]]:
    """Every question and its answer; `results.json` is brought up to date after each of them."""
    before = read_results(subject.file).get("analyses", {})
    for name in names:
        analysis = ANALYSES[name]
        asked = analysis.ask(subject, settings)
        _update(subject, lambda told, name=name, asked=asked: _keep(told, subject, name, asked))
        for question in asked:
            known = before.get(name, {}).get(question.of)
            if again or not _still_holds(known, question, analysis, settings):
                known = _answer(question, analysis, settings)
                _add(subject, question, known)
            yield question, known["result"]
    _update(subject, lambda told: _put_clock(told, subject))


def _update(subject: Subject, change: Callable[[dict[str, Any]], object]) -> None:
    """Change one thing in the results as they are now: another process may have added its own meanwhile."""
    from filelock import FileLock

    subject.file.parent.mkdir(parents=True, exist_ok=True)
    lock = subject.file.with_name(f".{subject.file.name}.lock")
    try:
        with FileLock(lock):
            told = {"analyses": {}, "missing": {}} | read_results(subject.file) | _about(subject)
            change(told)
            write_json(subject.file, told)
    except PermissionError as error:
        raise InputError(f"{subject.file} cannot be written ({error.strerror}): make its folder writable") from error


def _add(subject: Subject, question: Question, known: dict[str, Any]) -> None:
    _update(subject, lambda told: told["analyses"].setdefault(question.analysis, {}).update({question.of: known}))


def _about(subject: Subject) -> dict[str, Any]:
    runs = [run.as_posix() for run in subject.runs]
    return {"format": FORMAT, "runs": runs, "label": subject.label, "spec": subject.spec.to_json()}


def _keep(told: dict[str, Any], subject: Subject, name: str, asked: Sequence[Question]) -> None:
    """Of an analysis keep what can still be asked; where nothing can, say what would have to be recorded."""
    before = told["analyses"].pop(name, {})
    told["missing"].pop(name, None)
    if asked:
        told["analyses"][name] = {each.of: before[each.of] for each in asked if each.of in before}
    else:
        told["missing"][name] = missing(subject, name)


def _put_clock(told: dict[str, Any], subject: Subject) -> None:
    """Timings of the same weights, where they were taken."""
    told.pop("clock", None)
    file = subject.runs[0] / "clock.json"
    clock = read_json(file) if file.exists() else {}
    if clock.get("weights") in {found.header.origin.weights for found in subject.traces}:
        told["clock"] = clock


def _answer(question: Question, analysis: Analysis, settings: Settings) -> dict[str, Any]:
    start = time.monotonic()
    result = question.answer()
    if "intervals" not in result:
        result["intervals"] = question.intervals(settings.seed)
    made = {"made_from": question.made_from, "made_with": analysis.depends_on(settings)}
    return {**made, "seconds": round(time.monotonic() - start, 2), "result": result}


def _still_holds(known: dict[str, Any] | None, question: Question, analysis: Analysis, settings: Settings) -> bool:
    """Whether an answer is of the same traces and settings, and nothing was out of reach then."""
    if known is None or known["made_from"] != question.made_from:
        return False
    return known["made_with"] == analysis.depends_on(settings) and not known["result"].get("not measured")
