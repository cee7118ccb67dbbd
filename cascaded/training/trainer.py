"""One network being trained: a step at a time, and everything it takes to stop and go on exactly."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from cascaded.cascade.network import Cascade
from cascaded.errors import InputError
from cascaded.files import check_types
from cascaded.training.checkpoint import Checkpoint
from cascaded.training.config import RunConfig
from cascaded.training.data import Feed
from cascaded.training.distributed import averaging, share_statistics
from cascaded.training.method import TD
from cascaded.training.seeds import seed_at
from cascaded.training.step import Learner, accuracy, fill_statistics

FILLED = 20
"""Batches that statistics are gathered from for a validation on the way; at the end it is all of them."""


class DivergedError(InputError):
    """The loss or a weight is not a number any more."""


@dataclass
class Position:
    """How far a run is. With the weights and the momentum this is all there is to know.

    Attributes:
        step: Steps done.
        loss: Sum of the losses of the epoch's steps so far.
        seconds: Time spent training, over all sessions.
        metrics: Length of `metrics.jsonl` in bytes.
    """

    step: int = 0
    loss: float = 0.0
    seconds: float = 0.0
    metrics: int = 0

    @classmethod
    def from_json(cls, told: Any) -> Position:
        """The position in a checkpoint, with the types and signs that it was written with."""
        try:
            check_types(told, cls)
            position = cls(**told)
            if min(position.step, position.seconds, position.metrics) < 0:
                raise ValueError(f"{position} is negative")
        except (AttributeError, TypeError, ValueError) as error:
            raise InputError(
                f"a checkpoint does not say how far its run is ({error}): bring back an older copy, or train again"
            ) from error
        return position


class Trainer:
    """A network, its optimiser, its images and its position.

    Args:
        config: Its configuration.
        net: The network, on the device of the feed.
        feed: Its images, and the processes that share them.
    """

    def __init__(self, config: RunConfig, net: Cascade, feed: Feed):
        self.config, self.net, self.feed, self.team = config, net, feed, feed.team
        self.method, self.position = config.get_method(), Position()
        self.learner: nn.Module = Learner(net, self.method, self.config.precision)
        if self.team.size > 1:
            if self.config.sync_norm:
                share_statistics(net)
            self.learner = averaging(self.learner)
        self.optimiser = torch.optim.SGD(
            net.parameters(),
            lr=self.config.lr,
            momentum=self.config.momentum,
            weight_decay=self.config.weight_decay,
            nesterov=self.config.nesterov and self.config.momentum > 0,
        )

    # --- where it stands

    @property
    def steps(self) -> int:
        """Steps of the whole run."""
        return self.config.epochs * self.feed.steps_an_epoch

    @property
    def done(self) -> bool:
        """Whether there is nothing left to learn."""
        return self.position.step >= self.steps

    @property
    def epoch(self) -> int:
        """Epochs done."""
        return self.position.step // self.feed.steps_an_epoch

    @property
    def at_boundary(self) -> bool:
        """Whether an epoch has just ended."""
        return self.position.step % self.feed.steps_an_epoch == 0

    def lr_at(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        return self.config.lr_at(step, self.feed.steps_an_epoch)

    def lam_of(self, step: int) -> float | None:
        """The lambda of a step, if the loss has one."""
        return self.method.loss.at(self._progress(step)) if isinstance(self.method.loss, TD) else None

    def _progress(self, step: int) -> float:
        """The share of the epochs that is behind a step: 0 in the first, 1 in the last."""
        return step // self.feed.steps_an_epoch / max(self.config.epochs - 1, 1)

    # --- learning

    def step(self) -> float:
        """Learn from the next batch; its loss."""
        self.net.train()
        now = self.position.step
        images, labels = self.feed.at(now)
        for group in self.optimiser.param_groups:
            group["lr"] = self.lr_at(now)
        self.optimiser.zero_grad()
        loss = self.learner(images, labels, self._progress(now))
        told = self.team.mean(loss)
        if not math.isfinite(told):
            raise self._diverged(f"the loss is {told}", now)
        loss.backward()
        self.optimiser.step()
        self.position.step += 1
        self.position.loss += told
        return told

    def end_epoch(self) -> float:
        """The mean loss of the epoch that has just ended; the next one starts from nothing."""
        loss, self.position.loss = self.position.loss / self.feed.steps_an_epoch, 0.0
        return loss

    @property
    def loss_steps(self) -> int:
        """Over how many of the network's steps the loss is summed: all for the TD loss, the last one for CE."""
        if not isinstance(self.method.loss, TD):
            return 1
        return len(self.net.blocks) + 1 if self.method.schedule == "serial" else self.net.settle_steps

    def validate(self) -> list[float] | None:
        """The share of held-out images that the network is right about at every step, if any are held out."""
        if self.method.needs_filling:
            batches = self.feed.steps_an_epoch if self.done else FILLED
            fill_statistics(self.net, self.feed.to_fill(self.epoch, batches))
        if len(self.feed.validation) == 0 or not self.team.leads:
            return None
        return accuracy(self.net, self.feed.plain(self.feed.images, self.feed.validation), self.method.schedule)

    def tested(self) -> list[float] | None:
        """The same for test images, where there are any."""
        if self.feed.test is None or not self.team.leads:
            return None
        return accuracy(self.net, self.feed.plain(self.feed.test), self.method.schedule)

    def _diverged(self, told: str, step: int) -> DivergedError:
        """What went wrong in a step, counted from 0, and what to try."""
        epoch, seed = step // self.feed.steps_an_epoch + 1, seed_at(self.config.seed, "augment", step)
        place = f"epoch {epoch}, lr {self.lr_at(step):g}, batch seed {seed}"
        where = f"{told} at step {step + 1} of {self.steps} ({place})"
        if self.config.precision != "float32":
            advice = "first try --precision float32"
        elif self.config.lr_schedule == "one-cycle":
            advice = f"lower the peak, e.g. --lr {self.config.lr / 3:.2g}"
        else:
            advice = f"lower the rate, e.g. --lr {self.config.lr / 3:.2g}, or warm up with --lr-schedule one-cycle"
        return DivergedError(f"{where}: {advice}, in another --out; the last good checkpoint is kept")

    # --- stopping and going on

    def momentum(self) -> dict[str, Tensor]:
        """The optimiser's memory, by parameter."""
        memory = {name: self.optimiser.state[p].get("momentum_buffer") for name, p in self.net.named_parameters()}
        return {name: buffer for name, buffer in memory.items() if buffer is not None}

    def snapshot(self) -> Checkpoint:
        """Everything, as it is now; refused where it is not numbers any more."""
        if not all(p.isfinite().all() for p in self.net.parameters()):
            # the step that has just been counted made it so; nothing was learned yet where there is none
            raise self._diverged("a weight is not finite", max(self.position.step - 1, 0))
        return Checkpoint(self.net.state_dict(), self.momentum(), asdict(self.position))

    def restore(self, found: Checkpoint | None) -> None:
        """Go on from a checkpoint, in all processes from the leader's; folders need not be shared between machines."""
        told = self.team.hand_out(json.dumps(found.position).encode() if found else None)
        if not told:
            return
        self.position = Position.from_json(json.loads(told))
        model = self._shared(found.model if found else {})
        momentum = self._shared(found.optimiser if found else {})
        try:
            self.net.load_state_dict(model)
            for name, parameter in self.net.named_parameters():
                if name in momentum:
                    kept = torch.empty_like(parameter).copy_(momentum[name])
                    self.optimiser.state[parameter]["momentum_buffer"] = kept
        except RuntimeError as error:
            told = str(error).splitlines()[-1].strip()
            raise InputError(f"the checkpoint is of another network ({told}): bring this run's own back") from error

    def _shared(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        return tensors if self.team.size == 1 else load(self.team.hand_out(save(tensors) if self.team.leads else None))
