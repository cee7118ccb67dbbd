"""Ask everything that the traces allow, once: what was answered from the same traces is not computed again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from cascaded.errors import InputError
from cascaded.files import read_json, write_json
from cascaded.results import questions
from cascaded.results.questions import Question, Settings
from cascaded.results.subjects import Subject

FORMAT = 1


@dataclass(frozen=True)
class Analysis:
    """One of the paper's measurements.

    Attributes:
        about: What it tells, in a few words.
        ask: The questions that a subject's traces allow.
        needs: What `cascaded record` has to be asked for it.
    """

    about: str
    ask: Callable[[Subject, Settings], list[Question]]
    needs: tuple[str, ...]


FINE = "--kernel ews:0.9 --steps 70"
ANALYSES: dict[str, Analysis] = {
    "speed_accuracy": Analysis(
        "accuracy against cost, by confidence and by deadline", questions.ask_speed_accuracy, ("",)
    ),
    "selection_latency": Analysis(
        "from which step on a class stays chosen; the fastest and slowest images",
        questions.ask_selection_latency,
        (FINE,),
    ),
    "prototypicality": Analysis(
        "do typical images take less time?", questions.ask_prototypicality, (f"{FINE} --embeddings",)
    ),
    "taxonomic_compliance": Analysis(
        "is a wrong answer of the right kind? (data with two levels of classes)",
        questions.ask_taxonomic_compliance,
        ("",),
    ),
    "persistent_noise": Analysis(
        "accuracy while every frame is noisy",
        questions.ask_persistent_noise,
        ("--noise occlusion --protocol persistent",),
    ),
    "transient_noise": Analysis(
        "what passing noise leaves of the confidence",
        questions.ask_transient_noise,
        ("--noise occlusion --protocol transient",),
    ),
    "learned_stopper": Analysis(
        "a network that learns when to stop", questions.ask_learned_stopper, (FINE, f"--split validation {FINE}")
    ),
    "out_of_distribution": Analysis(
        "can the trace tell images of another kind?",
        questions.ask_out_of_distribution,
        (
            FINE,
            f"--split validation {FINE}",
            f"--data svhn --split validation {FINE}",
            f"--data svhn --split test {FINE}",
        ),
    ),
}


ACROSS = ("lambda_effect",)
"""Analyses of several runs at once."""


def chosen(only: Sequence[str]) -> list[str]:
    """Names of analyses as people type them; all where none is named."""
    known, names = [*ANALYSES, *ACROSS], []
    for each in only:
        name = each.replace("-", "_")
        if name not in known:
            near = get_close_matches(name, known, n=1)
            raise InputError(f"there is no analysis {each!r}: say {near[0] if near else ', '.join(known)}")
        names.append(name)
    return names or known


def missing(subject: Subject, name: str) -> str:
    """What would have to be recorded before an analysis can be made."""
    if name == "taxonomic_compliance":
        return f"{subject.spec.data} has one level of classes: train on data with two, such as cifar100"
    run = subject.runs[0].as_posix()
    return "; ".join(f"cascaded record {run} {words}".strip() for words in ANALYSES[name].needs)


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
    told = {**_about(subject), **read_results(subject.file)} | _about(subject)
    analyses, lacking = told.setdefault("analyses", {}), told.setdefault("missing", {})
    for name in names:
        asked = ANALYSES[name].ask(subject, settings)
        lacking.pop(name, None)
        before = analyses.get(name, {})
        analyses[name] = {question.of: before[question.of] for question in asked if question.of in before}
        if not asked:
            lacking[name] = missing(subject, name)
            del analyses[name]
        for question in asked:
            known = analyses[name].get(question.of)
            if again or not _still_holds(known, question, settings):
                known = analyses[name][question.of] = _answer(question, settings)
                write_json(subject.file, told)
            yield question, known["result"]
    if (clock := subject.runs[0] / "clock.json").exists():
        told["clock"] = read_json(clock)
    write_json(subject.file, told)


def _about(subject: Subject) -> dict[str, Any]:
    spec = subject.spec
    runs = [run.as_posix() for run in subject.runs]
    return {"format": FORMAT, "runs": runs, "label": subject.label, "spec": spec.to_json()}


def _answer(question: Question, settings: Settings) -> dict[str, Any]:
    start = time.monotonic()
    result = question.answer()
    if "intervals" not in result:
        result["intervals"] = question.intervals(settings.seed)
    seconds = round(time.monotonic() - start, 2)
    return {"made_from": question.made_from, "settings": asdict(settings), "seconds": seconds, "result": result}


def _still_holds(known: dict[str, Any] | None, question: Question, settings: Settings) -> bool:
    """Whether an answer is of the same traces and settings, and nothing was out of reach then."""
    if known is None or known["made_from"] != question.made_from or known["settings"] != asdict(settings):
        return False
    return not known["result"].get("not measured")
