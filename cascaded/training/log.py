"""What a run tells while it goes: the display, `metrics.jsonl`, and event files for tensorboard."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from cascaded.errors import InputError
from cascaded.progress import Told, minutes, progress
from cascaded.training.runs import Metrics, last_metrics
from cascaded.training.trainer import Trainer


class Journal:
    """Told of every step and epoch, it tells everyone else."""

    def __init__(self, folder: Path, trainer: Trainer, shown: Told, events: Any):
        self.folder, self.trainer, self.shown, self.events = folder, trainer, shown, events
        self.metrics = Metrics(folder, trainer.position.metrics) if trainer.team.leads else None
        self.began, self.first = time.monotonic(), trainer.position.step
        known = last_metrics(folder)
        self.accuracy: list[float] | None = known["accuracy"] if known else None

    @classmethod
    @contextmanager
    def open(cls, folder: Path, trainer: Trainer, tensorboard: bool) -> Iterator[Journal]:
        """A journal for the length of a training session."""
        with ExitStack() as stack:
            events = None
            if tensorboard and trainer.team.leads:
                events = _events(folder / "tensorboard", purge_step=trainer.position.step)
                stack.callback(events.close)
            done, quiet = trainer.position.step, not trainer.team.leads
            shown = stack.enter_context(progress(folder.as_posix(), trainer.steps, done, quiet))
            if done:
                shown.say(f"{folder}: going on after step {done} of {trainer.steps}")
            yield cls(folder, trainer, shown, events)

    def stepped(self, loss: float) -> None:
        """A step is done."""
        trainer = self.trainer
        done = trainer.position.step - self.first
        rate = done * trainer.config.batch_size / (time.monotonic() - self.began)
        accuracy = f", {three(self.accuracy)}" if self.accuracy else ""
        epoch = (trainer.position.step - 1) // trainer.feed.steps_an_epoch + 1
        shown = f"epoch {epoch}/{trainer.config.epochs}, {rate:,.0f} images/s, {self._loss(loss)}{accuracy}"
        self.shown.advance(1, shown)

    def epoch_ended(self, accuracy: list[float] | None, test: list[float] | None) -> None:
        """An epoch is done: a line for people, one for programs."""
        trainer, position = self.trainer, self.trainer.position
        loss = trainer.end_epoch()
        if self.metrics is None:
            return
        self.accuracy = accuracy
        told = {"epoch": trainer.epoch, "step": position.step, "loss": loss, "seconds": round(position.seconds, 1)}
        told |= {"lr": trainer.lr_at(position.step - 1), "lam": trainer.lam_of(position.step - 1)}
        told |= {"accuracy": accuracy}
        self.metrics.add(**told, **({} if test is None else {"test": test}))
        self._to_events(told)
        parts = [f"epoch {trainer.epoch}/{trainer.config.epochs}", self._loss(loss), minutes(position.seconds)]
        parts += [f"validation {three(accuracy)}"] if accuracy else []
        parts += [f"test {three(test)}"] if test else []
        self.shown.say(", ".join(parts))

    def _loss(self, loss: float) -> str:
        """The mean over the network's steps: the TD loss itself, as in `metrics.jsonl`, is their sum."""
        steps = self.trainer.loss_steps
        return f"loss {loss / steps:.3f}" + (" per step" if steps > 1 else "")

    def _to_events(self, told: dict[str, Any]) -> None:
        if self.events is not None:
            for name in ("loss", "lr", "lam"):
                if told[name] is not None:
                    self.events.add_scalar(name, told[name], told["step"])
            for step, each in enumerate(told["accuracy"] or [], start=1):
                self.events.add_scalar(f"accuracy/step {step}", each, told["step"])

    @property
    def length(self) -> int:
        """How long `metrics.jsonl` is now."""
        return 0 if self.metrics is None else self.metrics.length


def three(accuracy: list[float]) -> str:
    """Accuracy at the first, the middle and the last step: `31 % at step 1, 64 % at 5, 71 % at 9`."""
    steps = sorted({1, (len(accuracy) + 1) // 2, len(accuracy)})
    first, *others = [f"{accuracy[step - 1]:.1%} at {'step ' if step == 1 else ''}{step}" for step in steps]
    return ", ".join([first, *others])


def check_tensorboard(wanted: bool = True) -> None:
    """Refuse `--tensorboard` where the package is missing."""
    try:
        if wanted:
            import torch.utils.tensorboard  # noqa: F401
    except (ImportError, RuntimeError) as error:
        raise InputError(
            f"--tensorboard needs a package that is not there ({error}): pip install 'cascaded[tensorboard]'"
        ) from error


def _events(folder: Path, purge_step: int) -> Any:
    check_tensorboard()
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(folder, purge_step=purge_step)
