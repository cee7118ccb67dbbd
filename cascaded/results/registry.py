"""The analyses by name: what each tells, what it needs, and how it is asked."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from cascaded.errors import InputError
from cascaded.results import learned, questions
from cascaded.results.questions import DRAWS, Question, Settings
from cascaded.results.subjects import Subject


@dataclass(frozen=True)
class Analysis:
    """One of the paper's measurements.

    Attributes:
        about: What it tells, in a few words.
        ask: The questions that a subject's traces allow.
        needs: What `cascaded record` has to be asked for it.
        reads: The settings that its answer depends on, besides those of its intervals.
        version: Counted up when the same traces and settings would give another answer.
    """

    about: str
    ask: Callable[[Subject, Settings], list[Question]]
    needs: tuple[str, ...]
    reads: tuple[str, ...] = ()
    version: int = 1

    def depends_on(self, settings: Settings) -> dict[str, Any]:
        """What besides the traces an answer was made with."""
        named = {name: getattr(settings, name) for name in (*self.reads, "seed")}
        return {**named, "draws": DRAWS, "version": self.version}


NOISE = "occlusion"
FINE = "--kernel ews:0.9 --steps 70"
BOTH = (FINE, f"--split validation {FINE}")
OUTSIDE_SET = "svhn"
OUTSIDE = tuple(f"--data {OUTSIDE_SET} --split {split} {FINE}" for split in ("validation", "test"))

ANALYSES: dict[str, Analysis] = {
    "speed_accuracy": Analysis(
        "accuracy against cost, by confidence and by deadline", questions.ask_speed_accuracy, ("",), version=2
    ),
    "selection_latency": Analysis(
        "from which step on a class stays chosen; the fastest and slowest images",
        questions.ask_selection_latency,
        (FINE,),
        ("failing",),
        version=2,
    ),
    "prototypicality": Analysis(
        "do typical images take less time?", questions.ask_prototypicality, (f"{FINE} --embeddings",), ("failing",), 2
    ),
    "taxonomic_compliance": Analysis(
        "is a wrong answer of the right kind?", questions.ask_taxonomic_compliance, ("--data cifar100",), version=2
    ),
    "persistent_noise": Analysis(
        "accuracy while every frame is noisy", questions.ask_persistent_noise, (f"--noise {NOISE}",)
    ),
    "transient_noise": Analysis(
        "what passing noise leaves of the confidence",
        questions.ask_transient_noise,
        (f"--noise {NOISE} --protocol transient",),
    ),
    "learned_stopper": Analysis(
        "a network that learns when to stop", learned.ask_learned_stopper, BOTH, ("epochs",), 2
    ),
    "out_of_distribution": Analysis(
        "can the trace tell images of another kind?",
        learned.ask_out_of_distribution,
        (*BOTH, *OUTSIDE),
        ("epochs",),
        version=2,
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
    run = subject.runs[0].as_posix()
    if name == "taxonomic_compliance":
        return (
            f"data with two levels of classes, such as cifar100: train on it, then cascaded record {shlex.quote(run)}"
        )
    if len(subject.runs) > 1:
        return "not asked of folds: record a run that has test images of its own"
    if set(BOTH) <= set(ANALYSES[name].needs) and not subject.has_test:
        return f"it trains on one split and tests on another, and {subject.config.data} has the validation split alone"
    words = [each for each in ANALYSES[name].needs if not _is_there(subject, each)]
    serial = subject.config.get_method().schedule == "serial"  # where nothing is delayed, time is as fine as it gets
    told = [each.replace(FINE, "").strip() if serial else each for each in words]
    told = [each.replace(NOISE, subject.config.noise or NOISE) for each in told]
    return "; ".join(f"cascaded record {shlex.quote(run)} {each}".strip() for each in told)


def _is_there(subject: Subject, words: str) -> bool:
    """Whether what these words of `cascaded record` would make was recorded already, in fine time."""
    own = "--data" not in words
    split = "validation" if "--split validation" in words or (own and not subject.has_test) else "test"
    still = [found for found in subject.traces if found.config.noise is None]
    finest = "none" if subject.config.get_method().schedule == "serial" else "ews:0.9"
    return FINE in words and any(
        (found.config.split, found.config.kernel) == (split, finest) and found.provenance.in_distribution == own
        for found in still
    )
