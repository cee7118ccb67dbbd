"""Reproduce an experiment: train, record, analyze, draw. Each stage skips finished work and can be interrupted."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import Parallel, delayed

from cascaded import figures
from cascaded.errors import InputError
from cascaded.files import check_writable
from cascaded.hub.locate import NETWORKS
from cascaded.paper.experiments import Experiment, Network
from cascaded.paper.published import write_estimates
from cascaded.paper.scales import Scale
from cascaded.paper.values import with_paper
from cascaded.progress import cores, counted, progress
from cascaded.results.analyzed import find_analyzed
from cascaded.results.compare import estimates
from cascaded.results.gallery_images import write_galleries
from cascaded.results.run import run_analyses
from cascaded.results.table import load
from cascaded.results.tasks import Settings
from cascaded.traces.config import RecordingConfig
from cascaded.traces.record import record
from cascaded.training.engines import check_ended, run_jobs
from cascaded.training.load import load_run
from cascaded.training.loop import train
from cascaded.training.runs import is_done, resolve_init
from cascaded.training.sweep import Job

RUNS, RESULTS = "runs", "results"
Message = Callable[[str], object]


@dataclass(frozen=True)
class Reproduction:
    """An experiment at a scale, in a folder.

    Attributes:
        experiment: What is reproduced.
        scale: How large.
        out: Runs are in OUT/runs, shared between experiments; tables and figures in OUT/results.
        no_train: Use trained networks only.
    """

    experiment: Experiment
    scale: Scale
    out: Path
    no_train: bool = False

    @property
    def networks(self) -> list[Network]:
        """The networks of this scale; of `no_train`, those that have a trained run."""
        found = [each for each in self.experiment.networks if self.scale.has(each)]
        return [each for each in found if not self.no_train or self.folders(each)]

    @property
    def runs(self) -> Path:
        """Where the runs of all experiments are."""
        return self.out / RUNS

    def jobs(self, network: Network) -> list[Job]:
        """The runs of a network that are trained here, one per seed and fold."""
        if network.shipped:
            return []
        folds = [None] if network.folds is None else [(k + 1, network.folds) for k in range(network.folds)]
        return [self._job(network, seed, fold) for seed in self.scale.seeds_of(network) for fold in folds]

    def _job(self, network: Network, seed: int, fold: tuple[int, int] | None = None) -> Job:
        config = replace(self.scale.config(network, seed), fold=fold)
        if network.noise and self.scale.noise_from_clean:
            config = replace(config, init_from=str(self._job(replace(network, noise=None), seed).folder))
        return Job(config, self.runs / network.part)

    def clean_jobs(self) -> list[Job]:
        """The runs whose weights others start from."""
        noisy = [each for each in self.networks if each.noise and self.scale.noise_from_clean]
        jobs = [self._job(replace(each, noise=None), seed) for each in noisy for seed in self.scale.seeds_of(each)]
        return list(dict.fromkeys(jobs))

    def all_jobs(self) -> list[Job]:
        """All runs that are trained here, each once, in the order in which they can be trained."""
        jobs = [job for network in self.networks for job in self.jobs(network)]
        return list(dict.fromkeys([*self.clean_jobs(), *jobs]))

    def folders(self, network: Network) -> list[Path]:
        """The folders of a network's runs; of `no_train`, those that are trained to the end."""
        found = [self.runs / network.name / "0"] if network.shipped else [job.folder for job in self.jobs(network)]
        return [folder for folder in found if not self.no_train or is_done(folder)]

    def all_folders(self) -> list[Path]:
        """The folders of all runs."""
        return [folder for network in self.networks for folder in self.folders(network)]

    def places(self, folds: bool | None = None) -> list[Path]:
        """What is analyzed: the folders of all runs; for folds, the folder that contains them all.

        Args:
            folds: True for cross-validated networks only, False for all others.
        """
        found = [
            self.runs / network.part / network.name if network.folds else folder
            for network in self.networks
            if folds is None or bool(network.folds) == folds
            for folder in self.folders(network)
        ]
        return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Outcome:
    """What an experiment gave.

    Attributes:
        table: Our estimates, with the paper's numbers beside them.
        files: What was written.
        notes: What could not be computed or drawn, and why.
    """

    table: pd.DataFrame
    files: tuple[Path, ...]
    notes: tuple[str, ...]


def reproduce(work: Reproduction, num_workers: int | None = None, on_message: Message = print) -> Outcome:
    """All stages of an experiment, as far as they are not done.

    Args:
        work: The experiment, its scale and its folder.
        num_workers: Processes at a time; one per core by default.
        on_message: Called with one line per stage.
    """
    name = work.experiment.name
    if not work.networks:
        raise InputError(f"no network of {name} is trained in {work.runs}: leave out --no-train to train them")
    if not work.no_train:
        on_message(f"{name}, 1 of 4: training {counted(len(work.all_jobs()), 'network')}")
        train_networks(work, num_workers)
    on_message(f"{name}, 2 of 4: recording the outputs of {counted(len(work.all_folders()), 'network')} at every step")
    record_networks(work, num_workers)
    on_message(f"{name}, 3 of 4: analyzing the recordings")
    notes = analyze_networks(work, num_workers)
    on_message(f"{name}, 4 of 4: writing the table and drawing the figures")
    outcome = write_results(work)
    return replace(outcome, notes=(*notes, *outcome.notes))


def train_networks(work: Reproduction, num_workers: int | None = None) -> None:
    """Copy the networks that come with the package; train the others, one alone or with one worker in this process."""
    check_writable(work.runs)
    for network in work.networks:
        if network.shipped:
            for folder in work.folders(network):
                shutil.copytree(NETWORKS / network.shipped, folder, dirs_exist_ok=True)
    for jobs in (work.clean_jobs(), work.all_jobs()):
        waiting = [job for job in jobs if job.state() != "done"]
        if len(waiting) > 1 and num_workers != 1:
            with progress("training", len(waiting)) as bar:
                check_ended(run_jobs(waiting, num_workers=num_workers, on_end=lambda job, status: bar.advance()))
            continue
        for job in waiting:
            config, start = resolve_init(job.config)
            train(config, job.folder, init_from=start, resume=True)


def record_networks(work: Reproduction, num_workers: int | None = None) -> None:
    """Record all networks, several at a time."""
    tasks = [
        (folder, configs)
        for network in work.networks
        if (configs := work.scale.recordings(network, work.experiment))
        for folder in work.folders(network)
    ]
    _in_parallel("recording", _record, tasks, num_workers)


def _record(folder: Path, configs: Sequence[RecordingConfig]) -> None:
    run = load_run(folder)
    for config in configs:
        record(run, config)


def analyze_networks(work: Reproduction, num_workers: int | None = None) -> list[str]:
    """Analyze all recordings, several networks at a time; returns what could not be computed."""
    settings = Settings(epochs=work.scale.fit_epochs)
    tasks = [(folder, work.experiment.analyses, settings) for folder in work.places()]
    found = _in_parallel("analyzing", _analyze, tasks, num_workers)
    return [note for notes in found for note in notes]


def _analyze(place: Path, analyses: Sequence[str], settings: Settings) -> list[str]:
    failures = run_analyses([place], analyses, settings)
    notes = [f"{each.run}: {each.analysis} of {each.trace} failed, {each.reason}" for each in failures]
    if "selection_latency" in analyses:
        for analyzed in find_analyzed([place]):
            with _noting(notes, f"no gallery of {place}"):
                write_galleries(analyzed, settings)
    return notes


def write_results(work: Reproduction) -> Outcome:
    """OUT/results/NAME.csv and OUT/results/figures/NAME-FIGURE.*, from the results table."""
    df, experiment, folder = results_of(work), work.experiment, work.out / RESULTS
    table = table_of(df, experiment)
    files, notes = [write_estimates(table, folder / f"{experiment.name}.csv")], []
    drawings = [(each.__name__.replace("_", "-"), each, df) for each in experiment.figures]
    if experiment.beside_paper:
        drawings.append(("beside-paper", figures.estimates_beside_paper, table))
    for name, draw, rows in drawings:
        with _noting(notes, experiment.name):
            stem = folder / "figures" / f"{experiment.name}-{name}"
            files += figures.save(draw(rows), stem, kinds=("svg", "png")).values()
    return Outcome(table, tuple(files), tuple(notes))


@contextmanager
def _noting(notes: list[str], name: str) -> Iterator[None]:
    """A figure that needs more than there is becomes a note."""
    try:
        yield
    except InputError as error:
        notes.append(f"{name}: {error}")


def results_of(work: Reproduction) -> pd.DataFrame:
    """The rows of an experiment: those of its schedules, times and kernels, whatever else was recorded."""
    df = load(work.places(folds=False), *work.experiment.analyses)
    if folds := work.places(folds=True):  # every training image is a validation image of one fold
        df = pd.concat([df[df["split"] != "validation"], load(folds, *work.experiment.analyses)], ignore_index=True)
    recorded = {(each.time, each.schedule) for each in work.experiment.recordings}
    if not recorded:
        return df
    if not any(schedule == "serial" for _, schedule in recorded):
        df = df[df["method"].str.startswith("serial") | (df["schedule"] != "serial")]
    times = {"coarse" if schedule == "serial" else time for time, schedule in recorded}
    kernels = {"none", *(each.kernel for each in work.experiment.recordings)}
    return df[df["time"].isna() | (df["time"].isin(times) & df["kernel"].isin(kernels))]


def table_of(df: pd.DataFrame, experiment: Experiment) -> pd.DataFrame:
    """The table of an experiment: estimates of its metrics with the paper's numbers beside them."""
    rows = df[df["metric"].isin(experiment.metrics)]
    if experiment.where and not rows.empty:
        rows = rows.query(experiment.where, engine="python")
    return with_paper(estimates(rows))


def _in_parallel(
    label: str, function: Callable[..., Any], tasks: Sequence[tuple], num_workers: int | None
) -> list[Any]:
    """Call a function for every task in other processes, with a progress bar; with one task or worker in this one."""
    workers = Parallel(min(num_workers or cores(), max(len(tasks), 1)), return_as="generator_unordered")
    found: list[Any] = []
    with progress(label, len(tasks)) as bar:
        for result in workers(delayed(function)(*task) for task in tasks):
            found.append(result)
            bar.advance()
    return found
