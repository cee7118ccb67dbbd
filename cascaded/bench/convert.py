"""Time and operations of a converted vision transformer, relative to running the whole model once per step."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor

from cascaded.cascade.convert.convert import convert
from cascaded.cascade.convert.cost import count, operations_per_step
from cascaded.cascade.convert.network import ConvertedModel
from cascaded.cascade.kernels import NoDelay
from cascaded.models.vit import ViT

JOINS = {"every skip connection": "auto", "whole layers": r"layers\.\d+"}


@dataclass(frozen=True)
class ConvertedTimes:
    """Measurements of one way to convert the transformer; times and operations in passes through the model.

    Attributes:
        joins: What is delayed.
        steps: Number of steps until the output is final.
        seconds: Seconds that the conversion took.
        loop: Time of running the whole model once per step.
        time: Time of all steps at once.
        operations: Operations of all steps.
        step_times: Time of every single step of a stream.
        step_operations: Operations of every single step.
    """

    joins: str
    steps: int
    seconds: float
    loop: float
    time: float
    operations: float
    step_times: list[float]
    step_operations: list[float]

    @property
    def time_of_loop(self) -> float:
        """Time of all steps relative to running the whole model once per step."""
        return self.time / self.loop

    @property
    def time_of_operations(self) -> float:
        """Time of all steps relative to what their operations would take at the speed of the model."""
        return self.time / self.operations


def time_conversion(
    depth: int, width: int, batch_size: int, repeats: int, on_progress: Callable[[], object] = lambda: None
) -> list[ConvertedTimes]:
    """Convert a transformer of 64 tokens with all skip connections and with whole layers delayed, and time both.

    Args:
        depth: Number of layers.
        width: Features of a token.
        batch_size: Images per batch.
        repeats: Timed runs after one warm-up run, in turns; medians are returned.
        on_progress: Called after every repeat.
    """
    model = ViT(image_size=32, patch=4, depth=depth, width=width, heads=max(1, width // 64)).eval()
    images = torch.randn(batch_size, 3, 32, 32)
    measured = []
    for name, joins in JOINS.items():
        start = time.perf_counter()
        net = convert(model, images[:2], joins=joins)
        seconds = time.perf_counter() - start
        measured.append(_measure(name, net, images, seconds, repeats, on_progress))
    return measured


@torch.no_grad()
def _measure(
    name: str, net: ConvertedModel, images: Tensor, seconds: float, repeats: int, on_progress: Callable[[], object]
) -> ConvertedTimes:
    steps = net.settle_steps
    functions = [lambda: net.model(images), lambda: _loop(net, images, steps), lambda: net(images)]
    times: list[list[float]] = [[] for _ in functions]
    single: list[list[float]] = []
    for _ in range(repeats + 1):
        for found, function in zip(times, functions, strict=True):
            found.append(_seconds(function))
        single.append(_step_seconds(net, images, steps))
        on_progress()
    one, loop, film = (median(found[1:]) for found in times)
    whole = count(lambda: net(images, kernel=NoDelay(), steps=1))
    operations = [each / whole for each in operations_per_step(net, images)]
    each = [median(column) / one for column in zip(*single[1:], strict=True)]
    return ConvertedTimes(name, steps, seconds, loop / one, film / one, sum(operations), each, operations)


def _loop(net: ConvertedModel, images: Tensor, steps: int) -> None:
    for _ in range(steps):
        net.model(images)


def _step_seconds(net: ConvertedModel, images: Tensor, steps: int) -> list[float]:
    """Seconds of every step of a stream in which the images are repeated."""
    found, state = [], None
    for step in range(steps):
        start = time.perf_counter()
        _, state = net.step(None if step else images, state)
        found.append(time.perf_counter() - start)
    return found


def _seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start
