"""Early exit by the clock: items leave their batch when they are sure enough, and the time of each is taken.

A trace counts steps, updates and operations. What stopping early saves on the hardware at hand is another question: a
step has a price of its own, and a batch that has shrunk is computed less efficiently. So it is done, and timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, Protocol, cast

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from cascaded.cascade.inputs import Schedule, check_steps
from cascaded.cascade.kernels import Kernel
from cascaded.cascade.network import Cascade
from cascaded.errors import InputError

FULL = "full pass"
"""The network without time: every item gets its final answer at the end."""


@dataclass(frozen=True)
class Timing:
    """What a rule for stopping took.

    Attributes:
        rule: `full pass`, or a schedule.
        threshold: Confidence above which an item leaves; None for the full pass.
        batch: Items that start together.
        accuracy: Share of right answers.
        steps: Mean step at which items left.
        p50: Median over items of the seconds from the start of their batch to their answer.
        p95: The 95th percentile of the same.
        mean: Their mean.
        total: Seconds an item took, batch by batch: the whole time over the number of items.
        against_full: `total` over that of the full pass in the same run.
    """

    rule: str
    threshold: float | None
    batch: int
    accuracy: float
    steps: float
    p50: float
    p95: float
    mean: float
    total: float
    against_full: float = 1.0

    def to_json(self) -> dict[str, Any]:
        """As `clock.json` keeps it."""
        return asdict(self)


class WithInputs(Protocol):
    """A network that comes with what its images are normalised by, as `cascaded.Pretrained` does."""

    net: Cascade

    @property
    def schedule(self) -> Schedule:
        """How it was trained to be run."""
        ...

    def prepare(self, images: Tensor, normalised: bool = False) -> Tensor:
        """Images as the network itself takes them."""
        ...


@dataclass
class Taken:
    """Answers, steps and seconds of the items of one batch."""

    said: Int[Tensor, "batch"]
    steps: Int[Tensor, "batch"]
    seconds: Float[Tensor, "batch"]
    total: float = 0.0


@torch.no_grad()
def early_exit(
    net: Cascade | WithInputs,
    images: Shaped[Tensor, "batch channels height width"],
    threshold: float,
    *,
    normalised: bool = False,
    steps: int | None = None,
    kernel: Kernel | None = None,
    schedule: Schedule | None = None,
) -> Taken:
    """Answer a batch, each item at the first step at which its confidence is above a threshold, or at the last step.

    Items that have answered are removed from the batch: later steps compute the others alone.

    Args:
        net: A network in evaluation mode, such as one from `cascaded.load`.
        images: What it takes: normalised floats for a `Cascade`; bytes, or floats in 0..1, for a `Pretrained`.
        threshold: Above which probability of the likeliest class an item is done.
        normalised: For a `Pretrained`: the images are normalised already, as in `net(...)`.
        steps: After how many steps the rest is done too; until it has settled by default.
        kernel: As in `net(...)`.
        schedule: As in `net(...)`; of a `Pretrained` by default the one that it was trained for.
    """
    check_steps(steps)
    net, images, schedule = _unpacked(net, images, normalised, schedule)
    if net.training:
        raise InputError("the network is in training mode, and would learn from what it answers: call net.eval() first")
    if not 0 <= threshold <= 1:
        raise InputError(f"threshold is {threshold}: give a confidence from 0 to 1")
    last = steps or (len(net.blocks) + 1 if schedule == "serial" else net.steps_to_settle(kernel or net.kernel))
    none = torch.zeros(len(images), dtype=torch.int64)
    taken = Taken(none, none.clone(), none.double())
    waiting, state = torch.arange(len(images)), None
    start = time.perf_counter()
    for step in range(1, last + 1):
        logits, state = net.step(images if step == 1 else None, state, kernel=kernel, schedule=schedule)
        sure, said = logits.softmax(dim=-1).max(dim=-1)
        leaves = (sure > threshold).cpu() if step < last else torch.ones(len(waiting), dtype=torch.bool)
        gone = waiting[leaves]
        taken.said[gone], taken.steps[gone] = said.cpu()[leaves], step
        taken.seconds[gone] = time.perf_counter() - start
        if leaves.all():
            break
        if leaves.any():
            waiting, state = waiting[~leaves], state.select(~leaves.to(logits.device))
    taken.total = time.perf_counter() - start
    return taken


def _unpacked(
    net: Cascade | WithInputs, images: Tensor, normalised: bool, schedule: Schedule | None
) -> tuple[Cascade, Tensor, Schedule | None]:
    """The network itself, images as it takes them, and the schedule to run it by."""
    if isinstance(net, Cascade) or not hasattr(net, "prepare"):  # a compiled cascade is neither
        return cast(Cascade, net), images, schedule
    return net.net, net.prepare(images, normalised), schedule or net.schedule


@torch.no_grad()
def full_pass(net: Cascade, images: Float[Tensor, "batch channels height width"]) -> Taken:
    """Answer a batch at once, by one pass through the network without time."""
    start = time.perf_counter()
    said = net.answer(images).argmax(dim=-1).cpu()
    total = time.perf_counter() - start
    last, each = len(net.blocks) + 1, torch.full((len(images),), total, dtype=torch.float64)
    return Taken(said, torch.full_like(said, last), each, total)


def clock(
    net: Cascade,
    images: Float[Tensor, "items channels height width"],
    labels: Int[Tensor, "items"],
    *,
    thresholds: Sequence[float] = (0.5, 0.7, 0.9, 0.99),
    batches: Sequence[int] = (1, 64),
    schedules: Sequence[Schedule] = ("serial", "cascaded"),
    told: Callable[[int], object] = lambda items: None,
) -> list[Timing]:
    """Time early exit under several thresholds and schedules, and the full pass, in turns.

    Every batch goes through all of them before the next one does, so that a noisy moment falls on all alike.

    Args:
        net: A network in evaluation mode.
        images: As it takes them.
        labels: Their classes.
        thresholds: Confidences above which an item leaves.
        batches: How many items start together.
        schedules: Of a Shallow-Deep network only the serial one can be run.
        told: Called with how many more items have been through a rule.
    """
    rules: list[tuple[Schedule, float]] = list(product(schedules, thresholds))
    results: list[Timing] = []
    for batch in batches:
        taken: dict[tuple[str, float | None], list[Taken]] = {}
        early_exit(net, images[:batch], 0.5, schedule=schedules[0])  # the first call of all is slow
        for some in images.split(batch):
            taken.setdefault((FULL, None), []).append(full_pass(net, some))
            told(len(some))
            for schedule, threshold in rules:
                taken.setdefault((schedule, threshold), []).append(early_exit(net, some, threshold, schedule=schedule))
                told(len(some))
        results += _timings(taken, labels.cpu(), batch)
    return results


def _timings(taken: dict[tuple[str, float | None], list[Taken]], labels: Tensor, batch: int) -> list[Timing]:
    full = sum(each.total for each in taken[FULL, None])
    timings = []
    for (rule, threshold), each in taken.items():
        seconds = torch.cat([part.seconds for part in each]).numpy()
        right = torch.cat([part.said for part in each]) == labels
        total = sum(part.total for part in each)
        p50, p95 = np.percentile(seconds, [50, 95])
        steps = torch.cat([part.steps for part in each]).double().mean()
        timings.append(
            Timing(
                rule,
                threshold,
                batch,
                accuracy=float(right.double().mean()),
                steps=float(steps),
                p50=float(p50),
                p95=float(p95),
                mean=float(seconds.mean()),
                total=total / len(labels),
                against_full=total / full,
            )
        )
    return timings
