"""Measure the latency of early exit, with torch and with ONNX Runtime.

A trace counts steps, updates and operations. Seconds are another matter: every step has an overhead of its own, and a
smaller batch is computed less efficiently. So early exit is run and timed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cascaded.cascade.convert.capture import Call
from cascaded.cascade.convert.network import ConvertedModel
from cascaded.cascade.inputs import Schedule
from cascaded.cascade.network import Cascade
from cascaded.files import write_json
from cascaded.models.networks import Network
from cascaded.runtime.baselines import Baseline, check_baseline, folder_of
from cascaded.runtime.early_exit import early_exit, full_pass
from cascaded.runtime.exits import Exits, choose_exits
from cascaded.runtime.export import export
from cascaded.runtime.processors import predict_times
from cascaded.runtime.result import EarlyExitResult
from cascaded.runtime.runner import Runner
from cascaded.traces.select import limit_images, select_images
from cascaded.training.load import Trained

FULL = "full pass"
"""The rule without early exit: one ordinary pass through the network."""
BATCHED = "cascaded, batched blocks"
"""The cascaded schedule of a converted model whose blocks are alike and are computed in one call."""
CHOSEN = "serial, chosen exits"
"""The serial schedule of the exported network with the exits that pay off on validation images."""
FOLDERS = {True: "together", False: "apart"}
"""Where the exported network is, by whether its blocks are batched."""
OnProgress = Callable[[int, int], object]
"""Called with the number of items that are done and the number of all items."""


@dataclass(frozen=True)
class Timing:
    """Accuracy and latency of one rule.

    Attributes:
        runtime: `torch`, or `onnx` for the exported network in ONNX Runtime.
        rule: `full pass`, or the schedule under which items exit early; `cascaded, batched blocks` for blocks that
            are alike in one call.
        threshold: Confidence above which an item exits; None for the full pass.
        network: Name of a baseline, of which there is the full pass only; empty for the network itself.
        batch_size: Items per batch.
        accuracy: Fraction of correct predictions.
        steps: Mean step at which items exit.
        p50: Median over items of the seconds from the start of their batch to their prediction.
        p95: 95th percentile of the same.
        p99: 99th percentile of the same.
        mean: Mean of the same.
        typical: The same, but with the median over all items that exit at a step in place of each of them: other load
            on the machine, which delays some items by far, has little effect on it.
        total: Seconds per item: the time of all batches divided by the number of items.
        time_of_full: `total` as a multiple of that of the network's own full pass with the same runtime.
        stopped: Fraction of the items that exit at each step, from the first.
    """

    runtime: Literal["torch", "onnx"]
    rule: str
    threshold: float | None
    network: str
    batch_size: int
    accuracy: float
    steps: float
    p50: float
    p95: float
    p99: float
    mean: float
    typical: float
    total: float
    time_of_full: float
    stopped: tuple[float, ...]

    @property
    def name(self) -> str:
        """The rule in words."""
        runtime = {"torch": "torch", "onnx": "exported"}[self.runtime]
        if self.threshold is None:
            return f"{runtime} full pass of {self.network}" if self.network else f"{runtime} full pass"
        return f"{runtime} {self.rule} early exit at threshold {self.threshold:g}"


@dataclass(frozen=True)
class Latency:
    """What was measured of a run.

    Attributes:
        file: The written file.
        split: The split of the images.
        timings: One per rule and batch size.
        processors: Predicted times with several processors; empty without an exported network.
        exits: Exits chosen on validation images; None if there are none that save time, or without an exported network.
    """

    file: Path
    split: str
    timings: list[Timing]
    processors: list[dict[str, Any]]
    exits: Exits | None = None


def record_latency(
    run: Trained,
    thresholds: Sequence[float],
    batch_sizes: Sequence[int],
    max_images: int,
    on_progress: OnProgress = lambda done, total: None,
    exported: bool = False,
    baselines: Mapping[str, Trained] | None = None,
) -> Latency:
    """Time early exit of a run on its test images, or its validation images if it has no others.

    Writes RUN/latency.json.

    Args:
        run: The network, from `load_run`.
        thresholds: Confidences above which an item exits.
        batch_sizes: Images per batch.
        max_images: Maximum number of images, the same number per class.
        on_progress: Called with the numbers of finished and of all items, counted once per rule.
        exported: Also time the exported network, on the CPU, and predict its time with several processors.
        baselines: Other networks by name, trained on the same classes, whose full pass is timed as well.
    """
    baselines = dict(baselines or {})
    for name, other in baselines.items():
        check_baseline(name, other, run)
    images, items = select_images(run)
    items, device = limit_images(images, items, max_images), next(run.net.parameters()).device
    schedules: tuple[Schedule, ...] = ("serial",) if run.net.heads == "shallow_deep" else ("serial", "cascaded")
    pixels, labels = images.images[items].to(device), images.labels[items]
    inputs = run.normalized(pixels)
    others = [Baseline(name, other.net, other.normalized(pixels)) for name, other in baselines.items()]
    with tempfile.TemporaryDirectory() as folder:
        place, chosen = Path(folder) / "exported" if exported else None, None
        if place is not None:
            _export(run, place)
            chosen = _export_chosen(run, place)
            for name, other in baselines.items():
                export(other.net, place / folder_of(name), inputs=other.inputs)
        timings = measure_latency(
            run.net, inputs, labels, thresholds, batch_sizes, schedules, on_progress, place, others, chosen
        )
    predictable = exported and "cascaded" in schedules and isinstance(run.net, Cascade)
    processors = predict_times(cast("Cascade", run.net), inputs, labels) if predictable else []
    machine = {"device": str(device), "threads": torch.get_num_threads()}
    about = {"format": 4, "weights": run.weights, "split": images.split, "items": len(items), **machine}
    file = run.folder / "latency.json"
    write_json(file, {**about, "timings": [asdict(each) for each in timings], "processors": processors})
    return Latency(file, images.split, timings, processors, chosen)


def measure_latency(
    net: Network,
    images: Float[Tensor, "items channels height width"],
    labels: Int[Tensor, "items"],
    thresholds: Sequence[float],
    batch_sizes: Sequence[int],
    schedules: Sequence[Schedule] = ("serial", "cascaded"),
    on_progress: OnProgress = lambda done, total: None,
    exported: Path | None = None,
    baselines: Sequence[Baseline] = (),
    exits: Exits | None = None,
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
        exported: Folder with the exported network, to be timed as well: in `FOLDERS[True]` and, with blocks apart, in
            `FOLDERS[False]` if it has blocks that are alike.
        baselines: Other networks, whose full pass is timed as well.
        exits: Those of the exported network in the folder `CHOSEN`.
    """
    rules = _rules(net, thresholds, schedules, exported, has_alike_blocks(net, images[:1]))
    if exported is not None and exits is not None:
        runner = Runner(exported / CHOSEN, schedule="serial", threads=torch.get_num_threads())
        for threshold in sorted({*thresholds, exits.threshold}):
            rules["onnx", CHOSEN, threshold, ""] = partial(_exported, runner, threshold)
    rules |= _baseline_rules(baselines, exported)
    inputs = {"": images} | {each.name: each.images for each in baselines}
    timings: list[Timing] = []
    done, total = 0, len(batch_sizes) * len(rules) * len(images)
    for batch_size in batch_sizes:
        results: dict[_Key, list[EarlyExitResult[Tensor]]] = {key: [] for key in rules}
        for items in torch.arange(len(images)).split(batch_size):
            for key, run in rules.items():
                batch = inputs[key[-1]][int(items[0]) : int(items[-1]) + 1]
                run(batch)  # finds the weights of another rule in the cache, and does not count
                results[key].append(run(batch))
            done += len(rules) * len(items)
            on_progress(done, total)
        timings += _timings(results, labels.cpu(), batch_size)
    return timings


_Key = tuple[Literal["torch", "onnx"], str, float | None, str]
_Rule = Callable[[Tensor], EarlyExitResult[Tensor]]


def has_alike_blocks(net: Network, image: Float[Tensor, "1 channels height width"]) -> bool:
    """Whether a network has blocks that are computed in one call."""
    return isinstance(net, ConvertedModel) and bool(net.ready(Call((image,), {})).alike)


def _export(run: Trained, folder: Path) -> None:
    """Write the exported network and, if its blocks are alike, one whose blocks are apart."""
    export(run.net, folder / FOLDERS[True], inputs=run.inputs)
    if isinstance(run.net, ConvertedModel):
        with blocks_of(run.net, batched=False):
            export(run.net, folder / FOLDERS[False], inputs=run.inputs)


def _export_chosen(run: Trained, folder: Path) -> Exits | None:
    """Write the exported network with the exits that pay off, if it was trained to exit between blocks."""
    if not isinstance(run.net, Cascade) or run.config.get_method().schedule != "serial":
        return None
    if found := choose_exits(run):
        export(run.net, folder / CHOSEN, inputs=run.inputs, exits=found.steps)
    return found


@contextmanager
def blocks_of(net: Network, batched: bool) -> Iterator[None]:
    """Compute blocks that are alike in one call, or apart."""
    if not isinstance(net, ConvertedModel):
        yield
        return
    before, net.batched = net.batched, batched
    try:
        yield
    finally:
        net.batched = before


def _rules(
    net: Network, thresholds: Sequence[float], schedules: Sequence[Schedule], exported: Path | None, alike: bool
) -> dict[_Key, _Rule]:
    """What is timed: a function of a batch for every runtime, rule and threshold."""

    def exit_early(schedule: Schedule, threshold: float, batched: bool, batch: Tensor) -> EarlyExitResult[Tensor]:
        with blocks_of(net, batched):
            return early_exit(net, batch, threshold, schedule=schedule)

    ways: list[tuple[Schedule, str, bool]] = [(schedule, schedule, not alike) for schedule in schedules]
    if alike and "cascaded" in schedules:
        ways.append(("cascaded", BATCHED, True))
    rules: dict[_Key, _Rule] = {("torch", FULL, None, ""): partial(full_pass, net)}
    for (schedule, rule, batched), threshold in product(ways, thresholds):
        rules["torch", rule, threshold, ""] = partial(exit_early, schedule, threshold, batched)
    if exported is None:
        return rules
    threads = torch.get_num_threads()
    runners = {
        rule: Runner(exported / FOLDERS[batched], schedule=schedule, threads=threads)
        for schedule, rule, batched in ways
    }
    rules["onnx", FULL, None, ""] = partial(_exported, runners[schedules[0]], None)
    for (_, rule, _), threshold in product(ways, thresholds):
        rules["onnx", rule, threshold, ""] = partial(_exported, runners[rule], threshold)
    return rules


def _baseline_rules(baselines: Sequence[Baseline], exported: Path | None) -> dict[_Key, _Rule]:
    """The full pass of other networks."""
    rules: dict[_Key, _Rule] = {}
    for each in baselines:
        rules["torch", FULL, None, each.name] = partial(full_pass, each.net)
        if exported is not None:
            runner = Runner(exported / folder_of(each.name), threads=torch.get_num_threads())
            rules["onnx", FULL, None, each.name] = partial(_exported, runner, None)
    return rules


def _exported(runner: Runner, threshold: float | None, batch: Tensor) -> EarlyExitResult[Tensor]:
    found = runner.predict(batch.float().cpu().numpy(), threshold, normalized=True)
    predictions, steps, seconds = map(torch.as_tensor, (found.predictions, found.steps, found.seconds))
    return EarlyExitResult(predictions, steps, seconds, found.total)


def _timings(results: dict[_Key, list[EarlyExitResult[Tensor]]], labels: Tensor, batch_size: int) -> list[Timing]:
    totals = {key: sum(batch.total for batch in batches) for key, batches in results.items()}
    timings = []
    for (runtime, rule, threshold, network), batches in results.items():
        seconds = torch.cat([batch.seconds for batch in batches])
        correct = torch.cat([batch.predictions for batch in batches]) == labels
        steps = torch.cat([batch.steps for batch in batches])
        total = totals[runtime, rule, threshold, network]
        p50, p95, p99 = seconds.quantile(torch.tensor([0.5, 0.95, 0.99], dtype=torch.float64)).tolist()
        accuracy, mean_step, mean = (float(each.double().mean()) for each in (correct, steps, seconds))
        relative = (total / len(labels), total / totals[runtime, FULL, None, ""])
        stopped = tuple((steps.bincount()[1:] / len(labels)).tolist())
        about = (runtime, rule, threshold, network, batch_size, accuracy, mean_step)
        typical = sum(float(seconds[steps == step].median()) * share for step, share in enumerate(stopped, 1) if share)
        timings.append(Timing(*about, p50, p95, p99, mean, typical, *relative, stopped))
    return timings
