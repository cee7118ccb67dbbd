"""Time to record images beside a serial evaluation of them."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from cascaded import RunConfig
from cascaded.data.images import Images
from cascaded.models.networks import make_network
from cascaded.traces.config import RecordingConfig
from cascaded.traces.record import PIXELS, record
from cascaded.training.load import Trained
from cascaded.training.runs import Inputs

CLASSES = tuple(map(str, range(10)))


def time_recording(
    arch: str, width: int, image_size: int, items: int, on_progress: Callable[[int], object] = lambda items: None
) -> dict[str, float]:
    """Seconds to evaluate images serially (one half before, one half after) and to record them."""
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(256, (items, 3, image_size, image_size), generator=generator, dtype=torch.uint8)
    labels = torch.randint(10, (items,), generator=generator)
    images = Images("random", "test", pixels, labels, CLASSES, torch.arange(items))
    net = make_network(arch, width=width, generator=generator)
    net(torch.randn(8, 3, image_size, image_size, generator=generator))  # batch statistics of every step
    inputs = Inputs((3, image_size, image_size), (0.5,) * 3, (0.25,) * 3, CLASSES)
    with tempfile.TemporaryDirectory() as folder:
        run = Trained(Path(folder), RunConfig("random"), inputs, net.eval(), "0" * 64, 0)
        half = items // 2
        serial = _evaluate(run, images, slice(None, half), on_progress)
        start = time.perf_counter()
        record(run, RecordingConfig(steps=net.settle_steps), images=images)
        on_progress(items)
        recorded = time.perf_counter() - start
        serial += _evaluate(run, images, slice(half, None), on_progress)
    return {"width": width, "items": items, "serial": serial, "record": recorded, "time_of_serial": recorded / serial}


@torch.no_grad()
def _evaluate(run: Trained, images: Images, part: slice, on_progress: Callable[[int], object]) -> float:
    """Seconds to evaluate some images in batches of the size that recording uses."""
    serial, correct, start = run.net.serial(), 0, time.perf_counter()
    for rows in torch.arange(len(images))[part].split(PIXELS // images.images[0, 0].numel()):
        predictions = serial(run.normalized(images.images[rows])).argmax(dim=-1)
        correct += int((predictions == images.labels[rows]).sum())
        on_progress(len(rows))
    return time.perf_counter() - start
