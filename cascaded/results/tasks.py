"""Which traces each analysis is computed from, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cascaded.analysis.curves import speed_accuracy
from cascaded.analysis.human import compare_with_people
from cascaded.analysis.latency import selection_latency, selection_latency_rows
from cascaded.analysis.metacog import MetaCogConfig
from cascaded.analysis.ood import TRIALS, VARIANT, Pair, out_of_distribution
from cascaded.analysis.prototypes import prototypicality, threshold_sweep
from cascaded.analysis.robustness import persistent_noise, transient_noise
from cascaded.analysis.rows import DRAWS, Rows
from cascaded.analysis.stopper import StopperConfig, learned_stopper
from cascaded.analysis.taxonomy import taxonomic_compliance
from cascaded.data.trials import count_answers, trials
from cascaded.errors import InputError, at_least
from cascaded.files import sha256
from cascaded.results.analyzed import Analyzed
from cascaded.results.human import OWN
from cascaded.results.measures import MEASURED, typicality
from cascaded.traces.config import NoiseProtocol
from cascaded.traces.store import TraceFile
from cascaded.training.runs import last_metrics

STOPPER_METRICS = ("area", "area_above_deadline", "accuracy_at_cost", "cost_to_95", "cost_to_accuracy_50")


@dataclass(frozen=True)
class Settings:
    """What analyses are computed with.

    Attributes:
        unsettled_fraction: Fraction of images that may never settle; chooses the threshold of selection latency.
        epochs: Epochs of the stopper and of MetaCog; the paper's 300 by default.
        draws: Bootstrap draws over images, for intervals: 200, and 2,000 for publication.
        claim_draws: Draws of the metrics that claims of the paper are about, if they have more than others.
        seed: Seed of all draws. The trainings have seeds of their own, as in the paper.
        metacog_trials: Trainings per MetaCog, from the same initial weights.
        metacog_standardize: Also train MetaCog on standardized features; the paper does not say that it does.
        human: A CSV file with answers of people; those of this package by default.
    """

    unsettled_fraction: float = 0.1
    epochs: int = 300
    draws: int = DRAWS
    claim_draws: int | None = None
    seed: int = 0
    metacog_trials: int = TRIALS
    metacog_standardize: bool = False
    human: Path | None = None

    def __post_init__(self):
        if self.seed < 0:
            raise InputError(f"--seed is {self.seed}: give 0 or more")
        if not 0 <= self.unsettled_fraction < 1:
            raise InputError(f"--unsettled-fraction is {self.unsettled_fraction}: give 0 or more, and less than 1")
        if self.epochs < 1 or self.draws < 2:
            raise InputError(f"--epochs is {self.epochs} and --draws {self.draws}: give at least 1 and 2")
        if self.claim_draws is not None and self.claim_draws < self.draws:
            raise InputError(
                f"--claim-draws is {self.claim_draws} and --draws {self.draws}: give at least as many, or leave it out"
            )
        at_least(1, **{"--metacog-trials": self.metacog_trials})
        if self.human is not None:
            trials(self.human)  # a wrong file is refused before anything is computed

    @property
    def human_data(self) -> str:
        """The name of the answers of people, with a digest of their file: rows of other answers are not compared."""
        return OWN if self.human is None else f"{self.human.stem}-{sha256(self.human)[:8]}"

    @property
    def bootstrap(self) -> dict[str, Any]:
        """What every analysis takes: number and seed of the draws."""
        return {"draws": self.draws, "seed": self.seed}


@dataclass(frozen=True)
class Task:
    """One analysis of some traces.

    Attributes:
        name: Name of the trace that is tested.
        traces: All traces that it reads. The first one is tested, and the rows get its keys; others are trained on, or
            compared with.
        compute: Computes the rows.
    """

    name: str
    traces: tuple[TraceFile, ...]
    compute: Callable[[], pd.DataFrame]

    @property
    def digests(self) -> dict[str, str]:
        """By name, the digest of every trace: the same digests give the same rows."""
        return {each.name: each.header.digest for each in self.traces}


def clean_traces(run: Analyzed) -> list[TraceFile]:
    """Traces of images of the network's own classes that it was not trained on, without noise."""
    own = [each for each in run.traces if each.provenance.in_distribution and each.config.noise is None]
    return [each for each in own if each.config.split != "train"]


def noisy_traces(run: Analyzed, protocol: NoiseProtocol) -> list[TraceFile]:
    """Traces of the network's own classes under noise."""
    return [each for each in run.traces if each.provenance.in_distribution and each.config.protocol == protocol]


def _each(traces: Iterable[TraceFile], compute: Callable[[TraceFile], pd.DataFrame]) -> list[Task]:
    """The same analysis of every trace."""
    return [Task(each.name, (each,), partial(compute, each)) for each in traces]


def speed_accuracy_tasks(run: Analyzed, settings: Settings) -> list[Task]:
    """Accuracy per step and against cost."""
    return _each(clean_traces(run), lambda file: speed_accuracy(file.load(), **settings.bootstrap))


def selection_latency_tasks(run: Analyzed, settings: Settings) -> list[Task]:
    """Latency of every image."""

    def compute(file: TraceFile) -> pd.DataFrame:
        latency = selection_latency(file.load(), unsettled_fraction=settings.unsettled_fraction)
        return selection_latency_rows(latency, **settings.bootstrap)

    return _each(clean_traces(run), compute)


def prototypicality_tasks(run: Analyzed, settings: Settings) -> list[Task]:
    """Rank correlation of latency with every measure of typicality that there is."""

    def compute(file: TraceFile) -> pd.DataFrame:
        trace, measures = file.load(), typicality(file)
        latency = selection_latency(trace, unsettled_fraction=settings.unsettled_fraction).steps
        rows = prototypicality(trace, measures, latency=latency, **settings.bootstrap)
        return pd.concat([rows, threshold_sweep(trace, measures, **settings.bootstrap)], ignore_index=True)

    known = [each for each in clean_traces(run) if each.config.embeddings or each.config.data in MEASURED]
    return _each(known, compute)


def taxonomic_compliance_tasks(run: Analyzed, settings: Settings) -> list[Task]:
    """Wrong predictions of the right coarse class, where there are coarse classes."""
    traces = [each for each in clean_traces(run) if each.provenance.coarse_of]
    return _each(traces, lambda file: taxonomic_compliance(file.load(), **settings.bootstrap))


def persistent_noise_tasks(run: Analyzed, settings: Settings) -> list[Task]:
    """Accuracy under noise on every frame."""
    traces = noisy_traces(run, "persistent")
    return _each(traces, lambda file: persistent_noise(file.load(), **settings.bootstrap))


def transient_noise_tasks(run: Analyzed, settings: Settings) -> list[Task]:
    """Confidence under transient noise; all numbers of noisy frames together."""
    groups: dict[str, list[TraceFile]] = {}
    for trace in noisy_traces(run, "transient"):
        groups.setdefault(replace(trace.config, noise_frames=()).name, []).append(trace)

    def compute(group: Sequence[TraceFile]) -> pd.DataFrame:
        return transient_noise([each.load() for each in group], **settings.bootstrap)

    return [Task(name, tuple(group), partial(compute, group)) for name, group in groups.items()]


def learned_stopper_tasks(run: Analyzed, settings: Settings) -> list[Task]:
    """A stopper trained on validation images, and its curve on test images beside those of the other rules."""

    def compute(test: TraceFile, validation: TraceFile) -> pd.DataFrame:
        trace, config = test.load(), StopperConfig(epochs=settings.epochs)
        stopper, scores = learned_stopper(validation.load(), trace, config)
        stopper.save(run.folder / "stoppers" / f"{test.name}.safetensors")
        rows = speed_accuracy(trace, stopper=scores, **settings.bootstrap)
        return rows[np.isin(rows.metric, STOPPER_METRICS)]

    return [Task(pair[0].name, pair, partial(compute, *pair)) for pair in split_pairs(run, clean_traces(run))]


def out_of_distribution_tasks(run: Analyzed, settings: Settings) -> list[Task]:
    """MetaCog classifiers that detect images of other data."""
    ood = [each for each in run.traces if not each.provenance.in_distribution and each.config.noise is None]
    ood_pairs = split_pairs(run, ood)

    def compute(pairs: Sequence[tuple[TraceFile, TraceFile]]) -> pd.DataFrame:
        own, *others = [Pair(validation.load(), test.load()) for test, validation in pairs]
        named = {str(each.test.config.data): each for each in others}
        tables = []
        for standardize in (False, True)[: 1 + settings.metacog_standardize]:
            config = MetaCogConfig(epochs=settings.epochs, standardize=standardize)
            options = {"config": config, "trials": settings.metacog_trials, **settings.bootstrap}
            tables.append(out_of_distribution(own, named, **options))
        return pd.concat(tables, ignore_index=True).drop_duplicates(VARIANT)  # the baseline is the same

    tasks = []
    for own in split_pairs(run, clean_traces(run)):
        others = {pair[0].config.data: pair for pair in ood_pairs if how_recorded(pair[0]) == how_recorded(own[0])}
        if others:
            pairs = [own, *others.values()]
            tasks.append(Task(own[0].name, tuple(chain(*pairs)), partial(compute, pairs)))
    return tasks


def human_tasks(run: Analyzed, settings: Settings) -> list[Task]:
    """A network beside people, where everything that people were shown is recorded in the same way."""
    own = [each for each in run.traces if each.provenance.in_distribution and each.config.split != "train"]
    groups: dict[tuple[object, ...], dict[str | None, TraceFile]] = {}
    for each in sorted(own, key=lambda trace: trace.config.noise is not None):
        if each.config.protocol in (None, "still"):
            key = each.config.data, each.provenance.items, *how_recorded(each, noise=False)
            groups.setdefault(key, {})[each.config.noise] = each

    def compute(group: dict[str | None, TraceFile]) -> pd.DataFrame:
        traces = {noise: each.load() for noise, each in group.items()}
        return compare_with_people(
            traces, count_answers(trials(settings.human)), data=settings.human_data, **settings.bootstrap
        )

    shown = [list(group.values()) for group in groups.values() if any(map(_is_gray, group))]
    return [
        Task(files[0].name, tuple(files), partial(compute, {each.config.noise: each for each in files}))
        for files in shown
    ]


def _is_gray(noise: str | None) -> bool:
    return noise is not None and noise.partition(":")[0] == "gray"


def run_time_tasks(run: Analyzed, settings: Settings) -> list[Task]:
    """Training time. On a CPU, the hours are those of the processor: elapsed time includes other programs."""
    last = last_metrics(run.folder) if len(run.runs) == 1 else None
    if not last or not last.get("seconds"):
        return []

    def compute() -> pd.DataFrame:
        rows, seconds = Rows(1), float(last["seconds"])
        rows.value("seconds_per_epoch", seconds / int(last["epoch"]))
        rows.value("training_hours", float(last.get("processor_seconds", seconds)) / 3600)
        rows.value("images_per_second", last["step"] * run.config.batch_size / seconds)
        return rows.table()

    return [Task(f"metrics.jsonl, {last['epoch']} epochs in {last['seconds']} s", (), compute)]


def split_pairs(run: Analyzed, traces: Sequence[TraceFile]) -> list[tuple[TraceFile, TraceFile]]:
    """Every test trace with the validation trace of the same data that was recorded alike; of several the largest.

    Folds have no test images of their own.
    """
    if len(run.runs) > 1:
        return []
    largest = {}
    for each in sorted(traces, key=lambda trace: trace.images):
        if each.config.split == "validation":
            largest[each.config.data, how_recorded(each)] = each
    pairs = [(each, largest.get((each.config.data, how_recorded(each)))) for each in traces]
    return [(each, validation) for each, validation in pairs if each.config.split == "test" and validation]


def how_recorded(trace: TraceFile, noise: bool = True) -> tuple[object, ...]:
    """What traces of the same network, run in the same way, have in common; with or without the noise."""
    config = trace.config
    return config.kernel, config.schedule, noise and config.noise, config.steps, trace.provenance.weights


TASKS: dict[str, Callable[[Analyzed, Settings], list[Task]]] = {
    "speed_accuracy": speed_accuracy_tasks,
    "selection_latency": selection_latency_tasks,
    "prototypicality": prototypicality_tasks,
    "taxonomic_compliance": taxonomic_compliance_tasks,
    "persistent_noise": persistent_noise_tasks,
    "transient_noise": transient_noise_tasks,
    "learned_stopper": learned_stopper_tasks,
    "out_of_distribution": out_of_distribution_tasks,
    "human": human_tasks,
    "run_time": run_time_tasks,
}
