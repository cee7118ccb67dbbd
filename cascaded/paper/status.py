"""The state of a queue, from its file and the folders of its networks; it can be read while the queue runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean, median

from cascaded.errors import InputError, at_least
from cascaded.files import from_json, read_json, write_json
from cascaded.paper.work import Done
from cascaded.training.runs import checkpoint_places, is_locked, last_metrics
from cascaded.training.sweep import State

RUNS, QUEUE, PAUSE = "runs", "queue.json", "pause"
"""In the folder of a reproduction: its runs, the state of its queue, and a file that asks the queue to stop."""


@dataclass(frozen=True)
class Entry:
    """A network of the queue.

    Attributes:
        stage: Number of its stage.
        name: Its folder, relative to that of all runs.
        folder: Its folder, as seen from here.
        kind: Equal for networks that take equally long: those of one configuration and method. Empty if nothing is
            trained.
        epochs: Epochs of its training; 0 if nothing is trained.
        steps: Steps of its training, about; 0 if that is not known.
        state: As of the last time that the queue was at work.
        message: Why it failed.
        estimate: Seconds that its training takes, from a few steps; None if they were not timed yet.
    """

    stage: int
    name: str
    folder: str
    kind: str
    epochs: int
    steps: int
    state: State = "waiting"
    message: str = ""
    estimate: float | None = None


@dataclass(frozen=True)
class QueueFile:
    """OUT/queue.json.

    Attributes:
        command: The command that resumes the queue.
        workers: Networks at a time.
        entries: All networks, in their order.
    """

    command: str
    workers: int
    entries: tuple[Entry, ...]

    def __post_init__(self):
        at_least(1, workers=self.workers)

    def write(self, out: Path) -> None:
        """Store it."""
        write_json(out / QUEUE, asdict(self))

    @classmethod
    def read(cls, out: Path) -> QueueFile | None:
        """The queue in a folder as it is now; None if there was none. Without a running queue, nothing is running."""
        if not (out / QUEUE).exists():
            return None
        try:
            found = from_json(read_json(out / QUEUE), cls)
        except ValueError as error:
            raise InputError(f"{out / QUEUE} is damaged ({error}): start the queue again") from error
        entries = [replace(each, folder=str(out / RUNS / each.name)) for each in found.entries]
        if not is_locked(out):
            entries = [replace(each, state="waiting") if each.state == "running" else each for each in entries]
        return replace(found, entries=tuple(entries))


def fraction_done(entry: Entry) -> float:
    """The fraction of a network's training that is done, up to its last checkpoint."""
    folder = Path(entry.folder)
    last = last_metrics(folder)
    steps = entry.steps if last is None else entry.epochs * last["step"] / max(last["epoch"], 1)
    places = checkpoint_places(folder)
    step = int(places[-1].name) if places else last["step"] if last else 0
    return min(step / steps, 1.0) if steps else 0.0


def progress_of(entry: Entry) -> str:
    """`epoch 3 of 10, 24 %`; after the training `epoch 10 of 10, analyzing`."""
    if not entry.epochs:
        return "analyzing"
    last, fraction = last_metrics(Path(entry.folder)), fraction_done(entry)
    finished = last["epoch"] if last else 0
    rest = "analyzing" if finished >= entry.epochs else f"{fraction:.0%}"
    return f"epoch {min(finished + 1, entry.epochs)} of {entry.epochs}, {rest}"


def measured_seconds(entries: Sequence[Entry]) -> dict[str, float]:
    """By kind, the mean duration of finished networks: training, recording and analyses."""
    times: dict[str, list[float]] = {}
    for entry in entries:
        if entry.state == "done" and entry.kind:
            last = last_metrics(Path(entry.folder)) or {}
            times.setdefault(entry.kind, []).append(last.get("seconds", 0.0) + Done.read(Path(entry.folder)).seconds)
    return {kind: mean(each) for kind, each in times.items()}


def seconds_left(queue: QueueFile) -> dict[int, float]:
    """By stage, the seconds until its networks are done, with all workers busy.

    A network takes as long as finished ones of its kind. Where there is none, it is the estimate from a few steps,
    times what finished networks took longer than their estimates.
    """
    measured = measured_seconds(queue.entries)
    estimates = {entry.kind: entry.estimate for entry in queue.entries if entry.estimate}
    factor = median([measured[kind] / estimates[kind] for kind in measured if kind in estimates] or [1.0])
    left = dict.fromkeys((entry.stage for entry in queue.entries), 0.0)
    for entry in queue.entries:
        if entry.state != "done":
            seconds = measured.get(entry.kind, factor * (entry.estimate or 0.0))
            left[entry.stage] += (1 - fraction_done(entry)) * seconds / queue.workers
    return left


def counts(entries: Sequence[Entry]) -> Mapping[State, int]:
    """How many networks are in each state."""
    states: tuple[State, ...] = ("done", "running", "failed", "waiting")
    return {state: sum(entry.state == state for entry in entries) for state in states}
