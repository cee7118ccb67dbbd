"""Predicted time of a cascade on hardware that updates several blocks at once, from measured times per block."""

from __future__ import annotations

import heapq
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from cascaded.cascade.film import SETTLED, still
from cascaded.cascade.kernels import OneStepDelay
from cascaded.cascade.network import Cascade
from cascaded.cascade.state import State
from cascaded.runtime.exported import BATCH
from cascaded.runtime.graph import Graph, Weights
from cascaded.runtime.layers import write_head, write_layer
from cascaded.runtime.sessions import open_session
from cascaded.runtime.steps import StepWriter

PROCESSORS: tuple[int | None, ...] = (1, 2, 4, 8, None)
"""Numbers of processors; None is as many as there are blocks."""
ROUNDS = 50


@dataclass(frozen=True)
class BlockTimes:
    """Measured seconds for one image, on one thread: the stem, every block, and the head."""

    stem: float
    blocks: tuple[float, ...]
    head: float

    def cascaded(self, processors: int | None) -> list[float]:
        """Seconds until the output of each step, under a one-step delay, if so many blocks are updated at a time.

        At step t, blocks t-1 and later are updated: the input of the others is final. The skip paths, which are not
        delayed, and communication are not counted.
        """
        first = self.stem + self.head
        steps = [self.head + makespan(self.blocks[t - 2 :], processors) for t in range(2, len(self.blocks) + 2)]
        return list(accumulate([first, *steps]))

    def serial(self) -> list[float]:
        """Seconds until the output of each step of the serial schedule, one block after the other."""
        return list(accumulate([self.stem + self.head, *(block + self.head for block in self.blocks)]))

    def full_pass(self) -> float:
        """Seconds of one pass with one output."""
        return self.stem + sum(self.blocks) + self.head


def makespan(times: Sequence[float], processors: int | None) -> float:
    """When the last of several jobs ends, if the longest ones are started first."""
    free = [0.0] * min(processors or len(times), len(times))
    for each in sorted(times, reverse=True):
        heapq.heapreplace(free, free[0] + each)
    return max(free, default=0.0)


@torch.no_grad()
def measure_blocks(net: Cascade, image: Float[Tensor, "1 channels height width"], rounds: int = ROUNDS) -> BlockTimes:
    """Time the stem, every block and the head in ONNX Runtime, in turns; medians over the rounds.

    Args:
        net: A network in evaluation mode.
        image: One normalized image.
        rounds: How often each is run.
    """
    film = net.stem(still(net.arrange(image), steps=1, start=SETTLED))
    values = [image]
    for block in net.chain:
        values.append(film.frames)
        film = block.forward_settled(film)
    values.append(film.frames)
    feeds = [{"x": each.float().cpu().contiguous().numpy()} for each in values]
    with tempfile.TemporaryDirectory() as folder:
        sessions = [open_session(file, threads=1) for file in _write_parts(net, values, Path(folder))]
        seconds = _in_turns([*zip(sessions, feeds, strict=True)], rounds)
    stem, *blocks, head = map(median, seconds)
    return BlockTimes(stem, tuple(blocks), head)


def _in_turns(parts: Sequence[tuple[Any, dict[str, np.ndarray]]], rounds: int) -> list[list[float]]:
    seconds: list[list[float]] = [[] for _ in parts]
    for number in range(rounds + 1):
        for (session, feed), taken in zip(parts, seconds, strict=True):
            start = time.perf_counter()
            session.run(None, feed)
            if number:  # the first one is the warm-up
                taken.append(time.perf_counter() - start)
    return seconds


def _write_parts(net: Cascade, values: Sequence[Tensor], folder: Path) -> list[Path]:
    """ONNX files of the stem, every block and the head, each with its input `x`."""
    weights, files = Weights(folder / "weights.bin"), []
    empty = State(torch.tensor(0), torch.tensor(0), values[0], values[0])
    for number, value in enumerate(values):
        graph = Graph(weights)
        x = graph.input("x", (BATCH, *value.shape[1:]))
        if number == 0:
            y = write_layer(graph, net.stem, x, SETTLED)
        elif number <= len(net.blocks):
            writer = StepWriter(net, net.kernel, graph, SETTLED, empty, None)
            y = writer.write_settled_block(net.chain[number - 1], x, SETTLED)
        else:
            y = write_head(graph, net.readout.at(SETTLED), x)
        after = (BATCH, *values[number + 1].shape[1:]) if number <= len(net.blocks) else (BATCH, net.num_classes)
        graph.output("y", y, after)
        files.append(folder / f"part-{number}.onnx")
        graph.save(files[-1])
    return files


@torch.no_grad()
def predict_times(
    net: Cascade, images: Float[Tensor, "items channels height width"], labels: Int[Tensor, "items"]
) -> list[dict[str, Any]]:
    """Accuracy per step against predicted seconds, for the serial schedule and several numbers of processors.

    Args:
        net: A network in evaluation mode, with any heads but Shallow-Deep ones.
        images: Normalized images.
        labels: Their classes.
    """
    times = measure_blocks(net, images[:1])

    def accuracy(**options: Any) -> list[float]:
        traces = [net(batch, **options).argmax(dim=-1).cpu() for batch in images.split(64)]
        return (torch.cat(traces, dim=1) == labels.cpu()).double().mean(dim=1).tolist()

    cascaded, serial = accuracy(kernel=OneStepDelay(), schedule="cascaded"), accuracy(schedule="serial")
    rows = [
        {"rule": "cascaded", "processors": each, "seconds": times.cascaded(each), "accuracy": cascaded}
        for each in PROCESSORS
    ]
    rows.append({"rule": "serial", "processors": 1, "seconds": times.serial(), "accuracy": serial})
    return [*rows, {"rule": "full pass", "processors": 1, "seconds": [times.full_pass()], "accuracy": serial[-1:]}]
