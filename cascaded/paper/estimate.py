"""How long an item would take on this machine, measured from a few steps of each kind of network."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Literal

from cascaded.progress import cores
from cascaded.training.config import RECIPES, RunConfig

if TYPE_CHECKING:
    from cascaded.paper.reproduce import Work

SIZES = {"cifar10": (50_000, 32, 10), "cifar100": (50_000, 32, 100), "tinyimagenet": (100_000, 64, 200)}
"""Training images, their height and width, and how many classes there are."""
TERRIERS = (13_000, 224, 10)
BATCH = 16  # a few images tell as much as many


@cache
def seconds_an_image(model: str, data: str, recipe: Literal["laptop", "paper"], width: int) -> float:
    """What it takes one core to learn from one image; lambda, noise and epochs change nothing about it."""
    config = replace(RECIPES[recipe], data=data, width=width, method=model, lam=None)
    return measured([config], rounds=2)[0]


def measured(configs: Sequence[RunConfig], rounds: int) -> list[float]:
    """Seconds an image of some networks, which take turns; the median of some rounds, after one to warm up.

    It is this process's own time that counts, so that others beside it do not.
    """
    from statistics import median

    with _one_thread():
        steps = [_step(config) for config in configs]
        times = [[step() for step in steps] for _ in range(rounds + 1)][1:]
    return [median(each) / BATCH for each in zip(*times, strict=True)]


def _step(config: RunConfig) -> Callable[[], float]:
    """A function that learns from some images once and says how long it took."""
    import torch

    from cascaded.training.load import build
    from cascaded.training.step import LossModule

    _, side, classes = SIZES.get(config.data, TERRIERS)
    shape = torch.Size((3, side, side))
    generator = torch.Generator().manual_seed(0)
    images = torch.rand((BATCH, *shape), generator=generator)
    labels = torch.randint(classes, (BATCH,), generator=generator)
    learner = LossModule(build(config, classes, shape).train(), config.get_method())

    def step() -> float:
        began = time.process_time()
        learner(images, labels).backward()
        return time.process_time() - began

    return step


@contextmanager
def _one_thread() -> Iterator[None]:
    """As in a sweep with a run a core."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def seconds_left(work: Work) -> float:
    """How long the training that an item lacks would take with all cores at work; what is begun counts as new."""
    from cascaded.training.runs import is_done

    left = 0.0
    for job in dict.fromkeys([*work.first(), *work.asked()]):
        if is_done(job.folder):
            continue
        config = job.config
        images = config.max_images or round(SIZES.get(config.data, TERRIERS)[0] * (1 - config.val_fraction))
        each = seconds_an_image(config.method, config.data, work.scale.name, config.width)
        left += config.epochs * images * each
    return left / cores()
