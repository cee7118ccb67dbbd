"""Questions that something is trained for: on validation traces, to be asked of test traces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from cascaded.analysis import resampling
from cascaded.analysis.curves import speed_accuracy
from cascaded.analysis.statistics import bootstrap
from cascaded.results.questions import DRAWS, Question, Settings, known_tests
from cascaded.results.subjects import Subject
from cascaded.traces.store import TraceFile


def ask_learned_stopper(subject: Subject, settings: Settings) -> list[Question]:
    """A stopper trained on held-out images, and its curve on test images beside the others."""

    def answer(validation: TraceFile, test: TraceFile) -> dict[str, Any]:
        from cascaded.analysis.stopper import StopperRecipe, learned_stopper

        recipe, trace = StopperRecipe(epochs=settings.epochs, seed=settings.seed), test.load()
        stopper, scores = learned_stopper(validation.load(), trace, recipe)
        stopper.save(test.files[0].parent.parent / "stoppers" / f"{test.name}.safetensors")
        told = speed_accuracy(trace, stopper=scores).to_json()
        statistics = resampling.of_speed_accuracy(trace, stopper=scores)
        intervals = {
            name: bootstrap(each, trace.items, DRAWS, seed=settings.seed).to_json() for name, each in statistics.items()
        }
        return told | {"recipe": asdict(recipe), "trained on": validation.name, "intervals": intervals}

    return [
        Question(
            "learned_stopper",
            test.name,
            (validation, test),
            lambda validation=validation, test=test: answer(validation, test),
            place=1,
        )
        for validation, test in pairs(subject, known_tests(subject))
    ]


def ask_out_of_distribution(subject: Subject, settings: Settings) -> list[Question]:
    """MetaCog classifiers that tell images of the network's own data from others."""

    def answer(
        inside: tuple[TraceFile, TraceFile], outside: Mapping[str, tuple[TraceFile, TraceFile]]
    ) -> dict[str, Any]:
        from cascaded.analysis.metacog import MetaCogRecipe
        from cascaded.analysis.ood import Pair, out_of_distribution

        recipe = MetaCogRecipe(epochs=settings.epochs)
        loaded = {name: Pair(*(found.load() for found in pair)) for name, pair in outside.items()}
        own = Pair(*(found.load() for found in inside))
        found = out_of_distribution(own, loaded, recipe=recipe, seed=settings.seed)
        intervals = found.intervals(DRAWS, seed=settings.seed)
        return found.to_json() | {"intervals": {name: each.to_json() for name, each in intervals.items()}}

    strangers = [found for found in subject.traces if not (found.provenance.in_distribution or found.config.noise)]
    asked = []
    for inside in pairs(subject, known_tests(subject)):
        outside: dict[str, tuple[TraceFile, TraceFile]] = {}
        for pair in pairs(subject, strangers):
            if alike(pair[1], inside[1]):
                data = str(pair[1].config.data)
                outside[pair[1].name if data in outside else data] = pair
        if outside:
            traces = (*inside, *(found for pair in outside.values() for found in pair))
            ask = lambda inside=inside, outside=outside: answer(inside, outside)  # noqa: E731
            beside = f"against {', '.join(outside)}"
            asked.append(Question("out_of_distribution", inside[1].name, traces, ask, place=1, beside=beside))
    return asked


def pairs(subject: Subject, traces: list[TraceFile]) -> list[tuple[TraceFile, TraceFile]]:
    """For every test trace the validation trace of the same data, recorded alike; of several the largest.

    Folds have no test images of their own.
    """
    if len(subject.runs) > 1:
        return []
    found = []
    for test in (each for each in traces if each.config.split == "test"):
        others = [each for each in traces if each.config.split == "validation" and alike(each, test)]
        if same := [each for each in others if each.config.data == test.config.data]:
            found.append((max(same, key=lambda each: each.header.items), test))
    return found


def alike(one: TraceFile, other: TraceFile) -> bool:
    """Whether two traces are of the same network, run in the same way."""
    same = all(getattr(one.config, what) == getattr(other.config, what) for what in ("kernel", "schedule", "noise"))
    return same and one.header.steps == other.header.steps and one.provenance.weights == other.provenance.weights
