"""Recording beside a serial evaluation of the same images, and analyses of a trace as large as the paper's."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from cascaded import Spec, analysis
from cascaded.cascade.kernels import OneStepDelay
from cascaded.data.images import Images
from cascaded.models.networks import make_network
from cascaded.traces.config import Origin
from cascaded.traces.protocols import Still
from cascaded.traces.record import PIXELS, record
from cascaded.traces.trace import Trace
from cascaded.training.load import Trained
from cascaded.training.runs import Inputs

CLASSES = tuple(map(str, range(10)))
TRACE = (70, 10_000, 10)
"""Steps, items and classes of the trace that analyses are timed on."""


def recording(model: str, width: int, size: int, items: int, told: Callable[[int], object]) -> dict[str, float]:
    """Seconds to evaluate images serially, and to record them; half of the evaluation before and half after."""
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(256, (items, 3, size, size), generator=generator, dtype=torch.uint8)
    labels = torch.randint(10, (items,), generator=generator)
    images = Images("made", "test", pixels, labels, CLASSES, torch.arange(items))
    net = make_network(model, width=width, generator=generator)
    net(torch.randn(8, 3, size, size, generator=generator))  # statistics of every step
    inputs = Inputs((3, size, size), (0.5,) * 3, (0.25,) * 3, CLASSES)
    with tempfile.TemporaryDirectory() as folder:
        run = Trained(Path(folder), Spec("made"), inputs, net.eval(), "0" * 64, 0)
        half = items // 2
        serial = _evaluate(run, images, slice(None, half), told)
        start = time.perf_counter()
        record(run, images, Still(OneStepDelay(), "cascaded", net.settle_steps), told=told)
        recorded = time.perf_counter() - start
        serial += _evaluate(run, images, slice(half, None), told)
    return {"width": width, "items": items, "serial": serial, "record": recorded, "times_serial": recorded / serial}


@torch.no_grad()
def _evaluate(run: Trained, images: Images, part: slice, told: Callable[[int], object]) -> float:
    """Seconds to evaluate some images, as many at a time as recording has."""
    serial, right, start = run.net.serial(), 0, time.perf_counter()
    for some in torch.arange(len(images))[part].split(PIXELS // images.images[0, 0].numel()):
        said = serial(run.normalised(images.images[some])).argmax(dim=-1)
        right += int((said == images.labels[some]).sum())
        told(len(some))
    return time.perf_counter() - start


def analyses(shape: tuple[int, int, int] = TRACE) -> dict[str, float]:
    """Seconds for each analysis of one made-up trace, all that is trained aside."""
    steps, items, classes = shape
    generator = np.random.default_rng(0)
    labels = generator.integers(classes, size=items)
    logits = generator.normal(size=shape).astype(np.float32)
    logits[:, np.arange(items), labels] += np.linspace(0, 4, steps, dtype=np.float32)[:, None]
    trace = Trace(logits, labels, origin=Origin(coarse_of=tuple(each // 2 for each in range(classes))))
    measures = {"made up": generator.normal(size=items)}
    latency = analysis.selection_latency(trace).steps
    asked: dict[str, Callable[[], object]] = {
        "speed_accuracy": lambda: analysis.speed_accuracy(trace),
        "selection_latency": lambda: analysis.selection_latency(trace),
        "prototypicality": lambda: analysis.prototypicality(trace, measures, latency=latency),
        "taxonomic_compliance": lambda: analysis.taxonomic_compliance(trace),
    }
    return {name: _seconds(ask) for name, ask in asked.items()}


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
