"""A network that is being taught: its loss, its statistics, and how often it is right at every step."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import contextmanager

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from cascaded.cascade.inputs import Schedule
from cascaded.cascade.network import Cascade
from cascaded.cascade.norm import TimeBatchNorm
from cascaded.training.config import Precision
from cascaded.training.method import CE, Method


class Learner(nn.Module):
    """A network and its loss as one module: what several processes average gradients of.

    Cross-entropy at the last step asks for the settled answer alone, so that it costs one serial pass a step, whatever
    the schedule the network is meant for.
    """

    def __init__(self, net: Cascade, method: Method, precision: Precision = "float32"):
        super().__init__()
        self.net, self.method, self.precision = net, method, precision

    def forward(
        self, images: Float[Tensor, "batch channels height width"], labels: Int[Tensor, "batch"], progress: float = 0.0
    ) -> Float[Tensor, ""]:
        """The loss of a batch when a share of the training is done."""
        with torch.autocast(images.device.type, torch.bfloat16, enabled=self.precision == "bfloat16"):
            if isinstance(self.method.loss, CE):
                trace = self.net.answer(images).unsqueeze(0)
            else:
                trace = self.net(images, schedule=self.method.schedule)
        return self.method.loss(trace, labels, progress)


@torch.no_grad()
def fill_statistics(net: Cascade, batches: Iterable[Float[Tensor, "batch channels height width"]]) -> None:
    """Give every step the batch statistics that training at the last step alone has not seen: one pass, averaged."""
    norms = [module for module in net.modules() if isinstance(module, TimeBatchNorm)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_statistics()
        norm.momentum = None
    try:
        with _mode(net, training=True):
            for images in batches:
                net(images)
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum


@torch.no_grad()
def accuracy(net: Cascade, batches: Iterable[tuple[Tensor, Tensor]], schedule: Schedule) -> list[float]:
    """The share of images that a network is right about, at every step."""
    right, items = torch.zeros(()), 0
    with _mode(net, training=False):
        for images, labels in batches:
            said = net(images, schedule=schedule).argmax(dim=-1)
            right = right + (said == labels).sum(dim=1).cpu()
            items += len(labels)
    return (right.double() / items).tolist()


@contextmanager
def _mode(net: nn.Module, training: bool):
    before = net.training
    net.train(training)
    try:
        yield
    finally:
        net.train(before)
