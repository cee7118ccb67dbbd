"""What a run logs: the progress display, `metrics.jsonl`, and event files for TensorBoard."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from cascaded.errors import InputError
from cascaded.progress import Display, minutes, progress
from cascaded.training.runs import METRICS, last_metrics, resume_command
from cascaded.training.trainer import Trainer


class MetricsLogger:
    """Logs every step and every epoch of a training session."""

    def __init__(self, folder: Path, trainer: Trainer, display: Display, events: Any):
        self.folder, self.trainer, self.display, self.events = folder, trainer, display, events
        self.file = MetricsFile(folder, trainer.position.metrics) if trainer.processes.is_main else None
        self.started, self.first = time.monotonic(), trainer.position.step
        last = last_metrics(folder)
        self.accuracy: list[float] | None = last["accuracy"] if last else None

    @classmethod
    @contextmanager
    def open(cls, folder: Path, trainer: Trainer, tensorboard: bool) -> Iterator[MetricsLogger]:
        """A logger for a training session."""
        with ExitStack() as stack:
            events, is_main = None, trainer.processes.is_main
            if tensorboard and is_main:
                from torch.utils.tensorboard import SummaryWriter

                events = SummaryWriter(folder / "tensorboard", purge_step=trainer.position.step)
                stack.callback(events.close)
            done = trainer.position.step
            display = stack.enter_context(progress(folder.as_posix(), trainer.steps, done, quiet=not is_main))
            if done:
                display.log(f"{folder}: resuming after step {done} of {trainer.steps}")
            yield cls(folder, trainer, display, events)

    @property
    def length(self) -> int:
        """Length of `metrics.jsonl` in bytes."""
        return 0 if self.file is None else self.file.length

    def log_step(self, loss: float) -> None:
        """Update the display after a step."""
        trainer = self.trainer
        done = trainer.position.step - self.first
        rate = done * trainer.config.batch_size / (time.monotonic() - self.started)
        accuracy = f", {summarize(self.accuracy)}" if self.accuracy else ""
        epoch = (trainer.position.step - 1) // trainer.batches.steps_per_epoch + 1
        line = f"epoch {epoch}/{trainer.config.epochs}, {rate:,.0f} images/s, {self._loss(loss)}{accuracy}"
        self.display.advance(1, line)

    def log_epoch(self, validation: list[float] | None, test: list[float] | None) -> None:
        """Write a line to `metrics.jsonl`, and print one."""
        trainer, position = self.trainer, self.trainer.position
        loss = trainer.end_epoch()
        if self.file is None:
            return
        self.accuracy = validation
        line = {"epoch": trainer.epoch, "step": position.step, "loss": loss, "seconds": round(position.seconds, 1)}
        if trainer.batches.device.type == "cpu":
            line["processor_seconds"] = round(position.processor_seconds, 1)
        line |= {"lr": trainer.lr_at(position.step - 1), "lam": trainer.lam_at(position.step - 1)}
        line |= {"accuracy": validation, **({} if test is None else {"test": test})}
        self.file.add(line)
        self._add_events(line)
        parts = [f"epoch {trainer.epoch}/{trainer.config.epochs}", self._loss(loss), minutes(position.seconds)]
        parts += [f"validation {summarize(validation)}"] if validation else []
        parts += [f"test {summarize(test)}"] if test else []
        self.display.log(", ".join(parts))

    def _loss(self, loss: float) -> str:
        """The mean over the network's steps: the TD loss itself, as in `metrics.jsonl`, is their sum."""
        steps = self.trainer.loss_steps
        return f"loss {loss / steps:.3f}" + (" per step" if steps > 1 else "")

    def _add_events(self, line: dict[str, Any]) -> None:
        if self.events is not None:
            for name in ("loss", "lr", "lam"):
                if line[name] is not None:
                    self.events.add_scalar(name, line[name], line["step"])
            for step, each in enumerate(line["accuracy"] or [], start=1):
                self.events.add_scalar(f"accuracy/step {step}", each, line["step"])


class MetricsFile:
    """`metrics.jsonl`, one line per epoch; truncated to its length at the checkpoint when a run is resumed."""

    def __init__(self, folder: Path, length: int):
        self.file = folder / METRICS
        if self.file.exists():
            os.truncate(self.file, min(length, self.file.stat().st_size))

    def add(self, line: dict[str, Any]) -> None:
        """Append a line, and flush it to the disk."""
        try:
            with self.file.open("a") as opened:
                opened.write(json.dumps(line) + "\n")
                opened.flush()
                os.fsync(opened.fileno())
        except OSError as error:
            raise InputError(
                f"{self.file} cannot be written ({error.strerror}): make room, then {resume_command(self.file.parent)}"
            ) from error

    @property
    def length(self) -> int:
        """Length of the file in bytes."""
        return self.file.stat().st_size if self.file.exists() else 0


def summarize(accuracy: list[float]) -> str:
    """Accuracy at the first, the middle and the last step: `31 % at step 1, 64 % at 5, 71 % at 9`."""
    steps = sorted({1, (len(accuracy) + 1) // 2, len(accuracy)})
    first, *others = [f"{accuracy[step - 1]:.1%} at {'step ' if step == 1 else ''}{step}" for step in steps]
    return ", ".join([first, *others])


def check_tensorboard() -> None:
    """Refuse `--tensorboard` if the package is missing."""
    try:
        import torch.utils.tensorboard  # noqa: F401
    except (ImportError, RuntimeError) as error:
        raise InputError(
            f"--tensorboard needs a package that is not installed ({error}): pip install 'cascaded[tensorboard]'"
        ) from error
