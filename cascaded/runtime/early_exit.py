"""Early exit: each item leaves its batch as soon as its confidence is above a threshold."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from cascaded.cascade.inputs import Schedule, check_steps
from cascaded.cascade.kernels import Kernel
from cascaded.errors import InputError
from cascaded.models.networks import Network
from cascaded.runtime.result import EarlyExitResult

if TYPE_CHECKING:  # importing the hub or torch.export takes a second, and a `Cascade` does not need it
    from cascaded.cascade.convert.network import ConvertedModel
    from cascaded.hub.pretrained import Pretrained


@torch.no_grad()
def early_exit(
    net: Network | ConvertedModel | Pretrained,
    images: Shaped[Tensor, "batch ..."],
    threshold: float,
    *,
    normalized: bool = False,
    steps: int | None = None,
    kernel: Kernel | None = None,
    schedule: Schedule | None = None,
) -> EarlyExitResult[Tensor]:
    """Predict each item at the first step at which its confidence is above a threshold, or at the last step.

    Items with a prediction are removed from the batch: later steps compute the remaining ones only.

    Args:
        net: A network in evaluation mode, such as one from `cascaded.load` or a classifier from `cascaded.convert`.
        images: Normalized floats for a `Cascade`; bytes, or floats from 0 to 1, for a `Pretrained`; the input tensor of
            a converted model.
        threshold: Confidence (highest class probability) above which an item exits.
        normalized: For a `Pretrained`: the images are normalized already, as in `net(...)`.
        steps: Last step, at which all remaining items exit; by default the step at which the output is final.
        kernel: Delay kernel, as in `net(...)`.
        schedule: As in `net(...)`; the default of a `Pretrained` is the schedule that it was trained with.
    """
    check_steps(steps)
    net, images, schedule = _unpacked(net, images, normalized, schedule)
    if not hasattr(net, "steps_to_settle"):
        way = "give a network, as of cascaded.load, cascaded.convert or cascaded.resnet18"
        raise InputError(f"net is a {type(net).__name__}, which has no steps: {way}")
    if net.training:
        raise InputError("the network is in training mode, which changes its batch statistics: call net.eval() first")
    if not 0 <= threshold <= 1:
        raise InputError(f"threshold is {threshold}: give a confidence from 0 to 1")
    last = steps or (net.serial_steps if schedule == "serial" else net.steps_to_settle(kernel or net.kernel))
    zeros = torch.zeros(len(images), dtype=torch.int64)
    result = EarlyExitResult(zeros, zeros.clone(), zeros.double())
    remaining = torch.arange(len(images))
    state: Any = None  # of the network's own kind
    start = time.perf_counter()
    for step in range(1, last + 1):
        frame = images if step == 1 else None
        logits, state = cast("Any", net).step(frame, state, kernel=kernel, schedule=schedule)
        confidence, predictions = logits.softmax(dim=-1).max(dim=-1)
        exits = (confidence > threshold).cpu() if step < last else torch.ones(len(remaining), dtype=torch.bool)
        done = remaining[exits]
        result.predictions[done], result.steps[done] = predictions.cpu()[exits], step
        result.seconds[done] = time.perf_counter() - start
        if exits.all():
            break
        if exits.any():
            remaining, state = remaining[~exits], state.select(~exits.to(logits.device))
    result.total = time.perf_counter() - start
    return result


def _unpacked(
    net: Network | ConvertedModel | Pretrained, images: Tensor, normalized: bool, schedule: Schedule | None
) -> tuple[Network, Tensor, Schedule | None]:
    """The network itself, normalized images, and the schedule."""
    if not hasattr(net, "prepare"):  # networks may be compiled: their class is another one then
        return cast("Network", net), images, schedule
    trained = cast("Pretrained", net)
    return trained.net, trained.prepare(images, normalized), schedule or trained.schedule


@torch.no_grad()
def full_pass(net: Network, images: Float[Tensor, "batch channels height width"]) -> EarlyExitResult[Tensor]:
    """Predict a batch by one ordinary pass through the network, without time steps."""
    start = time.perf_counter()
    predictions = net.final_logits(images).argmax(dim=-1).cpu()
    total = time.perf_counter() - start
    last, each = net.serial_steps, torch.full((len(images),), total, dtype=torch.float64)
    return EarlyExitResult(predictions, torch.full_like(predictions, last), each, total)
