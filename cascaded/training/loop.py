"""Training from the first step to the last, however often it is interrupted on the way."""

from __future__ import annotations

import json
import os
import platform
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from cascaded import __version__
from cascaded.cascade.network import Cascade
from cascaded.errors import InputError
from cascaded.models.networks import make_network
from cascaded.training import checkpoint
from cascaded.training.checkpoint import Checkpoint
from cascaded.training.config import Spec
from cascaded.training.data import make_feed
from cascaded.training.distributed import Team, team
from cascaded.training.log import Journal, check_tensorboard
from cascaded.training.runs import WITH_PARENT, begin, checkpoint_places, enter, last_metrics, locked
from cascaded.training.seeds import generator_at
from cascaded.training.trainer import Trainer

LARGE = 128
"""Images of this size and larger get the large stem, 7x7 with stride 2."""


@dataclass(frozen=True)
class Where:
    """How a run is computed; its result does not depend on it, but for rounding.

    Attributes:
        device: Where the network is.
        checkpoint_seconds: Time between two checkpoints within an epoch.
        tensorboard: Whether to write event files too.
        start: The run whose weights it begins with, if its spec says that it begins with some.
    """

    device: torch.device
    checkpoint_seconds: float = 60.0
    tensorboard: bool = False
    start: Path | None = None


class StoppedError(Exception):
    """A run was asked to stop, and has: everything is kept."""


def train(
    spec: Spec, folder: Path, where: Where, *, resume: bool = False, on_begin: Callable[[], object] = lambda: None
) -> dict[str, Any] | None:
    """Train a network, or go on with it; the last line of its metrics, in the process that writes them.

    Args:
        spec: What the run is.
        folder: Where it is kept.
        where: How it is computed.
        resume: Whether to go on where the folder holds a part of this run already, or all of it.
        on_begin: Called when the run's folder has been made or found, in the process that writes.
    """
    with team(where.device) as own, ExitStack() as stack:
        # the leader has read the folder, which the others may not see
        spec = Spec.from_json(json.loads(own.hand_out(json.dumps(spec.to_json()).encode() if own.leads else None)))
        with own.together():
            # all that can be refused is, before anything is written: a refused run leaves no folder and no lock
            if own.leads:
                enter(folder, spec, resume)
                check_tensorboard(where.tensorboard)
            feed = make_feed(spec, own, where.device)
            net = build(spec, len(feed.images.classes), feed.images.images.shape[1:]).to(where.device)
            if own.leads and spec.start is not None and not checkpoint_places(folder):
                _take_over(net, spec.start, where.start)  # other processes get the leader's weights
            if own.leads:
                stack.enter_context(locked(folder))
                enter(folder, spec, resume)  # another process may have been here since
                begin(folder, spec, feed.images.fingerprint(), feed.inputs, made_with())
                on_begin()
            found = checkpoint.newest(folder) if own.leads else None
        return _train(Trainer(spec, net, feed), found, folder, where)


def _take_over(net: Cascade, weights: str, run: Path | None) -> None:
    """Begin with the weights of another run."""
    from cascaded.training.load import load_run

    if run is None:
        raise InputError(f"the run begins with weights {weights[:12]}, and no --start is given: say which run has them")
    found = load_run(run)
    if found.weights != weights:
        raise InputError(
            f"{run} has weights {found.weights[:12]}, the run begins with {weights[:12]}: bring those back"
        )
    try:
        net.load_state_dict(found.net.state_dict())
    except RuntimeError as error:
        told = str(error).splitlines()[-1].strip()
        raise InputError(
            f"--start {run} is another network ({told}): give one of the same network and classes"
        ) from error


def _train(trainer: Trainer, found: Checkpoint | None, folder: Path, where: Where) -> dict[str, Any] | None:
    trainer.restore(found)
    with Journal.open(folder, trainer, where.tensorboard) as journal:
        _run(trainer, folder, where, journal)
    return (last_metrics(folder) or {}) if trainer.team.leads else None


def _run(trainer: Trainer, folder: Path, where: Where, journal: Journal) -> None:
    started, saved = time.monotonic() - trainer.position.seconds, time.monotonic()
    with _stopping(trainer.team) as asked:
        while not trainer.done:
            journal.stepped(trainer.step())
            if trainer.at_boundary:
                told = trainer.validate()
                trainer.position.seconds = time.monotonic() - started
                journal.epoch_ended(told, trainer.tested() if trainer.done else None)
            if trainer.at_boundary or asked or time.monotonic() - saved >= where.checkpoint_seconds:
                trainer.position.seconds = time.monotonic() - started
                _save(trainer, folder, journal)
                saved = time.monotonic()
            if asked and not trainer.done:
                raise StoppedError(f"stopped after step {trainer.position.step} of {trainer.steps}")


def _save(trainer: Trainer, folder: Path, journal: Journal) -> None:
    if trainer.team.leads:
        trainer.position.metrics = journal.length
        now = trainer.snapshot()
        checkpoint.save(folder, trainer.position.step, now.model, now.optimiser, now.position)


def build(spec: Spec, classes: int, shape: torch.Size) -> Cascade:
    """The network of a run, with its initial weights, for images of a shape."""
    return make_network(
        spec.network,
        num_classes=classes,
        width=spec.recipe.width,
        stem="small" if shape[-1] < LARGE else "large",
        in_channels=shape[0],
        heads=spec.method.heads,
        generator=generator_at(spec.seed, "weights"),
    )


def check_parameters(spec: Spec, classes: int, shape: torch.Size, found: Mapping[str, Sequence[int]]) -> None:
    """That weights fit a spec, before memory is taken for the network: a file may ask for one of any size.

    Args:
        spec: What the file says the network is.
        classes: How many classes it says there are.
        shape: Of an image.
        found: Names and shapes of the weights that the file holds.
    """
    try:
        with torch.device("meta"):
            wanted = dict(build(spec, classes, shape).named_parameters())  # statistics have as many steps as were seen
    except (RuntimeError, TypeError, OverflowError) as error:
        told = str(error).strip().split("\n")[0]
        raise InputError(f"no network can be built as the file says, {told}") from error
    for name, tensor in wanted.items():
        if name not in found or tuple(found[name]) != tuple(tensor.shape):
            has = f"shape {tuple(found[name])}" if name in found else "none"
            raise InputError(f"{name} has {has}, the network needs {tuple(tensor.shape)}")


class _Asked:
    """Whether a run has been asked to stop: by a signal, or because the sweep it belongs to is gone."""

    def __init__(self):
        self.signals: list[int] = []
        self.parent = os.environ.get(WITH_PARENT)  # under Windows a process never learns that it is gone

    def __bool__(self) -> bool:
        return bool(self.signals) or self.parent not in (None, str(os.getppid()))

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.signals:
            raise KeyboardInterrupt  # asked twice: now
        self.signals.append(number)


@contextmanager
def _stopping(own: Team) -> Iterator[_Asked | None]:
    """Finish the step and keep everything when asked to stop.

    Processes of a team would stop at different steps and wait for each other: they rely on the last checkpoint.
    """
    if own.size > 1:
        yield None
        return
    asked = _Asked()
    before = {number: signal.signal(number, asked) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def made_with() -> dict[str, str]:
    """Versions of what computes here."""
    return {"cascaded": __version__, "torch": torch.__version__, "python": platform.python_version()}
