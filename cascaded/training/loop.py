"""Training from the first step to the last, however often it is interrupted on the way."""

from __future__ import annotations

import json
import os
import platform
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from cascaded import __version__
from cascaded.cascade.network import Cascade
from cascaded.errors import InputError
from cascaded.files import from_json
from cascaded.models.networks import make_network
from cascaded.training import checkpoint
from cascaded.training.checkpoint import Checkpoint
from cascaded.training.config import DEFAULT_EXECUTION, ExecutionConfig, RunConfig
from cascaded.training.data import make_feed
from cascaded.training.distributed import Team, choose_device, team
from cascaded.training.log import Journal, check_tensorboard
from cascaded.training.runs import WITH_PARENT, begin, checkpoint_places, enter, last_metrics, locked
from cascaded.training.seeds import generator_at
from cascaded.training.trainer import Trainer

LARGE = 128
"""Images of this size and larger get the large stem, 7x7 with stride 2."""


class StoppedError(Exception):
    """A run was asked to stop, and has: everything is kept."""


def train(
    config: RunConfig,
    folder: Path,
    execution: ExecutionConfig = DEFAULT_EXECUTION,
    *,
    init_from: Path | None = None,
    resume: bool = False,
    on_begin: Callable[[], object] = lambda: None,
) -> dict[str, Any] | None:
    """Train a network, or resume its training; returns the last line of its metrics, in the process that writes them.

    Args:
        config: The configuration of the run.
        folder: Where it is kept.
        execution: How it is computed.
        init_from: The run with the initial weights, if `config.init_from` has their SHA-256.
        resume: Whether to resume if the folder contains a part of this run already, or all of it.
        on_begin: Called when the run's folder has been made or found, in the process that writes.
    """
    device = choose_device(execution.device)
    with team(device) as own, ExitStack() as stack:
        # the main process has read the folder, which the others may not see
        sent = own.hand_out(json.dumps(asdict(config)).encode() if own.leads else None)
        config = from_json(json.loads(sent), RunConfig)
        with own.together():
            # all that can be refused is, before anything is written: a refused run leaves no folder and no lock
            if own.leads:
                enter(folder, config, resume)
                check_tensorboard(execution.tensorboard)
            feed = make_feed(config, own, device)
            net = build(config, len(feed.images.classes), feed.images.images.shape[1:]).to(device)
            if own.leads and config.init_from is not None and not checkpoint_places(folder):
                _take_over(net, config.init_from, init_from)  # other processes get the main process's weights
            if own.leads:
                stack.enter_context(locked(folder))
                enter(folder, config, resume)  # another process may have been here since
                begin(folder, config, feed.images.fingerprint(), feed.inputs, made_with())
                on_begin()
            found = checkpoint.newest(folder) if own.leads else None
        return _train(Trainer(config, net, feed), found, folder, execution)


def _take_over(net: Cascade, weights: str, run: Path | None) -> None:
    """Start from the weights of another run."""
    from cascaded.training.load import load_run

    if run is None:
        raise InputError(
            f"the run starts from weights {weights[:12]}, and no --init-from is given: give the run that has them"
        )
    found = load_run(run)
    if found.weights != weights:
        raise InputError(
            f"{run} has weights {found.weights[:12]}, the run starts from {weights[:12]}: bring those back"
        )
    try:
        net.load_state_dict(found.net.state_dict())
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise InputError(
            f"--init-from {run} is another network ({reason}): give one of the same architecture and classes"
        ) from error


def _train(
    trainer: Trainer, found: Checkpoint | None, folder: Path, execution: ExecutionConfig
) -> dict[str, Any] | None:
    trainer.restore(found)
    with Journal.open(folder, trainer, execution.tensorboard) as journal:
        _run(trainer, folder, execution, journal)
    return (last_metrics(folder) or {}) if trainer.team.leads else None


def _run(trainer: Trainer, folder: Path, execution: ExecutionConfig, journal: Journal) -> None:
    started, saved = time.monotonic() - trainer.position.seconds, time.monotonic()
    with _stopping(trainer.team) as asked:
        while not trainer.done:
            journal.stepped(trainer.step())
            if trainer.at_boundary:
                told = trainer.validate()
                trainer.position.seconds = time.monotonic() - started
                journal.epoch_ended(told, trainer.tested() if trainer.done else None)
            if trainer.at_boundary or asked or time.monotonic() - saved >= execution.checkpoint_seconds:
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


def build(config: RunConfig, classes: int, shape: torch.Size) -> Cascade:
    """The network of a run, with its initial weights, for images of a shape."""
    return make_network(
        config.arch,
        num_classes=classes,
        width=config.width,
        stem="small" if shape[-1] < LARGE else "large",
        in_channels=shape[0],
        heads=config.get_method().heads,
        generator=generator_at(config.seed, "weights"),
    )


def check_parameters(config: RunConfig, classes: int, shape: torch.Size, found: Mapping[str, Sequence[int]]) -> None:
    """Check that weights fit a configuration before memory is taken for the network: a file may ask for any size.

    Args:
        config: The configuration in the file.
        classes: How many classes it says there are.
        shape: Of an image.
        found: Names and shapes of the weights that the file holds.
    """
    try:
        with torch.device("meta"):
            wanted = dict(
                build(config, classes, shape).named_parameters()
            )  # statistics have as many steps as were seen
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
