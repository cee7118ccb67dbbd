"""The queue of a reproduction: one process per network trains, records and analyzes it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from cascaded.errors import InputError
from cascaded.paper.estimate import seconds_of, steps_of
from cascaded.paper.experiments import Network
from cascaded.paper.keep import tidy, tidy_fold
from cascaded.paper.reproduce import Reproduction, is_trained
from cascaded.paper.status import PAUSE, Entry, QueueFile, progress_of
from cascaded.paper.work import Done, Keep, Measurement, Work
from cascaded.progress import cores
from cascaded.results.run import provenance_of
from cascaded.results.tasks import Settings
from cascaded.training.config import ExecutionConfig, config_hash
from cascaded.training.engines import Status, run_jobs
from cascaded.training.runs import LockedError, check_config, has_config, locked, read_config
from cascaded.training.sweep import State, progress_in


class PausedError(Exception):
    """The queue was paused."""


@dataclass(frozen=True, eq=False)
class Task:
    """A network of the queue, or its folds joined.

    Attributes:
        stage: Number of its stage, from 1.
        work: What is done.
        out: The folder of all runs.
        after: What has to be done first: the network that it starts from, or the folds that are joined.
        joined: For a fold, the work that it is recorded for: once that is done, its recordings are deleted.
    """

    stage: int
    work: Work
    out: Path
    after: tuple[Task, ...] = ()
    joined: Work | None = None

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self.work.path

    @property
    def name(self) -> str:
        """The folder, relative to that of all runs."""
        return self.folder.relative_to(self.out).as_posix()

    def state(self) -> State:
        """Done or waiting; another run in its folder is refused."""
        config = self.work.config
        if config is not None and has_config(self.folder):
            # the weights that it started from may have been deleted; training compares them
            check_config(self.folder, replace(config, init_from=read_config(self.folder).init_from))
        is_joined = self.joined is not None and self.joined.is_done()
        return "done" if is_joined or self.work.is_done() else "waiting"

    def progress(self) -> str:
        """`epoch 3 of 10, 34 %`; of a finished network its accuracy."""
        return progress_in(self.folder) if self.work.is_done() else progress_of(self.entry())

    def command(self, execution: ExecutionConfig) -> list[str]:
        """The words after `python -m` that do the work; what it is, is written to its folder."""
        self.work.write()
        return ["cascaded.paper.worker", str(self.folder)]

    def tidy(self) -> None:
        """Delete what is not kept of a finished network; of a fold, when the joined folds are analyzed."""
        if self.joined is not None:
            if self.joined.is_done():
                tidy_fold(self.folder, Done.read(self.joined.path).keep)
        elif not self.work.folds and self.work.is_done():
            tidy(self.folder, Done.read(self.folder).keep)

    def entry(self, state: State = "waiting", message: str = "") -> Entry:
        """Its line in the file of the queue."""
        config = self.work.config
        kind = "" if config is None else f"{config_hash(config)} {config.method}"
        epochs, steps = (0, 0) if config is None else (config.epochs, steps_of(config))
        return Entry(self.stage, self.name, str(self.folder), kind, epochs, steps, state, message)


def plan(works: Sequence[Reproduction], keep: Keep = "weights", stages: Sequence[int] = ()) -> list[Task]:
    """All networks of some experiments of one scale, in the order of its stages.

    Args:
        works: The experiments, in one folder.
        keep: What stays of a network once everything is measured.
        stages: Numbers of stages; all by default. A network that others start from is part of it in any case.
    """
    planner = _Planner([(work, set(work.networks)) for work in works], keep, {})
    for number, stage in enumerate(works[0].scale.stages, start=1):
        if not stages or number in stages:
            for seed in stage.seeds:
                for network in stage.networks:
                    if planner.users(network):
                        planner.add(number, network, seed)
    return [task for group in planner.tasks.values() for task in group]


@dataclass(frozen=True)
class _Planner:
    """Makes tasks, each once."""

    works: Sequence[tuple[Reproduction, set[Network]]]
    keep: Keep
    tasks: dict[tuple[Network, int], list[Task]]

    def users(self, network: Network) -> list[Reproduction]:
        """The experiments that a network is part of."""
        return [work for work, networks in self.works if network in networks]

    def add(self, stage: int, network: Network, seed: int) -> list[Task]:
        """The tasks of a network; of folds, their joined analysis comes last."""
        if (network, seed) in self.tasks:
            return self.tasks[network, seed]
        first = self.works[0][0]
        start = None if first.no_train else first.scale.start_of(network)
        after = () if start is None else tuple(self.add(stage, start, seed))
        if network.shipped:
            own = [Work(str(first.runs / network.name / "0"), shipped=network.shipped)]
        else:
            own = [Work(str(job.folder), job.config) for job in first.jobs(network, seed)]
        if first.no_train:
            own = [each for each in own if is_trained(each.path)]
        tasks = [self._task(stage, network, each, after) for each in own]
        if network.folds and len(own) == network.folds:
            tasks = self._folds(tasks, first.joined_folder(network, seed))
        return self.tasks.setdefault((network, seed), tasks)

    def _folds(self, folds: list[Task], folder: Path) -> list[Task]:
        """Folds are only recorded; what they have in common is analyzed when all of them are."""
        first, names = folds[0], tuple(each.work.folder for each in folds)
        joined = replace(first.work, folder=str(folder), config=None, folds=names)
        recorded = {name: Measurement(each.recordings) for name, each in first.work.measurements.items()}
        tasks = [replace(each, work=replace(each.work, measurements=recorded), joined=joined) for each in folds]
        return [*tasks, Task(first.stage, joined, first.out, tuple(tasks))]

    def _task(self, stage: int, network: Network, work: Work, after: tuple[Task, ...]) -> Task:
        first = self.works[0][0]
        measured = {each.experiment.name: _measurement(network, each) for each in self.users(network)}
        # others may start from its weights later
        keep = "weights" if self.keep == "none" and first.scale.is_start(network) else self.keep
        scale = first.scale
        more = {
            "measurements": measured,
            "fit_epochs": scale.fit_epochs,
            "claim_draws": scale.claim_draws,
            "deterministic": scale.deterministic,
        }
        return Task(stage, replace(work, **more, keep=keep), first.runs, after)


def _measurement(network: Network, work: Reproduction) -> Measurement:
    settings = Settings(epochs=work.scale.fit_epochs, claim_draws=work.scale.claim_draws)
    analyses = {name: provenance_of(name, settings) for name in work.experiment.analyses}
    return Measurement(tuple(work.scale.recordings(network, work.experiment)), analyses)


@contextmanager
def only_queue(out: Path) -> Iterator[None]:
    """Hold the lock of a folder against a second queue; SIGTERM interrupts like Ctrl-C."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt  # SIGINT itself is ignored in processes that a shell has put in the background

    before = signal.signal(signal.SIGTERM, stop)
    try:
        with locked(out):
            (out / PAUSE).unlink(missing_ok=True)
            yield
    except LockedError as error:
        raise InputError(f"another queue is running in {out}: --status shows it, --pause stops it") from error
    finally:
        signal.signal(signal.SIGTERM, before)


@dataclass(frozen=True)
class Ended:
    """What became of a queue.

    Attributes:
        statuses: The status of every task.
        paused: Whether it was paused or interrupted.
    """

    statuses: dict[Task, Status]
    paused: bool

    @property
    def failed(self) -> dict[str, str]:
        """By the name of a network that failed, the reason."""
        return {task.name: status.message for task, status in self.statuses.items() if status.state == "failed"}

    @property
    def failures(self) -> dict[str, str]:
        """By the names of the networks that failed for the same reason, `a, b`, this reason."""
        names: dict[str, list[str]] = {}
        for name, reason in self.failed.items():
            names.setdefault(reason, []).append(name)
        return {", ".join(each): reason for reason, each in names.items()}


def run_queue(
    tasks: Sequence[Task],
    out: Path,
    command: str,
    num_workers: int | None = None,
    on_end: Callable[[Task, Status], object] = lambda task, status: None,
) -> Ended:
    """Do all tasks, in the order of their stages, several at a time; stop when OUT/pause appears or on Ctrl-C.

    Each has one thread: beside other programs two threads wait for each other, and training takes up to 16 times as
    long.

    Args:
        tasks: The networks.
        out: The folder of the reproduction, locked by `only_queue`.
        command: The command that resumes it.
        num_workers: Processes at a time; one per core by default.
        on_end: Called with every task that has ended.
    """
    for task in tasks:
        task.state()  # other runs in the folders are refused before anything is deleted
    for task in tasks:
        task.tidy()  # what a killed queue has left
    keeper = _Keeper(tasks, out, command, min(num_workers or cores(), max(len(tasks), 1)))

    def ended(task: Task, status: Status) -> None:
        for each in (*task.after, task):
            each.tidy()
        on_end(task, status)

    try:
        statuses = run_jobs(
            tasks, ExecutionConfig(threads=1), num_workers=num_workers, on_update=keeper.update, on_end=ended
        )
        paused = False
    except (KeyboardInterrupt, PausedError):
        statuses, paused = keeper.stopped(), True
    keeper.write(statuses)
    return Ended(statuses, paused)


class _Keeper:
    """Keeps OUT/queue.json up to date, and looks for OUT/pause."""

    def __init__(self, tasks: Sequence[Task], out: Path, command: str, workers: int):
        self.out, self.command, self.workers = out, command, workers
        known = QueueFile.read(out)
        self.estimates = {each.kind: each.estimate for each in known.entries} if known else {}
        self.statuses = {task: Status(task.state()) for task in tasks}
        waiting = [task for task in tasks if self.statuses[task].state != "done"]
        self.configs = {task.entry().kind: task.work.config for task in waiting if task.work.config}
        self.write(self.statuses)

    def update(self, statuses: Mapping[Task, Status]) -> None:
        """Store what has changed, and time one more kind of network; raises if the queue is to stop."""
        before, self.statuses = self.statuses, dict(statuses)
        if (self.out / PAUSE).exists():
            (self.out / PAUSE).unlink()
            raise PausedError
        untimed = next((kind for kind in self.configs if self.estimates.get(kind) is None), None)
        if untimed is not None:
            self.estimates[untimed] = seconds_of(self.configs[untimed])
        if untimed is not None or before != self.statuses:
            self.write(statuses)

    def write(self, statuses: Mapping[Task, Status]) -> None:
        """Write the file."""
        self.statuses = dict(statuses)
        entries = [task.entry(status.state, status.message) for task, status in statuses.items()]
        timed = tuple(replace(each, estimate=self.estimates.get(each.kind)) for each in entries)
        QueueFile(self.command, self.workers, timed).write(self.out)

    def stopped(self) -> dict[Task, Status]:
        """The last statuses; what was running has to be resumed."""
        failed = {task: status for task, status in self.statuses.items() if status.state == "failed"}
        return {task: failed.get(task) or Status(task.state()) for task in self.statuses}
