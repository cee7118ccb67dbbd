"""Measure the latency of early exit.

A trace counts steps, updates and operations. Seconds are another matter: every step has an overhead of its own, and a
smaller batch is computed less efficiently. So early exit is run and timed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cascaded.cascade.inputs import Schedule
from cascaded.files import write_json
from cascaded.models.networks import Network
from cascaded.runtime.early_exit import EarlyExitResult, early_exit, full_pass
from cascaded.traces.select import limit_images, select_images
from cascaded.training.load import Trained

FULL = "full pass"
"""The rule without early exit: one ordinary pass through the network."""
OnProgress = Callable[[int, int], object]
"""Called with the number of items that are done and the number of all items."""


@dataclass(frozen=True)
class Timing:
    """Accuracy and latency of one rule.

    Attributes:
        rule: `full pass`, or the schedule under which items exit early.
        threshold: Confidence above which an item exits; None for the full pass.
        batch_size: Items per batch.
        accuracy: Fraction of correct predictions.
        steps: Mean step at which items exit.
        p50: Median over items of the seconds from the start of their batch to their prediction.
        p95: 95th percentile of the same.
        mean: Mean of the same.
        total: Seconds per item: the time of all batches divided by the number of items.
        time_of_full: `total` as a multiple of that of the full pass.
    """

    rule: str
    threshold: float | None
    batch_size: int
    accuracy: float
    steps: float
    p50: float
    p95: float
    mean: float
    total: float
    time_of_full: float


def record_latency(
    run: Trained,
    thresholds: Sequence[float],
    batch_sizes: Sequence[int],
    max_images: int,
    on_progress: OnProgress = lambda done, total: None,
) -> tuple[Path, str, list[Timing]]:
    """Time early exit of a run on its test images, or its validation images if it has no others.

    Writes RUN/latency.json. Returns the file, the split, and the timings.

    Args:
        run: The network, from `load_run`.
        thresholds: Confidences above which an item exits.
        batch_sizes: Images per batch.
        max_images: Maximum number of images, the same number per class.
        on_progress: Called with the numbers of finished and of all items, counted once per rule.
    """
    images, items = select_images(run)
    items, device = limit_images(images, items, max_images), next(run.net.parameters()).device
    schedules: tuple[Schedule, ...] = ("serial",) if run.net.heads == "shallow_deep" else ("serial", "cascaded")
    inputs, labels = run.normalized(images.images[items].to(device)), images.labels[items]
    timings = measure_latency(run.net, inputs, labels, thresholds, batch_sizes, schedules, on_progress)
    machine = {"device": str(device), "threads": torch.get_num_threads()}
    about = {"format": 2, "weights": run.weights, "split": images.split, "items": len(items), **machine}
    file = run.folder / "latency.json"
    write_json(file, {**about, "timings": [asdict(each) for each in timings]})
    return file, images.split, timings


def measure_latency(
    net: Network,
    images: Float[Tensor, "items channels height width"],
    labels: Int[Tensor, "items"],
    thresholds: Sequence[float],
    batch_sizes: Sequence[int],
    schedules: Sequence[Schedule] = ("serial", "cascaded"),
    on_progress: OnProgress = lambda done, total: None,
) -> list[Timing]:
    """Time early exit under several thresholds and schedules, and the full pass, in turns.

    Every batch is run under all rules before the next one is, so that a disturbance affects all rules alike.

    Args:
        net: A network in evaluation mode.
        images: Normalized images.
        labels: Their classes.
        thresholds: Confidences above which an item exits.
        batch_sizes: Images per batch.
        schedules: Schedules to run; a Shallow-Deep network has the serial one only.
        on_progress: Called with the numbers of finished and of all items, counted once per rule.
    """
    rules: list[tuple[Schedule, float]] = list(product(schedules, thresholds))
    timings: list[Timing] = []
    done, total = 0, len(batch_sizes) * (1 + len(rules)) * len(images)
    for batch_size in batch_sizes:
        results: dict[tuple[str, float | None], list[EarlyExitResult]] = {}
        early_exit(net, images[:batch_size], 0.5, schedule=schedules[0])  # the very first call is slow
        for batch in images.split(batch_size):
            results.setdefault((FULL, None), []).append(full_pass(net, batch))
            for schedule, threshold in rules:
                result = early_exit(net, batch, threshold, schedule=schedule)
                results.setdefault((schedule, threshold), []).append(result)
            done += (1 + len(rules)) * len(batch)
            on_progress(done, total)
        timings += _timings(results, labels.cpu(), batch_size)
    return timings


def _timings(
    results: dict[tuple[str, float | None], list[EarlyExitResult]], labels: Tensor, batch_size: int
) -> list[Timing]:
    full = sum(batch.total for batch in results[FULL, None])
    timings = []
    for (rule, threshold), batches in results.items():
        seconds = torch.cat([batch.seconds for batch in batches])
        correct = torch.cat([batch.predictions for batch in batches]) == labels
        steps = torch.cat([batch.steps for batch in batches])
        total = sum(batch.total for batch in batches)
        p50, p95 = seconds.quantile(torch.tensor([0.5, 0.95], dtype=torch.float64)).tolist()
        accuracy, mean_step, mean = (float(each.double().mean()) for each in (correct, steps, seconds))
        relative = (total / len(labels), total / full)
        timings.append(Timing(rule, threshold, batch_size, accuracy, mean_step, p50, p95, mean, *relative))
    return timings
