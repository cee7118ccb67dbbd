"""Carrying out an item: from nothing, or from whatever is there already, to its table and figures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cascaded.errors import InputError
from cascaded.paper.experiments import Item
from cascaded.paper.network import Network
from cascaded.paper.scales import Scale
from cascaded.paper.showings import shown_to
from cascaded.paper.stages import COMPARISON, analyse_all, compare, record_all, train_all
from cascaded.progress import counted, print_line
from cascaded.training.config import RunConfig
from cascaded.training.runs import check_config, has_config, is_done, read_config
from cascaded.training.sweep import Job

if TYPE_CHECKING:
    from rich.console import Console

    from cascaded.exhibits.kinds import Figure
    from cascaded.exhibits.material import Material
    from cascaded.paper.outcome import Outcome
    from cascaded.paper.rows import Row
    from cascaded.training.workers import Workers

RUNS, RESULTS = "runs", "results"


@dataclass(frozen=True)
class Work:
    """An item at a scale, in a folder.

    Attributes:
        item: What is reproduced.
        scale: How large.
        out: Where everything is kept: runs in OUT/runs, shared between items, tables and figures in OUT/results.
        as_is: Whether nothing is trained, and only networks count that are.
    """

    item: Item
    scale: Scale
    out: Path
    as_is: bool = False

    @property
    def networks(self) -> list[Network]:
        """What is trained at this scale."""
        return [each for each in self.item.networks if self.scale.has(each) and (self.jobs(each) or not self.as_is)]

    @property
    def lacking(self) -> list[str]:
        """The runs of this scale that are not trained to the end, by their places."""
        planned = replace(self, as_is=False)
        folders = [job.folder for job in planned.all_jobs(planned.networks)]
        return [place_of(str(folder), self.runs) for folder in folders if not is_done(folder)]

    @property
    def parts(self) -> dict[str, list[Network]]:
        """The networks by what they are compared with."""
        found: dict[str, list[Network]] = {}
        for network in self.networks:
            found.setdefault(network.part, []).append(network)
        return found

    @property
    def runs(self) -> Path:
        """Where the networks of all items are."""
        return self.out / RUNS

    def jobs(self, network: Network) -> list[Job]:
        """The runs of a network, one a seed and fold."""
        planned = network.jobs(self.scale.seeds_of(network), self.runs, self.scale.config(network))
        return [job for job in planned if not self.as_is or is_done(job.folder)]

    def asked(self) -> list[Job]:
        """Every run with its configuration, and what it begins with."""
        found = []
        for network in self.networks:
            for job, first in zip(self.jobs(network), self._starts(network), strict=True):
                start = str(first.folder) if first else None
                found.append(replace(job, config=replace(job.config, init_from=start)))
        return found

    def configs(self) -> dict[Job, RunConfig]:
        """What every run that is there should be; the weights that it began with aside."""
        there = [job for job in self.asked() if has_config(job.folder)]
        return {job: replace(job.config, init_from=read_config(job.folder).init_from) for job in there}

    def first(self) -> list[Job]:
        """The runs that others begin with."""
        return list(dict.fromkeys(job for each in self.networks for job in self._starts(each) if job is not None))

    def _starts(self, network: Network) -> list[Job | None]:
        """What each run of a network begins with: where it learns a noise, perhaps with the one that has not."""
        if not (network.noise and self.scale.starts):
            return [None for _ in self.jobs(network)]
        clean = replace(network, noise=None)
        config = self.scale.config(clean)
        return [clean.jobs((job.config.seed,), self.runs, config)[0] for job in self.jobs(network)]

    def places(self, networks: Sequence[Network]) -> list[Path]:
        """The folders of some networks' runs; of folds, the one that holds them all."""
        found = [
            job.out / job.name.partition("/")[0] if job.config.fold else job.folder for job in self.all_jobs(networks)
        ]
        return list(dict.fromkeys(found))

    def all_jobs(self, networks: Sequence[Network]) -> list[Job]:
        """The runs of some networks."""
        return [job for network in networks for job in self.jobs(network)]


def carry_out(work: Work, pool: Workers, jobs: int | None, console: Console) -> Outcome:
    """Train, record, analyse and draw what an item needs and what is not there yet.

    Args:
        work: The item, its scale and its folder.
        pool: Who records and analyses.
        jobs: Networks that are trained at a time; as many as there are cores by default.
        console: Who is told how far it is.
    """
    from cascaded.paper.commands import commands_for
    from cascaded.paper.outcome import write_outcome

    name = work.item.name
    if not work.networks:
        raise InputError(f"no network of {name} is trained in {work.runs}: leave --as-is out, and they will be")
    for job, config in work.configs().items():
        check_config(job.folder, config)
    if not work.as_is:
        print_line(console, f"{name}, 1 of 4: training {counted(len(work.first()) + len(work.asked()), 'network')}")
        for asked in (work.first(), work.asked()):
            if asked:
                train_all(asked, jobs)
    if work.item.measures:
        _record_and_analyse(work, pool, console)
    print_line(console, f"{name}, 4 of 4: tables and figures")
    rows, figures = findings(work)
    commands = commands_for(replace(work, as_is=False))
    return write_outcome(work.item, work.scale, rows, figures, commands, work.lacking, work.out / RESULTS)


def _record_and_analyse(work: Work, pool: Workers, console: Console) -> None:
    name, names = work.item.name, tuple(work.item.analyses)
    shown = [
        (job.folder, shown_to(network, work.item, work.scale))
        for network in work.networks
        for job in work.jobs(network)
    ]
    print_line(console, f"{name}, 2 of 4: recording the outputs of {counted(len(shown), 'network')} at every step")
    pool.do("recording", record_all, shown)
    print_line(console, f"{name}, 3 of 4: analysing what they said")
    pool.do("analysing", analyse_all, [(place, work.scale.learned, names) for place in work.places(work.networks)])
    for part in work.parts:
        folder = work.runs / part
        compare(folder, work.scale.learned, folder / "analysis.txt", console)


def findings(work: Work) -> tuple[list[Row], list[Figure]]:
    """Table and figures of an item, from what was analysed; nothing is computed but means over seeds."""
    from cascaded.exhibits.exhibition import figures as chosen_figures
    from cascaded.exhibits.speed import key
    from cascaded.paper.rows import drawn, rows_of, shown_by
    from cascaded.paper.run_time import run_times

    if not work.item.measures:
        return run_times(work), []
    rows, figures = [], []
    for networks in work.parts.values():
        material = shown_by(work.item, material_of(work, networks))
        rows += [_named(row, work) for row in rows_of(work.item, material, networks[0].data, networks[0].noise or "")]
        own = chosen_figures(material, work.item.figures)
        # another item may draw the same with other networks
        figures += [replace(figure, key=key(work.item.name, figure.key)) for figure in own]
    return rows, [*(drawn(work.item, rows) if work.item.drawn else []), *figures]


def material_of(work: Work, networks: Sequence[Network]) -> Material:
    """What is known of some networks of one part, compared as all of that part were."""
    from cascaded.exhibits.material import gather

    compared = work.runs / networks[0].part / COMPARISON
    return gather(work.places(networks), compared if compared.exists() else None)


def _named(row: Row, work: Work) -> Row:
    return replace(row, runs=tuple(place_of(run, work.runs) for run in row.runs))


def place_of(run: str, runs: Path) -> str:
    """A run by its place among the runs of a reproduction, wherever that is: `cifar10/cascaded-td-lam0/0`."""
    return Path(os.path.relpath(run, runs)).as_posix()
