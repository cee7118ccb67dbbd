"""Time, memory and operations of a cascade, beside the published loop and one serial pass.

`loop` is the published method (`cascaded/bench/loop.py`), `serial` one ordinary forward pass, `cascade` this library,
`plain convolutions` this library without its own convolution for small feature maps. `input pipeline` is the time to
prepare a training batch.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import count
from statistics import median
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from cascaded.bench.loop import TimeMajorLoop
from cascaded.cascade import conv
from cascaded.cascade.network import Cascade
from cascaded.data.augment import Augment
from cascaded.data.images import Images
from cascaded.losses import td_loss
from cascaded.models.networks import make_network
from cascaded.training.data import Batches
from cascaded.training.distributed import Distributed

IMPLEMENTATIONS = ("loop", "serial", "plain convolutions", "cascade")
PIPELINE = "input pipeline"
PIPELINE_IMAGES = 10_000


@dataclass(frozen=True)
class Setting:
    """A network, a batch and the task that is timed."""

    task: Literal["train", "evaluate"]
    width: int
    batch_size: int
    arch: str = "resnet18"
    image_size: int = 32
    threads: int = 2


@dataclass
class Measurement:
    """Time, memory and operations of one implementation in one setting."""

    implementation: str
    seconds: list[float] = field(default_factory=list)
    peak_bytes: int | None = None
    operations: int = 0

    @property
    def median_seconds(self) -> float:
        """The median over the repeats."""
        return median(self.seconds)


def compare(
    setting: Setting, repeats: int, memory: bool, on_progress: Callable[[], object] = lambda: None
) -> dict[str, Measurement]:
    """Measure all implementations in turns, so that a slow moment of the machine affects all of them alike.

    Args:
        setting: The network, the batch and the task.
        repeats: Number of timed runs per implementation, after one warm-up run.
        memory: Measure peak memory as well, each implementation in a process of its own.
        on_progress: Called after every run of an implementation.
    """
    torch.set_num_threads(setting.threads)
    results = {name: Measurement(name, operations=operations(setting, name)) for name in IMPLEMENTATIONS}
    if memory:
        for name, result in results.items():
            result.peak_bytes = peak_bytes(setting, name)
            on_progress()
    runs = {name: prepare(setting, name) for name in IMPLEMENTATIONS}
    if setting.task == "train":
        results[PIPELINE], runs[PIPELINE] = Measurement(PIPELINE), input_pipeline(setting)
    for repeat in range(repeats + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            if repeat > 0:  # the first one is the warm-up
                results[name].seconds.append(time.perf_counter() - start)
            if name != PIPELINE:
                on_progress()
    return results


def prepare(setting: Setting, implementation: str, device: str = "cpu") -> Callable[[], None]:
    """A function that runs the task once with one implementation."""
    generator = torch.Generator().manual_seed(0)
    net = make_network(setting.arch, width=setting.width, generator=generator).to(device)
    images = torch.randn(setting.batch_size, 3, *[setting.image_size] * 2, generator=generator).to(device)
    labels = torch.randint(10, (setting.batch_size,), generator=generator).to(device)
    # on the meta device there are no running statistics to look up
    module = _module(net, implementation).train(setting.task == "train" or device == "meta")
    task = _training_step(module, images, labels) if setting.task == "train" else lambda: module(images)

    def run() -> None:
        with _convolutions(implementation != "plain convolutions"), torch.set_grad_enabled(setting.task == "train"):
            task()

    return run


def _module(net: Cascade, implementation: str) -> nn.Module:
    """The loop as published, channels first; the others in the network's own memory format."""
    if implementation == "loop":
        net = net.to(memory_format=torch.contiguous_format)  # pyright: ignore[reportCallIssue]
        return TimeMajorLoop(net)
    return net.serial() if implementation == "serial" else net


def _training_step(module: nn.Module, images: Tensor, labels: Tensor) -> Callable[[], None]:
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-3, momentum=0.9, nesterov=True)

    def step() -> None:
        optimizer.zero_grad()
        logits = module(images)
        td_loss(logits if logits.dim() == 3 else logits[None], labels, lam=0.0).backward()  # serial: one step
        optimizer.step()

    return step


@contextmanager
def _convolutions(pixelwise: bool) -> Iterator[None]:
    """Compute small feature maps by matrix products, or every convolution with torch's own."""
    before, conv.PIXELS = conv.PIXELS, conv.PIXELS if pixelwise else 0
    try:
        yield
    finally:
        conv.PIXELS = before


def input_pipeline(setting: Setting) -> Callable[[], None]:
    """A function that prepares the next batch as training does: sampled, augmented, normalized."""
    generator = torch.Generator().manual_seed(0)
    size, items = setting.image_size, max(PIPELINE_IMAGES, setting.batch_size)
    pixels = torch.randint(256, (items, 3, size, size), generator=generator, dtype=torch.uint8)
    labels = torch.randint(10, (items,), generator=generator)
    images = Images("random", "train", pixels, labels, tuple(map(str, range(10))), torch.arange(items))
    augment, rows = Augment(pad=size // 8, cutout=size // 4), images.indices
    batches = Batches(images, rows, rows[:0], None, augment, 0, setting.batch_size, Distributed(), torch.device("cpu"))
    steps = count()

    def next_batch() -> None:
        batches.at(next(steps))

    return next_batch


def operations(setting: Setting, implementation: str) -> int:
    """Operations for the whole batch, counted from shapes alone."""
    with FlopCounterMode(display=False) as counter:
        prepare(setting, implementation, device="meta")()
    return counter.get_total_flops()


def peak_bytes(setting: Setting, implementation: str) -> int:
    """Peak memory of one run in bytes, measured in a process of its own."""
    job = json.dumps({"setting": asdict(setting), "implementation": implementation})
    command = [sys.executable, "-m", "cascaded.bench.memory", job]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def ratios(measured: Mapping[str, Measurement]) -> dict[str, dict[str, float | None]]:
    """Every implementation relative to the cascade, the loop and one serial pass."""
    loop, serial, cascade = (measured[name] for name in ("loop", "serial", "cascade"))
    return {
        name: {
            "time_of_cascade": each.median_seconds / cascade.median_seconds,
            "speedup_over_loop": loop.median_seconds / each.median_seconds,
            "time_of_serial": each.median_seconds / serial.median_seconds,
            "memory_of_loop": each.peak_bytes / loop.peak_bytes if each.peak_bytes and loop.peak_bytes else None,
            "operations_of_loop": each.operations / loop.operations,
        }
        for name, each in measured.items()
    }


def summary(results: Mapping[Setting, Mapping[str, Measurement]]) -> dict[str, Any]:
    """All measurements, their ratios and the machine, as JSON."""
    settings = []
    for setting, measured in results.items():
        relative = ratios(measured)
        settings.append(asdict(setting) | {"results": [asdict(each) | relative[n] for n, each in measured.items()]})
    return {**describe_machine(), "settings": settings}


def describe_machine() -> dict[str, Any]:
    """The machine, and the versions of torch and Python, as JSON."""
    machine = {"system": platform.platform(), "processor": platform.processor(), "cores": os.cpu_count()}
    return {"torch": torch.__version__, "python": platform.python_version(), "machine": machine}
