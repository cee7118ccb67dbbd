"""How long the training of an experiment would take on this machine, measured from a few steps of each method."""

from __future__ import annotations

import time
from functools import cache
from statistics import median

import torch

from cascaded.paper.reproduce import Reproduction
from cascaded.progress import cores
from cascaded.training.config import RunConfig
from cascaded.training.loop import build
from cascaded.training.runs import is_done
from cascaded.training.step import LossModule

SIZES = {
    "cifar10": (50_000, 32, 10),
    "cifar100": (50_000, 32, 100),
    "tinyimagenet": (100_000, 64, 200),
    "terriers": (13_000, 224, 10),
}
"""Number of training images, their height and width, number of classes."""
BATCH, ROUNDS = 16, 2


def seconds_left(work: Reproduction) -> float:
    """Seconds of training with all cores at work; runs that have only been started count as new."""
    return sum(_seconds(job.config) for job in work.all_jobs() if not is_done(job.folder)) / cores()


def _seconds(config: RunConfig) -> float:
    images = config.max_images or round(SIZES[config.data][0] * (1 - config.val_fraction))
    return config.epochs * images * seconds_per_image(config.method, config.data, config.width)


@cache
def seconds_per_image(method: str, data: str, width: int) -> float:
    """Time of one core per image and epoch: the median of some steps after one to warm up, in this process's time."""
    _, side, classes = SIZES[data]
    shape = torch.Size((3, side, side))
    generator = torch.Generator().manual_seed(0)
    images = torch.rand((BATCH, *shape), generator=generator)
    labels = torch.randint(classes, (BATCH,), generator=generator)
    config = RunConfig(data=data, method=method, width=width)  # pyright: ignore[reportArgumentType]
    module = LossModule(build(config, classes, shape).train(), config.get_method())
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in a sweep with one run per core
    try:
        times = []
        for _ in range(ROUNDS + 1):
            start = time.process_time()
            module(images, labels).backward()
            times.append(time.process_time() - start)
    finally:
        torch.set_num_threads(threads)
    return median(times[1:]) / BATCH
