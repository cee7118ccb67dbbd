"""How long the training of an experiment would take on this machine, measured from a few steps of each method."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import cache
from statistics import median

import torch

from cascaded.paper.reproduce import Reproduction, is_trained
from cascaded.progress import cores
from cascaded.training.config import RunConfig
from cascaded.training.loop import build
from cascaded.training.step import LossModule

SIZES = {
    "cifar10": (50_000, 32, 10),
    "cifar100": (50_000, 32, 100),
    "tinyimagenet": (100_000, 64, 200),
    "terriers": (11_700, 224, 10),
    "digits": (1_438, 8, 10),
}
"""Number of training images, their height and width, number of classes."""
UNKNOWN = (0, 32, 10)
BATCH, ROUNDS = 16, 2


def seconds_left(work: Reproduction) -> float:
    """Seconds of training with all cores at work; runs that have only been started count as new."""
    return sum(seconds_of(job.config) for job in work.all_jobs() if not is_trained(job.folder)) / cores()


def images_of(config: RunConfig) -> int:
    """Number of training images, about; 0 if the data set is not known here."""
    images = round(SIZES.get(config.data, UNKNOWN)[0] * (1 - config.val_fraction))
    return min(config.max_images or images, images)


def steps_of(config: RunConfig) -> int:
    """Number of training steps, about."""
    return config.epochs * math.ceil(images_of(config) / config.batch_size)


def seconds_of(config: RunConfig) -> float:
    """Time of one core for a training."""
    alike = replace(config, seed=0, fold=None, noise=None, init_from=None, epochs=1, lam=None)
    return config.epochs * images_of(config) * seconds_per_image(alike)


@cache
def seconds_per_image(config: RunConfig) -> float:
    """Time of one core per image and epoch: the median of some steps after one to warm up, in this process's time."""
    _, side, classes = SIZES.get(config.data, UNKNOWN)
    shape = torch.Size((3, side, side))
    generator = torch.Generator().manual_seed(0)
    images = torch.rand((BATCH, *shape), generator=generator)
    labels = torch.randint(classes, (BATCH,), generator=generator)
    module = LossModule(build(config, classes, shape).train(), config.get_method(), config.precision)
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
