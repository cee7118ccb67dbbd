"""Choose the exits of the serial schedule that pay off.

Every exit is a call of its own. Where blocks are small, the call takes as long as the block, and early exit at every
step saves nothing. Few exits, where many items are confident enough, do.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from cascaded.cascade.network import Cascade
from cascaded.errors import InputError, between
from cascaded.runtime.export import export
from cascaded.runtime.result import confidence
from cascaded.runtime.runner import Runner
from cascaded.traces.select import limit_images, select_images
from cascaded.training.load import Trained

WITHIN = 0.01
"""The accuracy that an early exit may lose."""
CONFIDENT = 1.645
"""Standard errors that are added to the measured loss: 95 % of a normal distribution are below."""
THRESHOLDS = tuple(np.linspace(0, 1, 51).round(2).tolist())
MAX_IMAGES, ROUNDS = 5000, 40


@dataclass(frozen=True)
class Exits:
    """Chosen exits.

    Attributes:
        steps: Steps of the serial schedule after which an item may exit, besides the last one.
        threshold: Confidence above which it exits.
        accuracy: Accuracy with them, on the images that they were chosen on.
        relative_time: Predicted mean time of an item as a multiple of that of a pass without early exit.
    """

    steps: tuple[int, ...]
    threshold: float
    accuracy: float
    relative_time: float


def choose_exits(run: Trained, data: str | None = None, max_images: int = MAX_IMAGES) -> Exits | None:
    """Choose exits and a threshold on validation images, for items one at a time; None if no early exit saves time.

    The network is exported with all exits first, which shows how long every step takes on this machine.

    Args:
        run: The network, from `load_run`.
        data: Data set with the validation images; the network's own by default.
        max_images: Maximum number of images, the same number per class.
    """
    if not isinstance(run.net, Cascade):
        raise InputError("a converted model has an output after every step: leave out exits")
    images, items = select_images(run, data, "validation")
    items, device = limit_images(images, items, max_images), next(run.net.parameters()).device
    batches = [run.normalized(images.images[each].to(device)) for each in items.split(250)]
    with torch.no_grad():
        logits = torch.cat([run.net(each, schedule="serial") for each in batches], dim=1).float().cpu().numpy()
    with tempfile.TemporaryDirectory() as folder:
        export(run.net, Path(folder) / "all", inputs=run.inputs)
        runner = Runner(Path(folder) / "all", schedule="serial")
        seconds = measure_steps(runner, batches[0][:1].float().cpu().numpy())
    return best_exits(logits, images.labels[items].numpy(), seconds)


def describe_exits(found: Exits | None) -> str:
    """Chosen exits in one sentence."""
    if found is None:
        return "no early exit saves time on validation images at the accuracy of the last step: all exits are kept"
    steps = " and ".join(map(str, found.steps))
    return (
        f"exits after step {steps} at threshold {found.threshold:g}: accuracy {found.accuracy:.1%} on validation "
        f"images, predicted time {found.relative_time:.2f} of a full pass"
    )


def measure_steps(runner: Runner, image: Float[np.ndarray, "1 channels height width"]) -> list[float]:
    """Seconds of every step of one image in a runner of the serial schedule, and of one more, which computes a head.

    Args:
        runner: A runner of the serial schedule.
        image: A normalized image.
    """
    least = [float("inf")] * (runner.last_step() + 1)
    for _ in range(ROUNDS):
        state = None
        for number in range(len(least)):
            start = time.perf_counter()
            logits, state = runner.step(None if number else image, state, normalized=True)
            confidence(logits)
            least[number] = min(least[number], time.perf_counter() - start)
    return least


def best_exits(
    logits: Float[np.ndarray, "time items classes"],
    labels: Int[np.ndarray, "items"],
    seconds: Sequence[float],
    within: float = WITHIN,
) -> Exits | None:
    """The exits with the shortest predicted time, among those that lose little accuracy against the last step.

    Steps between two exits are one call. With s_1, ..., s_T the seconds of the steps and o those of a call that
    computes a head only, steps i to j take s_i + ... + s_j - (j - i) o. Exits are added one at a time, each time the
    best one, as long as the time gets shorter. The loss of accuracy counts with its uncertainty over items: with few
    items, early exits are not trusted.

    Args:
        logits: Logits at every step.
        labels: Classes of the items.
        seconds: Seconds of every step, and of one more, which computes a head only.
        within: Highest loss of accuracy: an upper limit of its 95 % interval (one-sided) over items.
    """
    between(0, 1, within=within)
    sure = np.stack([confidence(each) for each in logits])
    correct = logits.argmax(axis=-1) == labels
    found = _fastest((), sure, correct, seconds, within)
    while len(found.steps) < len(logits) - 1:
        more = [(*found.steps, each) for each in range(1, len(logits)) if each not in found.steps]
        best = min((_fastest(each, sure, correct, seconds, within) for each in more), key=lambda x: x.relative_time)
        if best.relative_time >= found.relative_time:
            break
        found = best
    return found if found.steps else None


def _segment(seconds: Sequence[float], first: int, last: int) -> float:
    """Seconds of several steps in one call."""
    return sum(seconds[first - 1 : last]) - (last - first) * seconds[-1]


def _fastest(
    steps: Sequence[int],
    sure: Float[np.ndarray, "time items"],
    correct: Bool[np.ndarray, "time items"],
    seconds: Sequence[float],
    within: float,
) -> Exits:
    """Some exits with the threshold that makes them fastest; 1, above which there is no confidence, is always exact."""
    ends = (*sorted(steps), len(sure))
    rows = np.array(ends) - 1
    starts = (1, *(each + 1 for each in ends[:-1]))
    taken = np.cumsum([_segment(seconds, *each) for each in zip(starts, ends, strict=True)])
    full = _segment(seconds, 1, len(sure))
    found = []
    for threshold in THRESHOLDS:
        exits = sure[rows] > threshold
        exits[-1] = True
        first = exits.argmax(axis=0)
        right = correct[rows[first], np.arange(len(first))]
        lost = correct[-1].astype(np.float64) - right
        most = lost.mean() + CONFIDENT * lost.std() / len(lost) ** 0.5
        if most <= within or threshold == THRESHOLDS[-1]:
            found.append(Exits(ends[:-1], threshold, float(right.mean()), float(taken[first].mean() / full)))
    return min(found, key=lambda each: each.relative_time)
