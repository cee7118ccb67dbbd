"""Train a network from its first step to its last, however often it is interrupted."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

from cascaded.errors import InputError
from cascaded.files import from_json
from cascaded.models.networks import Network
from cascaded.training import checkpoint
from cascaded.training.config import DEFAULT_EXECUTION, ExecutionConfig, RunConfig
from cascaded.training.data import data_of, load_batches
from cascaded.training.distributed import Distributed, check_shared, choose_device, join_processes
from cascaded.training.load import build, load_run, load_weights
from cascaded.training.log import MetricsLogger, check_tensorboard
from cascaded.training.method import TD
from cascaded.training.run_file import made_with
from cascaded.training.runs import WITH_PARENT, begin, checkpoint_places, enter, has_config, last_metrics, locked
from cascaded.training.trainer import Trainer


class StoppedError(Exception):
    """A run was asked to stop; everything is saved."""


def train(
    config: RunConfig,
    folder: Path,
    execution: ExecutionConfig = DEFAULT_EXECUTION,
    *,
    init_from: Path | None = None,
    resume: bool = False,
    on_begin: Callable[[], object] = lambda: None,
) -> dict[str, Any] | None:
    """Train a network, or resume its training; returns the last line of its metrics, in the main process.

    Args:
        config: The configuration of the run.
        folder: Its folder.
        execution: How it is computed.
        init_from: The run with the initial weights, if `config.init_from` has their SHA-256.
        resume: Whether to resume if the folder contains a part of this run already, or all of it.
        on_begin: Called when the run's folder has been made or found, in the main process.
    """
    device = choose_device(execution.device)
    with join_processes(device) as processes, ExitStack() as stack:
        # the main process has read the folder, which the others may not see
        sent = processes.broadcast(json.dumps(asdict(config)).encode() if processes.is_main else None)
        config = from_json(json.loads(sent), RunConfig)
        with processes.all_or_none():
            # whatever can be refused is refused before anything is written: a refused run leaves no folder and no lock
            if processes.is_main:
                enter(folder, config, resume)
                if execution.tensorboard:
                    check_tensorboard()
            with data_of(folder, config) if resume and has_config(folder) else nullcontext():
                batches = load_batches(config, processes, device)
            shape, trains_all = batches.images.images.shape[1:], isinstance(config.get_method().loss, TD)
            net = build(config, len(batches.images.classes), shape, training=trains_all).to(device)
            if config.sync_norm:
                check_shared(net, processes)
            if processes.is_main and config.init_from is not None and not checkpoint_places(folder):
                _load_initial(net, config, init_from)  # other processes get the main process's weights
            if processes.is_main:
                stack.enter_context(locked(folder))
                enter(folder, config, resume)  # another process may have been here since
                begin(folder, config, batches.images.fingerprint(), batches.inputs, made_with())
                on_begin()
            found = checkpoint.newest(folder) if processes.is_main else None
        trainer = Trainer(config, net, batches)
        trainer.restore(found)
        with MetricsLogger.open(folder, trainer, execution.tensorboard) as logger:
            _run(trainer, folder, execution.checkpoint_seconds, logger)
        return (last_metrics(folder) or {}) if processes.is_main else None


def _load_initial(net: Network, config: RunConfig, run: Path | None) -> None:
    """Start from the weights of another run."""
    weights = config.init_from or ""
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
        load_weights(net, found.net.state_dict(), config)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise InputError(
            f"--init-from {run} is another network ({reason}): give one of the same architecture and classes"
        ) from error


def _run(trainer: Trainer, folder: Path, checkpoint_seconds: float, logger: MetricsLogger) -> None:
    position, saved = trainer.position, time.monotonic()
    started, worked = time.monotonic() - position.seconds, time.process_time() - position.processor_seconds

    def read_clocks() -> None:
        position.seconds, position.processor_seconds = time.monotonic() - started, time.process_time() - worked

    with _stop_requests(trainer.processes) as stop:
        while not trainer.done:
            logger.log_step(trainer.step())
            if trainer.at_epoch_end:
                validation = trainer.validate()
                read_clocks()
                logger.log_epoch(validation, trainer.test() if trainer.done else None)
            if trainer.at_epoch_end or stop or time.monotonic() - saved >= checkpoint_seconds:
                read_clocks()
                _save(trainer, folder, logger)
                saved = time.monotonic()
            if stop and not trainer.done:
                raise StoppedError(f"stopped after step {trainer.position.step} of {trainer.steps}")


def _save(trainer: Trainer, folder: Path, logger: MetricsLogger) -> None:
    if trainer.processes.is_main:
        trainer.position.metrics = logger.length
        now = trainer.snapshot()
        checkpoint.save(folder, trainer.position.step, now.model, now.optimizer, now.position)


class _StopRequest:
    """True once a run was asked to stop: by a signal, or because the sweep that started it has ended."""

    def __init__(self):
        self.signals: list[int] = []
        self.parent = os.environ.get(WITH_PARENT)  # under Windows a process does not notice that its parent has ended

    def __bool__(self) -> bool:
        return bool(self.signals) or self.parent not in (None, str(os.getppid()))

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.signals:
            raise KeyboardInterrupt  # the second request: stop now
        self.signals.append(number)


@contextmanager
def _stop_requests(processes: Distributed) -> Iterator[_StopRequest | None]:
    """Finish the step and save everything when asked to stop.

    Several processes would stop at different steps and wait for each other: they rely on the last checkpoint.
    """
    if processes.size > 1:
        yield None
        return
    stop = _StopRequest()
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
