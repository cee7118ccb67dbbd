"""Time of steps and passes, eager and exported, in turns."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch

from cascaded.bench.compare import describe_machine
from cascaded.cascade.convert.convert import convert
from cascaded.cascade.network import Cascade
from cascaded.models.networks import make_network
from cascaded.models.vit import ViT
from cascaded.runtime.export import export
from cascaded.runtime.runner import Runner
from cascaded.training.inputs import Inputs

CLASSES = tuple(map(str, range(10)))
WARM_UP = 3
"""Rounds that do not count."""
SECONDS = 20.0
"""A setting that takes longer gets fewer rounds, at least `LEAST`."""
LEAST = 5
CALLS = 5
"""Calls per round, of which the first does not count: it finds the weights of other variants in the cache."""
COMPARED = {
    "eager step / exported step": ("eager step", "exported step"),
    "exported step / exported serial pass": ("exported step", "exported serial pass"),
    "eager serial pass / exported serial pass": ("eager serial pass", "exported serial pass"),
    "exported exit half-way / exported serial pass": ("exported exit half-way", "exported serial pass"),
    "exported exit at the end / exported serial pass": ("exported exit at the end", "exported serial pass"),
}
"""Ratios of times."""
COMPARED_TRANSFORMER = {
    "exported step / exported serial pass": ("exported step", "exported serial pass"),
    "exported step, batched blocks / exported serial pass": ("exported step, batched blocks", "exported serial pass"),
    "step, batched blocks / serial pass, with torch": ("eager step, batched blocks", "eager serial pass"),
    "eager step / eager step, batched blocks": ("eager step", "eager step, batched blocks"),
}
"""The same for the transformer: 12 layers of width 64, 16 tokens."""
TRANSFORMER = "vit"


@dataclass(frozen=True)
class RuntimeSetting:
    """A network and a batch."""

    width: int
    batch_size: int
    threads: int
    arch: str = "resnet18"
    image_size: int = 32


@dataclass(frozen=True)
class RuntimeTimes:
    """What was measured in a setting.

    Attributes:
        setting: The network and the batch.
        rounds: Number of rounds; every variant ran once in each.
        milliseconds: Median over rounds, by variant.
        ratios: Median over rounds of the ratio of two variants of the same round.
        cpu_ratios: The same for the time that the processor worked for this process. Other load does not count, but
            threads that wait actively do: use them with one thread.
    """

    setting: RuntimeSetting
    rounds: int
    milliseconds: dict[str, float]
    ratios: dict[str, float]
    cpu_ratios: dict[str, float]


def time_runtime(setting: RuntimeSetting, rounds: int) -> RuntimeTimes:
    """Run all variants in turns, so that a disturbance affects all of them alike.

    Args:
        setting: The network and the batch.
        rounds: Number of rounds; fewer if they take too long.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(setting.threads)
    try:
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            variants = _transformer if setting.arch == TRANSFORMER else _variants
            seconds, cpu = _in_turns(variants(setting, Path(folder)), rounds)
    finally:
        torch.set_num_threads(before)
    times = {name: 1000 * median(each) for name, each in seconds.items()}
    compared = COMPARED_TRANSFORMER if setting.arch == TRANSFORMER else COMPARED
    ratios = [{name: median_ratio(each[a], each[b]) for name, (a, b) in compared.items()} for each in (seconds, cpu)]
    return RuntimeTimes(setting, len(seconds["eager step"]), times, *ratios)


def median_ratio(one: Sequence[float], other: Sequence[float]) -> float:
    """The median over rounds of the ratio of two times of the same round."""
    return median(a / b for a, b in zip(one, other, strict=True))


def _in_turns(variants: dict[str, Callable[[], object]], rounds: int) -> tuple[dict[str, list[float]], ...]:
    """Seconds, and seconds of the processor, per call in every round."""
    clocks = (time.perf_counter, time.process_time)
    taken = tuple({name: list[float]() for name in variants} for _ in clocks)
    began = time.perf_counter()
    for number in range(rounds + WARM_UP):
        if number >= WARM_UP + LEAST and time.perf_counter() - began > SECONDS:
            break
        for name, run in variants.items():
            run()
            starts = [clock() for clock in clocks]
            for _ in range(CALLS - 1):
                run()
            for clock, start, each in zip(clocks, starts, taken, strict=True):
                if number >= WARM_UP:
                    each[name].append((clock() - start) / (CALLS - 1))
    return taken


def _variants(setting: RuntimeSetting, folder: Path) -> dict[str, Callable[[], object]]:
    """The second step of a still image, which computes all blocks; one serial pass; and exits of a serial network."""
    generator = torch.Generator().manual_seed(0)
    frames = torch.randn(setting.batch_size, 3, *[setting.image_size] * 2, generator=generator)
    net = export_random(setting, "shared", folder / "net")
    export_random(setting, "shallow_deep", folder / "shallow-deep")
    runner, exits = (
        Runner(folder / "net", threads=setting.threads),
        Runner(folder / "shallow-deep", threads=setting.threads),
    )
    serial, arrays, last = net.serial(), frames.numpy(), len(net.blocks) + 1
    (_, state), (_, exported) = net.step(frames), runner.step(arrays, normalized=True)
    return {
        "eager step": lambda: net.step(None, state),
        "exported step": lambda: runner.step(None, exported),
        "eager serial pass": lambda: serial(frames),
        "exported serial pass": lambda: runner.full_pass(arrays, normalized=True),
        "exported exit half-way": lambda: exits.predict(arrays, steps=(last + 1) // 2, normalized=True),
        "exported exit at the end": lambda: exits.predict(arrays, steps=last, normalized=True),
    }


def _transformer(setting: RuntimeSetting, folder: Path) -> dict[str, Callable[[], object]]:
    """The second step of a still image with its blocks computed one by one and in one call, and one serial pass."""
    generator = torch.Generator().manual_seed(0)
    frames = torch.randn(setting.batch_size, 3, *[setting.image_size] * 2, generator=generator)
    net = convert(ViT(len(CLASSES), setting.image_size, width=setting.width).eval(), frames)
    inputs = Inputs(tuple(frames.shape[1:]), (0.0,) * 3, (1.0,) * 3, CLASSES)
    for net.batched, name in ((True, "batched"), (False, "apart")):
        export(net, folder / name, inputs=inputs)
    batched, apart = (Runner(folder / name, threads=setting.threads) for name in ("batched", "apart"))
    arrays, model = frames.numpy(), net.serial()
    (_, state), (_, together), (_, one_by_one) = (
        net.step(frames),
        *(runner.step(arrays, normalized=True) for runner in (batched, apart)),
    )

    def step(is_batched: bool) -> object:
        net.batched = is_batched
        return net.step(None, state)

    return {
        "eager step": lambda: step(False),
        "eager step, batched blocks": lambda: step(True),
        "exported step": lambda: apart.step(None, one_by_one),
        "exported step, batched blocks": lambda: batched.step(None, together),
        "eager serial pass": lambda: model(frames),
        "exported serial pass": lambda: batched.full_pass(arrays, normalized=True),
    }


def export_random(setting: RuntimeSetting, heads: Any, folder: Path) -> Cascade:
    """Export a network with random weights and batch statistics for every step; returns it."""
    generator, shape = torch.Generator().manual_seed(0), (3, *[setting.image_size] * 2)
    net = make_network(setting.arch, width=setting.width, heads=heads, generator=generator)
    with torch.no_grad():
        net(torch.randn(8, *shape, generator=generator))
    export(net.eval(), folder, inputs=Inputs(shape, (0.0,) * 3, (1.0,) * 3, CLASSES))
    return net


def runtime_summary(results: Sequence[RuntimeTimes]) -> dict[str, Any]:
    """All measurements and the machine, as JSON."""
    import onnxruntime  # pyright: ignore[reportMissingImports]

    return {**describe_machine(), "onnxruntime": onnxruntime.__version__, "runtime": [asdict(each) for each in results]}
