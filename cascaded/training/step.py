"""One training step: the loss of a batch, norm statistics, and accuracy per step."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from cascaded.cascade.convert.calibrate import calibrate
from cascaded.cascade.inputs import Schedule
from cascaded.cascade.norm import TimeBatchNorm
from cascaded.losses import ce_loss, td_loss
from cascaded.models.classifier import Classifier
from cascaded.models.networks import Network
from cascaded.training.config import Precision
from cascaded.training.method import CE, Method

NORMS = (TimeBatchNorm, nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)


class LossModule(nn.Module):
    """A network and its loss as one module, so that several processes can average its gradients.

    Cross-entropy needs the final output only, so a step costs one serial pass, whatever the schedule of the network.
    """

    def __init__(self, net: Network, method: Method, precision: Precision = "float32"):
        super().__init__()
        self.net, self.method, self.precision = net, method, precision

    def forward(
        self, images: Float[Tensor, "batch channels height width"], labels: Int[Tensor, "batch"], progress: float = 0.0
    ) -> Float[Tensor, ""]:
        """The loss of a batch, at a fraction of the training."""
        loss = self.method.loss
        with torch.autocast(images.device.type, torch.bfloat16, enabled=self.precision == "bfloat16"):
            if isinstance(loss, CE):
                trace = self.net.final_logits(images).unsqueeze(0)
            else:
                trace = self.net(images, schedule=self.method.schedule)
        return ce_loss(trace, labels) if isinstance(loss, CE) else td_loss(trace, labels, loss.at(progress))


def parameter_groups(net: Network, decay_norms: bool) -> list[dict[str, Any]]:
    """The parameters of a network for an optimizer; without `decay_norms` those of norms and biases do not decay."""
    decayed, spared = [], []
    for module in net.modules():
        for name, parameter in module.named_parameters(recurse=False):
            spare = not decay_norms and (isinstance(module, NORMS) or name == "bias")
            (spared if spare else decayed).append(parameter)
    return [{"params": decayed}, {"params": spared, "weight_decay": 0.0}]


@torch.no_grad()
def fill_statistics(net: Network, batches: Iterable[Float[Tensor, "batch channels height width"]]) -> None:
    """Compute the norm statistics of all steps after training on the last step: one pass, averaged over batches."""
    if isinstance(net, Classifier):
        calibrate(net, batches)
        return
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
def accuracy(net: Network, batches: Iterable[tuple[Tensor, Tensor]], schedule: Schedule) -> list[float]:
    """Accuracy at every step."""
    correct, items = torch.zeros(()), 0
    with _mode(net, training=False):
        for images, labels in batches:
            predictions = net(images, schedule=schedule).argmax(dim=-1)
            correct = correct + (predictions == labels).sum(dim=1).cpu()
            items += len(labels)
    return (correct.double() / items).tolist()


@contextmanager
def _mode(net: nn.Module, training: bool):
    before = net.training
    net.train(training)
    try:
        yield
    finally:
        net.train(before)
