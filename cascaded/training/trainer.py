"""One network in training: its steps, its accuracy, and its whole state for checkpoints."""

from __future__ import annotations

import json
import math
from dataclasses import asdict

from safetensors.torch import load, save
from torch import Tensor, nn

from cascaded.errors import InputError
from cascaded.models.networks import Network
from cascaded.training.average import WeightAverage
from cascaded.training.checkpoint import Checkpoint, Position
from cascaded.training.config import RunConfig
from cascaded.training.data import Batches
from cascaded.training.distributed import share_statistics, wrap_ddp
from cascaded.training.load import load_weights
from cascaded.training.method import TD
from cascaded.training.optimizer import get_state, make_optimizer, set_state
from cascaded.training.seeds import drawing_at, seed_at
from cascaded.training.step import LossModule, accuracy, fill_statistics

FILLED = 20
"""Batches that norm statistics are computed from for a validation during training; at the end it is all of them."""

RAW = "raw."
"""Before the names of weights in training beside the optimizer's state, if a checkpoint's model is their average."""


class DivergedError(InputError):
    """The loss or a weight is not finite."""


class Trainer:
    """A network, its optimizer, its batches and its position.

    Args:
        config: The configuration of the run.
        net: The network, on the device of the batches.
        batches: Its images, and the processes that share them.
    """

    def __init__(self, config: RunConfig, net: Network, batches: Batches):
        self.config, self.net, self.batches, self.processes = config, net, batches, batches.processes
        self.method, self.position = config.get_method(), Position()
        self.loss: nn.Module = LossModule(net, self.method, config.precision)
        if self.processes.size > 1:
            if config.sync_norm:
                share_statistics(net)
            self.loss = wrap_ddp(self.loss)
        self.optimizer = make_optimizer(config, net)
        self.average = WeightAverage(net, config.ema) if config.ema else None

    @property
    def evaluated(self) -> Network:
        """The network that is validated, tested and saved: the average of the one in training, if there is one."""
        return self.net if self.average is None else self.average.net

    # --- progress

    @property
    def steps(self) -> int:
        """Steps of the whole run."""
        return self.config.epochs * self.batches.steps_per_epoch

    @property
    def done(self) -> bool:
        """Whether all steps are done."""
        return self.position.step >= self.steps

    @property
    def epoch(self) -> int:
        """Epochs done."""
        return self.position.step // self.batches.steps_per_epoch

    @property
    def at_epoch_end(self) -> bool:
        """Whether an epoch has just ended."""
        return self.position.step % self.batches.steps_per_epoch == 0

    def lr_at(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        return self.config.lr_at(step, self.batches.steps_per_epoch)

    def lam_at(self, step: int) -> float | None:
        """Lambda of a step, if the loss has one."""
        return self.method.loss.at(self._progress(step)) if isinstance(self.method.loss, TD) else None

    def _progress(self, step: int) -> float:
        """The fraction of epochs done: 0 in the first epoch, 1 in the last."""
        return step // self.batches.steps_per_epoch / max(self.config.epochs - 1, 1)

    # --- training and evaluation

    def step(self) -> float:
        """Train on the next batch; returns its loss."""
        self.net.train()
        now = self.position.step
        images, labels = self.batches.at(now)
        for group in self.optimizer.param_groups:
            group["lr"] = self.lr_at(now)
        self.optimizer.zero_grad()
        with drawing_at(self.config.seed, "dropout", self.processes.rank, now):
            loss = self.loss(images, labels, self._progress(now))
        value = self.processes.mean(loss)
        if not math.isfinite(value):
            raise self._diverged(f"the loss is {value}", now)
        loss.backward()
        self.optimizer.step()
        if self.average is not None:
            self.average.update(self.net, now)
        self.position.step += 1
        self.position.loss += value
        return value

    def end_epoch(self) -> float:
        """The mean loss of the epoch that has just ended; the sum is reset."""
        loss, self.position.loss = self.position.loss / self.batches.steps_per_epoch, 0.0
        return loss

    @property
    def loss_steps(self) -> int:
        """How many of the network's steps the loss is summed over: all for the TD loss, the last one for CE."""
        if not isinstance(self.method.loss, TD):
            return 1
        return self.net.serial_steps if self.method.schedule == "serial" else self.net.settle_steps

    def validate(self) -> list[float] | None:
        """Validation accuracy per step, if there are validation images, in the main process."""
        if self.config.fill_statistics:
            count = self.batches.steps_per_epoch if self.done else FILLED
            fill_statistics(self.evaluated, self.batches.statistics_batches(self.epoch, count))
        if len(self.batches.validation) == 0 or not self.processes.is_main:
            return None
        batches = self.batches.eval_batches(self.batches.images, self.batches.validation)
        return accuracy(self.evaluated, batches, self.method.schedule)

    def test(self) -> list[float] | None:
        """Test accuracy per step, if there are test images, in the main process."""
        if self.batches.test is None or not self.processes.is_main:
            return None
        return accuracy(self.evaluated, self.batches.eval_batches(self.batches.test), self.method.schedule)

    def _diverged(self, reason: str, step: int) -> DivergedError:
        """An error for a step, counted from 0, and what to try."""
        epoch, seed = step // self.batches.steps_per_epoch + 1, seed_at(self.config.seed, "augment", step)
        place = f"epoch {epoch}, lr {self.lr_at(step):g}, batch seed {seed}"
        where = f"{reason} at step {step + 1} of {self.steps} ({place})"
        lower = f"--lr {self.config.lr / 3:.2g}"
        if self.config.precision != "float32":
            advice = "first try --precision float32"
        elif self.config.lr_schedule == "one-cycle":
            advice = f"lower the peak, e.g. {lower}"
        else:
            advice = f"lower the rate, e.g. {lower}, or warm up with --lr-schedule one-cycle"
        return DivergedError(f"{where}: {advice}, in another --out; earlier checkpoints are kept")

    # --- checkpoints

    def snapshot(self) -> Checkpoint:
        """The whole state, refused if weights are not finite."""
        if not all(p.isfinite().all() for p in self.net.parameters()):
            # the step that was counted last caused it
            raise self._diverged("a weight is not finite", max(self.position.step - 1, 0))
        raw = {} if self.average is None else {f"{RAW}{name}": each for name, each in self.net.state_dict().items()}
        gathered = get_state(self.optimizer, self.config.optimizer, self.net)
        return Checkpoint(self.evaluated.state_dict(), gathered | raw, asdict(self.position))

    def restore(self, found: Checkpoint | None) -> None:
        """Continue from the main process's checkpoint, in all processes: machines need not share a folder."""
        content = self.processes.broadcast(json.dumps(found.position).encode() if found else None)
        if not content:
            return
        self.position = Position.from_json(json.loads(content))
        model = self._broadcast(found.model if found else {})
        optimizer = self._broadcast(found.optimizer if found else {})
        try:
            load_weights(self.evaluated, model, self.config)
            if self.average is not None:
                raw = {name.removeprefix(RAW): each for name, each in optimizer.items() if name.startswith(RAW)}
                load_weights(self.net, raw, self.config)
            set_state(self.optimizer, self.config.optimizer, self.net, optimizer, self.position.step)
        except RuntimeError as error:
            reason = str(error).splitlines()[-1].strip()
            raise InputError(f"the checkpoint is of another network ({reason}): bring this run's own back") from error

    def _broadcast(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        if self.processes.size == 1:
            return tensors
        return load(self.processes.broadcast(save(tensors) if self.processes.is_main else None))
