"""What can be asked of a subject: which traces each analysis reads, and how it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np

from cascaded.analysis import resampling
from cascaded.analysis.curves import speed_accuracy
from cascaded.analysis.latency import gallery, selection_latency
from cascaded.analysis.prototypes import prototypicality
from cascaded.analysis.ranks import on_ranks
from cascaded.analysis.robustness import persistent_noise, transient_noise
from cascaded.analysis.statistics import Statistic, bootstrap
from cascaded.analysis.taxonomy import taxonomic_compliance
from cascaded.errors import InputError
from cascaded.results.asked import Asked, Row
from cascaded.results.measures import CLUTTERED, JUDGED, measures_of
from cascaded.results.subjects import Subject, what_of
from cascaded.traces.config import NoiseProtocol
from cascaded.traces.store import TraceFile
from cascaded.traces.trace import Trace, Unit

DRAWS = 200
"""How often items are drawn for an interval."""


@dataclass(frozen=True)
class Settings:
    """What analyses may be told.

    Attributes:
        failing: Share of items that may fail to reach the threshold of selection latency, which is chosen by it.
        epochs: Of what is trained, the stopper and MetaCog; the paper's 300 by default.
        seed: Where training and draws start from.
    """

    failing: float = 0.1
    epochs: int = 300
    seed: int = 0

    def __post_init__(self):
        if self.seed < 0:
            raise InputError(f"--seed is {self.seed}: give 0 or more")
        if not 0 <= self.failing < 1:
            raise InputError(f"--failing is {self.failing}: give a share of 0 or more, below 1")
        if self.epochs < 1:
            raise InputError(f"--epochs is {self.epochs}: give at least 1")


@dataclass(frozen=True)
class Question:
    """One analysis of some traces of one subject.

    Attributes:
        analysis: Its name.
        of: What it is asked of: the name of a trace, or what several have in common.
        traces: Which traces it reads.
        answer: Computes the result, as JSON has it, with a `headline`.
        statistics: Headlines as functions of drawn items, where there are such.
        items: How many items there are to draw.
        place: Which of the traces is the one that is judged; others are trained on, or held against it.
        beside: What else it is asked of, in words: answers stand side by side only where this is the same too.
    """

    analysis: str
    of: str
    traces: tuple[TraceFile, ...]
    answer: Callable[[], dict[str, Any]]
    statistics: Callable[[], Mapping[str, Statistic]] = dict
    items: int = 0
    place: int = 0
    beside: str = ""

    @property
    def made_from(self) -> dict[str, str]:
        """The digest of every trace it reads: the same traces give the same answer."""
        return {found.name: found.digest for found in self.traces}

    @property
    def row(self) -> Row:
        """What is asked, of which images: answers to the same stand side by side."""
        return self.asked.row

    @property
    def schedule(self) -> str:
        """How the network was run."""
        return self.asked.schedule

    @property
    def asked(self) -> Asked:
        """What is asked of which images, in words."""
        found = self.traces[self.place]
        config = found.config
        noise = {"noise": config.noise, "protocol": str(config.protocol)} if config.noise else {}
        told = {name: str(getattr(config, name)) for name in ("data", "split", "schedule", "kernel")}
        told |= {"images": found.provenance.images, "shown": found.provenance.items}
        what = f"{what_of(found)}, {self.beside}" if self.beside else what_of(found)
        return Asked(self.analysis, what, steps=found.header.steps, count=found.images, **told, **noise)

    @cached_property
    def judged(self) -> Trace:
        """The trace that is judged, loaded once."""
        return self.traces[self.place].load()

    def intervals(self, seed: int) -> dict[str, Any]:
        """A bootstrap interval over items for each headline that has one."""
        return {
            name: bootstrap(statistic, self.items, DRAWS, seed=seed).to_json()
            for name, statistic in self.statistics().items()
        }


def known_tests(subject: Subject) -> list[TraceFile]:
    """Still images of the network's own classes that it was not trained on."""
    return [
        found
        for found in subject.traces
        if found.provenance.in_distribution and found.config.noise is None and found.config.split != "train"
    ]


def one_each(
    analysis: str,
    traces: Iterable[TraceFile],
    answer: Callable[[Trace], dict[str, Any]],
    statistics: Callable[[Trace], Mapping[str, Statistic]],
) -> list[Question]:
    """The same question of every trace."""
    return [
        Question(
            analysis,
            found.name,
            (found,),
            lambda found=found: answer(found.load()),
            lambda found=found: statistics(found.load()),
            found.images,
        )
        for found in traces
    ]


def ask_speed_accuracy(subject: Subject, settings: Settings) -> list[Question]:
    """Threshold and deadline, in steps, block updates and operations."""

    def answer(trace: Trace) -> dict[str, Any]:
        told, units = speed_accuracy(trace).to_json(), get_args(Unit)
        known = [unit for unit in units if unit != "steps" and len(getattr(trace.provenance, unit)) == trace.steps]
        return told | {f"in {unit}": speed_accuracy(trace, unit=unit).to_json() for unit in known}

    return one_each("speed_accuracy", known_tests(subject), answer, resampling.of_speed_accuracy)


def ask_selection_latency(subject: Subject, settings: Settings) -> list[Question]:
    """From which step on a class stays above theta, and who is fastest and slowest."""

    def answer(trace: Trace) -> dict[str, Any]:
        latency = selection_latency(trace, failing=settings.failing)
        return latency.to_json() | {"gallery": gallery(trace, latency).to_json()}

    def statistics(trace: Trace) -> Mapping[str, Statistic]:
        return resampling.of_selection_latency(selection_latency(trace, failing=settings.failing))

    return one_each("selection_latency", known_tests(subject), answer, statistics)


def ask_prototypicality(subject: Subject, settings: Settings) -> list[Question]:
    """Spearman's rho of negative latency with every measure that is known of the images."""

    def answer(found: TraceFile) -> dict[str, Any]:
        trace, (measures, missing) = found.load(), measures_of(found)
        latency = selection_latency(trace, failing=settings.failing).steps
        told = prototypicality(trace, measures, latency=latency, draws=DRAWS, seed=settings.seed).to_json()
        intervals = {f"rho {name}": each["rho"] for name, each in told["measures"].items()}
        return told | {"intervals": intervals, "not measured": missing}

    def statistics(found: TraceFile) -> Mapping[str, Statistic]:
        latency = selection_latency(found.load(), failing=settings.failing).steps
        whole = {name: values for name, values in measures_of(found)[0].items() if not np.isnan(values).any()}
        return {f"rho {name}": on_ranks(-latency, values) for name, values in whole.items()}

    return [
        Question(
            "prototypicality",
            found.name,
            (found,),
            lambda found=found: answer(found),
            lambda found=found: statistics(found),
            found.images,
        )
        for found in known_tests(subject)
        if found.config.embeddings or found.config.data in (JUDGED, CLUTTERED)
    ]


def ask_taxonomic_compliance(subject: Subject, settings: Settings) -> list[Question]:
    """How often a wrong answer is of the right coarse class."""
    traces = [found for found in known_tests(subject) if found.provenance.coarse_of]
    answer = resampling.of_taxonomic_compliance
    return one_each("taxonomic_compliance", traces, lambda trace: taxonomic_compliance(trace).to_json(), answer)


def ask_persistent_noise(subject: Subject, settings: Settings) -> list[Question]:
    """Accuracy while every frame is noisy."""
    traces = noisy(subject, "persistent")
    answer = resampling.of_persistent_noise
    return one_each("persistent_noise", traces, lambda trace: persistent_noise(trace).to_json(), answer)


def ask_transient_noise(subject: Subject, settings: Settings) -> list[Question]:
    """What noisy frames between clean ones leave of the confidence in the true class; all lengths as one."""
    groups: dict[str, list[TraceFile]] = {}
    for found in noisy(subject, "transient"):
        frames = found.config.noise_frames[0]
        groups.setdefault(found.name.replace(f"-transient-{frames}", "-transient"), []).append(found)

    def load(group: list[TraceFile]) -> list[Trace]:
        return [found.load() for found in group]

    return [
        Question(
            "transient_noise",
            name,
            tuple(group),
            lambda group=group: transient_noise(load(group)).to_json(),
            lambda group=group: resampling.of_transient_noise(load(group)),
            group[0].images,
            beside=_lengths(group),
        )
        for name, group in groups.items()
    ]


def _lengths(group: list[TraceFile]) -> str:
    """How long the noise of some traces lasts: `1 to 6 noisy steps`."""
    frames = sorted(found.config.noise_frames[0] for found in group)
    whole = len(frames) > 2 and frames == list(range(frames[0], frames[-1] + 1))
    told = f"{frames[0]} to {frames[-1]}" if whole else ", ".join(map(str, frames))
    return f"{told} noisy step{'s' if frames[-1] > 1 else ''}"


def noisy(subject: Subject, protocol: NoiseProtocol) -> list[TraceFile]:
    """Traces of the network's own classes under noise of a kind."""
    return [
        found
        for found in subject.traces
        if found.config.noise and found.config.protocol == protocol and found.provenance.in_distribution
    ]
