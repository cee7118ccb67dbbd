"""Which traces each analysis is computed from, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pandas as pd

from cascaded.analysis.curves import speed_accuracy
from cascaded.analysis.latency import selection_latency, selection_latency_rows
from cascaded.analysis.metacog import MetaCogConfig
from cascaded.analysis.ood import Pair, out_of_distribution
from cascaded.analysis.prototypes import prototypicality
from cascaded.analysis.robustness import persistent_noise, transient_noise
from cascaded.analysis.rows import DRAWS, Rows
from cascaded.analysis.stopper import StopperConfig, learned_stopper
from cascaded.analysis.taxonomy import taxonomic_compliance
from cascaded.errors import InputError
from cascaded.results.analyzed import Analyzed
from cascaded.results.measures import CLUTTERED, JUDGED, typicality
from cascaded.traces.config import NoiseProtocol
from cascaded.traces.store import TraceFile
from cascaded.traces.trace import Trace
from cascaded.training.runs import last_metrics

STOPPER_METRICS = ("area", "area_above_deadline", "accuracy_at_cost", "cost_to_95", "cost_to_accuracy_50")


@dataclass(frozen=True)
class Settings:
    """What analyses are computed with.

    Attributes:
        unsettled_fraction: Fraction of images that may never settle; chooses the threshold of selection latency.
        epochs: Epochs of the stopper and of MetaCog; the paper's 300 by default.
        draws: Bootstrap draws over images, for intervals: 200, and 2,000 for publication.
        seed: Seed of their training and of all draws.
    """

    unsettled_fraction: float = 0.1
    epochs: int = 300
    draws: int = DRAWS
    seed: int = 0

    def __post_init__(self):
        if self.seed < 0:
            raise InputError(f"--seed is {self.seed}: give 0 or more")
        if not 0 <= self.unsettled_fraction < 1:
            raise InputError(f"--unsettled-fraction is {self.unsettled_fraction}: give 0 or more, and less than 1")
        if self.epochs < 1 or self.draws < 2:
            raise InputError(f"--epochs is {self.epochs} and --draws {self.draws}: give at least 1 and 2")


@dataclass(frozen=True)
class Task:
    """One analysis of some traces.

    Attributes:
        name: Name of the trace that is judged.
        traces: All traces that it reads; others are trained on, or compared with.
        compute: Computes the rows.
        judged: The trace that is judged, whose keys the rows get; None where no trace is read.
        digests: By name, the digest of every file that it reads: the same digests give the same rows.
    """

    name: str
    traces: tuple[TraceFile, ...]
    compute: Callable[[], pd.DataFrame]
    judged: TraceFile | None = None
    digests: dict[str, str] = field(default_factory=dict)

    def __post_init__(self):
        object.__setattr__(self, "digests", self.digests or {each.name: each.header.digest for each in self.traces})


def clean_traces(run: Analyzed) -> list[TraceFile]:
    """Traces of images of the network's own classes that it was not trained on, without noise."""
    return [
        trace
        for trace in run.traces
        if trace.provenance.in_distribution and trace.config.noise is None and trace.config.split != "train"
    ]


def noisy_traces(run: Analyzed, protocol: NoiseProtocol) -> list[TraceFile]:
    """Traces of the network's own classes under noise."""
    return [each for each in run.traces if each.provenance.in_distribution and each.config.protocol == protocol]


def _each(traces: Iterable[TraceFile], analysis: Callable[..., pd.DataFrame], settings: Settings) -> list[Task]:
    """The same analysis of every trace."""

    def compute(file: TraceFile) -> pd.DataFrame:
        return analysis(file.load(), draws=settings.draws, seed=settings.seed)

    return [Task(each.name, (each,), partial(compute, each), each) for each in traces]


def speed_accuracy_tasks(run: Analyzed, settings: Settings) -> list[Task]:
    """Accuracy per step and against cost."""
    return _each(clean_traces(run), speed_accuracy, settings)


def selection_latency_tasks(run: Analyzed, settings: Settings) -> list[Task]:
    """Latency of every image."""

    def analysis(trace: Trace, **options: int) -> pd.DataFrame:
        latency = selection_latency(trace, unsettled_fraction=settings.unsettled_fraction)
        return selection_latency_rows(latency, **options)

    return _each(clean_traces(run), analysis, settings)


def prototypicality_tasks(run: Analyzed, settings: Settings) -> list[Task]:
    """Rank correlation of latency with every measure of typicality that there is."""

    def compute(file: TraceFile) -> pd.DataFrame:
        trace = file.load()
        latency = selection_latency(trace, unsettled_fraction=settings.unsettled_fraction).steps
        measures = typicality(file)
        return prototypicality(trace, measures, latency=latency, draws=settings.draws, seed=settings.seed)

    known = [each for each in clean_traces(run) if each.config.embeddings or each.config.data in (JUDGED, CLUTTERED)]
    return [Task(each.name, (each,), partial(compute, each), each) for each in known]


def taxonomic_compliance_tasks(run: Analyzed, settings: Settings) -> list[Task]:
    """Wrong predictions of the right coarse class, where there are coarse classes."""
    traces = [each for each in clean_traces(run) if each.provenance.coarse_of]
    return _each(traces, taxonomic_compliance, settings)


def persistent_noise_tasks(run: Analyzed, settings: Settings) -> list[Task]:
    """Accuracy under noise on every frame."""
    return _each(noisy_traces(run, "persistent"), persistent_noise, settings)


def transient_noise_tasks(run: Analyzed, settings: Settings) -> list[Task]:
    """Confidence under transient noise; all numbers of noisy frames together."""
    groups: dict[str, list[TraceFile]] = {}
    for trace in noisy_traces(run, "transient"):
        groups.setdefault(replace(trace.config, noise_frames=()).name, []).append(trace)

    def compute(group: Sequence[TraceFile]) -> pd.DataFrame:
        return transient_noise([each.load() for each in group], draws=settings.draws, seed=settings.seed)

    return [Task(name, tuple(group), partial(compute, group), group[0]) for name, group in groups.items()]


def learned_stopper_tasks(run: Analyzed, settings: Settings) -> list[Task]:
    """A stopper trained on validation images, and its curve on test images beside those of the other rules."""

    def compute(validation: TraceFile, test: TraceFile) -> pd.DataFrame:
        trace, config = test.load(), StopperConfig(epochs=settings.epochs, seed=settings.seed)
        stopper, scores = learned_stopper(validation.load(), trace, config)
        stopper.save(run.folder / "stoppers" / f"{test.name}.safetensors")
        rows = speed_accuracy(trace, stopper=scores, draws=settings.draws, seed=settings.seed)
        return rows[np.isin(rows.metric, STOPPER_METRICS)]

    pairs = split_pairs(run, clean_traces(run))
    return [Task(b.name, (a, b), partial(compute, a, b), b) for a, b in pairs]


def out_of_distribution_tasks(run: Analyzed, settings: Settings) -> list[Task]:
    """MetaCog classifiers that detect images of other data."""
    ood = [each for each in run.traces if not each.provenance.in_distribution and each.config.noise is None]
    ood_pairs = split_pairs(run, ood)

    def compute(inside: tuple[TraceFile, TraceFile], outside: dict[str, tuple[TraceFile, TraceFile]]) -> pd.DataFrame:
        own, *others = [Pair(*(each.load() for each in pair)) for pair in (inside, *outside.values())]
        config, named = MetaCogConfig(epochs=settings.epochs), dict(zip(outside, others, strict=True))
        return out_of_distribution(own, named, config=config, seed=settings.seed, draws=settings.draws)

    tasks = []
    for inside in split_pairs(run, clean_traces(run)):
        outside = {str(pair[1].config.data): pair for pair in ood_pairs if recorded_alike(pair[1], inside[1])}
        if outside:
            traces = (*inside, *(each for pair in outside.values() for each in pair))
            tasks.append(Task(inside[1].name, traces, partial(compute, inside, outside), inside[1]))
    return tasks


def run_time_tasks(run: Analyzed, settings: Settings) -> list[Task]:
    """The clock of the training, whatever else the machine did at the time."""
    last = last_metrics(run.folder) if len(run.runs) == 1 else None
    if not last or not last.get("seconds"):
        return []

    def compute() -> pd.DataFrame:
        rows, seconds, epochs = Rows(1), float(last["seconds"]), int(last["epoch"])
        rows.value("seconds_per_epoch", seconds / epochs)
        rows.value("training_hours", seconds / 3600)
        rows.value("images_per_second", last["step"] * run.config.batch_size / seconds)
        return rows.table()

    digest = f"{last['epoch']} epochs in {last['seconds']} s"
    return [Task("metrics.jsonl", (), compute, digests={"metrics.jsonl": digest})]


def split_pairs(run: Analyzed, traces: Sequence[TraceFile]) -> list[tuple[TraceFile, TraceFile]]:
    """For every test trace the validation trace of the same data that was recorded alike; of several the largest.

    Folds have no test images of their own.
    """
    if len(run.runs) > 1:
        return []
    pairs = []
    for test in (each for each in traces if each.config.split == "test"):
        same = [
            each
            for each in traces
            if each.config.split == "validation" and each.config.data == test.config.data and recorded_alike(each, test)
        ]
        if same:
            pairs.append((max(same, key=lambda each: each.images), test))
    return pairs


def recorded_alike(one: TraceFile, other: TraceFile) -> bool:
    """Whether two traces are of the same network, run in the same way."""
    names = ("kernel", "schedule", "noise", "steps")
    same = all(getattr(one.config, name) == getattr(other.config, name) for name in names)
    return same and one.provenance.weights == other.provenance.weights


TASKS: dict[str, Callable[[Analyzed, Settings], list[Task]]] = {
    "speed_accuracy": speed_accuracy_tasks,
    "selection_latency": selection_latency_tasks,
    "prototypicality": prototypicality_tasks,
    "taxonomic_compliance": taxonomic_compliance_tasks,
    "persistent_noise": persistent_noise_tasks,
    "transient_noise": transient_noise_tasks,
    "learned_stopper": learned_stopper_tasks,
    "out_of_distribution": out_of_distribution_tasks,
    "run_time": run_time_tasks,
}
