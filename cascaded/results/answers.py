"""Ask everything that the traces allow, once: what was answered from the same traces is not computed again."""

from __future__ import annotations

import hashlib
import json
import shlex
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cascaded.errors import CascadedWarning, InputError
from cascaded.files import check_digest, check_types, fits, is_changed, read_json, with_digest, write_json
from cascaded.results.asked import Asked
from cascaded.results.groups import Answered
from cascaded.results.questions import Question, Settings
from cascaded.results.registry import ANALYSES, Analysis, missing
from cascaded.results.subjects import Subject
from cascaded.shell import program

FORMAT = 1


def read_results(file: Path) -> dict[str, Any]:
    """What was answered before; nothing where there is no file."""
    if not file.exists():
        return {}
    told = read_json(file)
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise InputError(f"{file} holds no results of format {FORMAT}, the one this cascaded reads: move it away")
    parts = [told.get(name, {}) for name in ("analyses", "missing", "refused")]
    parts += list(parts[0].values()) if isinstance(parts[0], dict) else []
    if not all(isinstance(each, dict) for each in parts):
        raise InputError(f"{file} was changed and is not what cascaded writes any more: move it away")
    return told


def _unchanged(file: Path) -> dict[str, Any]:
    """What was answered before, if nobody has changed it since; otherwise nothing, so that all is computed again."""
    found = read_results(file)
    if not is_changed(found):
        return found
    warnings.warn(f"{file} was changed after cascaded wrote it: it is made again", CascadedWarning, stacklevel=2)
    return {}


def _run_of(subject: Subject) -> str:
    return shlex.quote(str(subject.file.parent))


def read_answers(subject: Subject) -> Answered[Asked]:
    """What was answered of a subject, without its traces."""
    answers, known_of = {}, read_results(subject.file)
    check_digest(subject.file, known_of, f"{program()} analyse {_run_of(subject)} computes it again")
    for name, each in known_of.get("analyses", {}).items():
        for of, known in each.items():
            if isinstance(known, dict) and "asked" in known:  # else an older cascaded's
                answers[name, of] = _read_answer(subject, name, known)
    return Answered(subject, answers)


def _read_answer(subject: Subject, name: str, known: dict[str, Any]) -> tuple[Asked, dict[str, Any]]:
    try:
        check_types(known["asked"], Asked)
        asked, result = Asked.from_json(known["asked"]), known["result"]
        if not fits(result["headline"], dict[str, float | None]):
            raise TypeError("headline")
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        way = f"{program()} analyse {_run_of(subject)} --only {name} --again"
        raise InputError(f"{subject.file} was changed, {name} is not what cascaded writes any more: {way}") from error
    return asked, result


def fingerprints(subject: Subject) -> dict[str, str]:
    """For every answer, what it was made from and with, in a few letters."""
    return {
        f"{name} {of}": _short([known.get("made_from"), known.get("made_with")])
        for name, each in read_results(subject.file).get("analyses", {}).items()
        for of, known in each.items()
        if isinstance(known, dict)
    }


def _short(told: Any) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def answers_before(subject: Subject, names: Sequence[str]) -> Iterator[tuple[Question, dict[str, Any]]]:
    """What was answered before of the traces that are there now, whatever the settings; nothing is computed."""
    before = read_results(subject.file).get("analyses", {})
    for name in names:
        for question in ANALYSES[name].ask(subject, Settings()):
            known = before.get(name, {}).get(question.of)
            if _is_of(known, question, ANALYSES[name]):
                yield question, known["result"]


def answer_all(
    subject: Subject, names: Sequence[str], settings: Settings, again: bool = False
) -> Iterator[tuple[Question, dict[str, Any]]]:
    """Every question and its answer; `results.json` is brought up to date after each of them."""
    before = _unchanged(subject.file).get("analyses", {})
    for name in names:
        analysis = ANALYSES[name]
        asked = analysis.ask(subject, settings)
        _update(subject, lambda told, name=name, asked=asked: _keep(told, subject, name, asked))
        for question in asked:
            known = before.get(name, {}).get(question.of)
            if again or not _still_holds(known, question, analysis, settings):
                try:
                    known = _answer(question, analysis, settings)
                except InputError as error:  # what is wrong with one does not keep the others from being answered
                    _update(subject, lambda told, q=question, error=error: _refuse(told, q, str(error)))
                    continue
                _add(subject, question, known)
            elif known.get("asked") != question.asked.to_json():  # answered before that was written down
                known = {**known, "asked": question.asked.to_json()}
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
            told = {"analyses": {}, "missing": {}, "refused": {}} | _unchanged(subject.file) | _about(subject)
            change(told)
            write_json(subject.file, with_digest(told))
    except PermissionError as error:
        raise InputError(f"{subject.file} cannot be written ({error.strerror}): make its folder writable") from error


def _refuse(told: dict[str, Any], question: Question, why: str) -> None:
    told["analyses"].get(question.analysis, {}).pop(question.of, None)
    told["refused"].setdefault(question.analysis, {})[question.of] = why


def _add(subject: Subject, question: Question, known: dict[str, Any]) -> None:
    _update(subject, lambda told: told["analyses"].setdefault(question.analysis, {}).update({question.of: known}))


def _about(subject: Subject) -> dict[str, Any]:
    runs = [run.as_posix() for run in subject.runs]
    about = {"format": FORMAT, "runs": runs, "label": subject.label, "config": asdict(subject.config)}
    return {**about, "passed_over": subject.passed_over}


def _keep(told: dict[str, Any], subject: Subject, name: str, asked: Sequence[Question]) -> None:
    """Of an analysis keep what can still be asked; where nothing can, say what would have to be recorded."""
    before = told["analyses"].pop(name, {})
    told["missing"].pop(name, None)
    told["refused"].pop(name, None)
    if asked:
        told["analyses"][name] = {each.of: before[each.of] for each in asked if each.of in before}
    else:
        told["missing"][name] = missing(subject, name)


def _put_clock(told: dict[str, Any], subject: Subject) -> None:
    """Timings of the same weights, where they were taken."""
    told.pop("clock", None)
    file = subject.runs[0] / "latency.json"
    try:
        clock = read_json(file) if file.exists() else {}
    except InputError:
        return  # it is measured again in a minute
    if isinstance(clock, dict) and clock.get("weights") in {found.provenance.weights for found in subject.traces}:
        told["clock"] = clock


def _answer(question: Question, analysis: Analysis, settings: Settings) -> dict[str, Any]:
    start = time.monotonic()
    result = question.answer()
    if "intervals" not in result:
        result["intervals"] = question.intervals(settings.seed)
    made = {"made_from": question.made_from, "made_with": analysis.depends_on(settings)}
    told = {**made, "asked": question.asked.to_json(), "seconds": round(time.monotonic() - start, 2)}
    return {**told, "result": result}


def _is_of(known: Any, question: Question, analysis: Analysis) -> bool:
    """Whether an answer is of the same traces, as this version of the analysis gives it."""
    try:
        same = known["made_from"] == question.made_from and known["made_with"]["version"] == analysis.version
        return same and isinstance(known["result"]["headline"], dict)
    except (KeyError, TypeError):
        return False


def _still_holds(known: Any, question: Question, analysis: Analysis, settings: Settings) -> bool:
    """Whether an answer is of the same traces and settings, and nothing was out of reach then."""
    try:
        same = known["made_from"] == question.made_from and known["made_with"] == analysis.depends_on(settings)
        figures = [value for value in known["result"]["headline"].values() if value is not None]
        return (
            same and not known["result"].get("not measured") and all(isinstance(each, (int, float)) for each in figures)
        )
    except (KeyError, TypeError, AttributeError):  # none, or something else than was written
        return False
