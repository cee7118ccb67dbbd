"""One setting of the benchmark: who runs, what is timed, what is counted."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from statistics import median

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from cascaded.bench.loop import TimeMajorLoop
from cascaded.bench.pipeline import batches
from cascaded.cascade import conv
from cascaded.cascade.network import Cascade
from cascaded.losses import td_loss
from cascaded.models.networks import make_network

CONTENDERS = ("loop", "serial", "plain convolutions", "cascade")
INPUT = "input pipeline"
TASKS = ("train", "evaluate")


@dataclass(frozen=True)
class Setting:
    """A network, a batch and what is done with them."""

    task: str
    width: int
    batch: int
    model: str = "resnet18"
    size: int = 32
    threads: int = 2


@dataclass
class Measurement:
    """What one contender took in one setting."""

    contender: str
    seconds: list[float] = field(default_factory=list)
    peak_bytes: int | None = None
    operations: int = 0

    @property
    def typical(self) -> float:
        """The median of the repeats."""
        return median(self.seconds)


def contest(setting: Setting, repeats: int, memory: bool, told: Callable[[], None]) -> dict[str, Measurement]:
    """Run all contenders in turns, so that a noisy moment falls on all of them alike; `told` after every run."""
    torch.set_num_threads(setting.threads)
    results = {name: Measurement(name, operations=operations(setting, name)) for name in CONTENDERS}
    if memory:
        for name, result in results.items():
            result.peak_bytes = peak_bytes(setting, name)
            told()
    runs = {name: prepare(setting, name) for name in CONTENDERS}
    if setting.task == "train":
        results[INPUT], runs[INPUT] = Measurement(INPUT), batches(setting.batch, setting.size)
    for turn in range(repeats + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            if turn > 0:  # the first turn warms up
                results[name].seconds.append(time.perf_counter() - start)
            if name != INPUT:  # it is over before anyone has looked
                told()
    return results


def prepare(setting: Setting, contender: str, device: str = "cpu") -> Callable[[], None]:
    """A function that does the contender's work once."""
    generator = torch.Generator().manual_seed(0)
    net = make_network(setting.model, width=setting.width, generator=generator).to(device)
    images = torch.randn(setting.batch, 3, setting.size, setting.size, generator=generator).to(device)
    labels = torch.randint(10, (setting.batch,), generator=generator).to(device)
    # where there are no values, there is nothing to look up in running statistics
    module = _module(net, contender).train(setting.task == "train" or device == "meta")
    if setting.task == "train":
        work = _training_step(module, images, labels)
    else:
        work = torch.no_grad()(lambda: module(images))

    def run() -> None:
        with _convolutions(pixelwise=contender != "plain convolutions"):
            work()

    return run


def _module(net: Cascade, contender: str) -> nn.Module:
    """The loop as published, channels first; the others in the network's own memory format."""
    if contender == "loop":
        net = net.to(memory_format=torch.contiguous_format)  # pyright: ignore[reportCallIssue]
        return TimeMajorLoop(net)
    return net.serial() if contender == "serial" else net


def _training_step(module: nn.Module, images: Tensor, labels: Tensor) -> Callable[[], None]:
    optimiser = torch.optim.SGD(module.parameters(), lr=1e-3, momentum=0.9, nesterov=True)

    def step() -> None:
        optimiser.zero_grad()
        logits = module(images)
        trace = logits if logits.dim() == 3 else logits[None]  # the serial network answers once
        td_loss(trace, labels, lam=0.0).backward()
        optimiser.step()

    return step


@contextmanager
def _convolutions(pixelwise: bool) -> Iterator[None]:
    """Small maps as matrix products, or every convolution as torch has it."""
    before, conv.PIXELS = conv.PIXELS, conv.PIXELS if pixelwise else 0
    try:
        yield
    finally:
        conv.PIXELS = before


def operations(setting: Setting, contender: str) -> int:
    """Operations for the whole batch, counted on shapes alone."""
    with FlopCounterMode(display=False) as counter:
        prepare(setting, contender, device="meta")()
    return counter.get_total_flops()


def peak_bytes(setting: Setting, contender: str) -> int:
    """How much memory the work takes at its peak, in a process of its own."""
    job = json.dumps({"setting": asdict(setting), "contender": contender})
    command = [sys.executable, "-m", "cascaded.bench.memory", job]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
