"""An experiment at a scale: its runs, and its table and figures from the rows that there are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from cascaded import figures
from cascaded.errors import InputError
from cascaded.paper.experiments import Experiment, Network
from cascaded.paper.published import write_estimates
from cascaded.paper.scales import Scale
from cascaded.paper.status import RUNS
from cascaded.paper.values import with_paper
from cascaded.paper.work import DONE, Done
from cascaded.results.compare import estimates
from cascaded.results.operations import accuracy_at_operations
from cascaded.results.table import empty, load, results_file
from cascaded.training.runs import is_done
from cascaded.training.sweep import Job

RESULTS = "results"


@dataclass(frozen=True)
class Reproduction:
    """An experiment at a scale, in a folder.

    Attributes:
        experiment: What is reproduced.
        scale: How large.
        out: Runs are in OUT/runs, shared between experiments; tables and figures in OUT/results.
        no_train: Use trained networks only.
        source: Folder with the rows of networks, laid out like OUT/runs, that is read in its place.
    """

    experiment: Experiment
    scale: Scale
    out: Path
    no_train: bool = False
    source: Path | None = None

    @property
    def networks(self) -> list[Network]:
        """The networks of this scale; of `no_train`, those that have a trained run."""
        found = [each for each in self.experiment.networks if self.scale.has(each)]
        return [each for each in found if not self.no_train or any(map(is_trained, self.folders(each)))]

    @property
    def runs(self) -> Path:
        """Where the runs of all experiments are."""
        return self.source or self.out / RUNS

    def jobs(self, network: Network, *seeds: int) -> list[Job]:
        """The runs of a network that are trained here, one per seed and fold; all seeds by default."""
        if network.shipped:
            return []
        folds = [None] if network.folds is None else [(k + 1, network.folds) for k in range(network.folds)]
        return [self._job(network, seed, fold) for seed in seeds or self.scale.seeds_of(network) for fold in folds]

    def _job(self, network: Network, seed: int, fold: tuple[int, int] | None = None) -> Job:
        config = replace(self.scale.config(network, seed), fold=fold)
        if start := self.scale.start_of(network):
            config = replace(config, init_from=str(self._job(start, seed).folder))
        return Job(config, self.runs / network.part)

    def all_jobs(self) -> list[Job]:
        """All runs that are trained here, each once, in the order in which they can be trained."""
        starts = [(self.scale.start_of(network), network) for network in self.networks]
        jobs = [job for start, each in starts if start for job in self.jobs(start, *self.scale.seeds_of(each))]
        return list(dict.fromkeys([*jobs, *(job for network in self.networks for job in self.jobs(network))]))

    def folders(self, network: Network) -> list[Path]:
        """The folders of a network's runs."""
        return [self.runs / network.name / "0"] if network.shipped else [job.folder for job in self.jobs(network)]

    def joined_folder(self, network: Network, seed: int) -> Path:
        """Where the results of all folds are."""
        return self.runs / network.part / network.name / f"folds-{seed}"

    def result_folders(self, network: Network) -> list[Path]:
        """Where the results of a network are written, one folder per seed; all folds have one."""
        if network.folds:
            return [self.joined_folder(network, seed) for seed in self.scale.seeds_of(network)]
        return self.folders(network)

    def places(self, *, folds: bool) -> list[Path]:
        """The folders with results of this experiment.

        Args:
            folds: Those of cross-validated networks; otherwise those of all others.
        """
        networks = [network for network in self.networks if bool(network.folds) == folds]
        found = [folder for network in networks for folder in self.result_folders(network)]
        names = self.experiment.analyses
        return [folder for folder in found if any(results_file(folder, name).exists() for name in names)]

    def counts(self) -> tuple[int, int]:
        """How many networks have results of this experiment, and how many it has in all."""
        measured = len(self.places(folds=False)) + len(self.places(folds=True))
        return measured, sum(len(self.result_folders(network)) for network in self.networks)


def is_trained(folder: Path) -> bool:
    """Whether a network was trained to the end; its weights may have been deleted since."""
    return (folder / DONE).exists() or is_done(folder)


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


def write_results(work: Reproduction) -> Outcome:
    """OUT/results/NAME.csv and OUT/results/figures/NAME-FIGURE.*, from the results table."""
    df, experiment, folder = results_of(work), work.experiment, work.out / RESULTS
    table = table_of(df, experiment)
    files, notes = [write_estimates(table, folder / f"{experiment.name}.csv")], _notes(work)
    drawings = [(each.__name__.replace("_", "-"), each, df) for each in experiment.figures]
    if experiment.beside_paper:
        drawings.append(("beside-paper", figures.estimates_beside_paper, table))
    for name, draw, rows in drawings:
        with _noting(notes, experiment.name):
            stem = folder / "figures" / f"{experiment.name}-{name}"
            files += figures.save(draw(rows), stem, kinds=("svg", "png")).values()
    return Outcome(table, tuple(files), tuple(notes))


def _notes(work: Reproduction) -> list[str]:
    """What could not be computed of the networks."""
    places = [*work.places(folds=False), *work.places(folds=True)]
    return list(dict.fromkeys(note for place in places for note in Done.read(place).notes))


@contextmanager
def _noting(notes: list[str], name: str) -> Iterator[None]:
    """A figure that needs more than there is becomes a note."""
    try:
        yield
    except InputError as error:
        notes.append(f"{name}: {error}")


def results_of(work: Reproduction) -> pd.DataFrame:
    """The rows of an experiment: those of its schedules, times and kernels, whatever else was recorded."""
    df, folded = _rows(work, folds=False), _rows(work, folds=True)
    if len(folded):  # every training image is a validation image of one fold
        df = pd.concat([df[df["split"] != "validation"], folded], ignore_index=True)
    if df.empty:
        raise InputError(f"no network of {work.experiment.name} is analyzed in {work.runs} yet")
    recorded = {(each.time, each.schedule) for each in work.experiment.recordings}
    if not recorded:
        return df
    if not any(schedule == "serial" for _, schedule in recorded):
        df = df[df["method"].str.startswith("serial") | (df["schedule"] != "serial")]
    times = {"coarse" if schedule == "serial" else time for time, schedule in recorded}
    kernels = {"none", *(each.kernel for each in work.experiment.recordings)}
    return df[df["time"].isna() | (df["time"].isin(times) & df["kernel"].isin(kernels))]


def _rows(work: Reproduction, folds: bool) -> pd.DataFrame:
    """The rows of single networks or of joined folds; none if none is analyzed yet."""
    names = work.experiment.analyses
    files = [results_file(place, name) for place in work.places(folds=folds) for name in names]
    found = [file for file in files if file.exists()]
    return load(found) if found else empty()


def table_of(df: pd.DataFrame, experiment: Experiment) -> pd.DataFrame:
    """The table of an experiment: estimates of its metrics with the paper's numbers beside them."""
    rows = pd.concat([df, accuracy_at_operations(df)], ignore_index=True)
    rows = rows[rows["metric"].isin(experiment.metrics)]
    if experiment.where and not rows.empty:
        rows = rows.query(experiment.where, engine="python")
    return with_paper(estimates(rows))
