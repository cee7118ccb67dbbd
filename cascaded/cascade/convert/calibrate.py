"""Batch statistics of early steps, computed from data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from cascaded.cascade.convert.network import ConvertedModel
from cascaded.errors import InputError


@torch.no_grad()
def calibrate(net: ConvertedModel, batches: Iterable[Any]) -> int:
    """Compute the statistics of a converted model's batch norms at the steps before the final one.

    A pretrained model has statistics for final values only; early steps use copies of them at first. Here every early
    step is normalized with the statistics of each batch, and their averages are kept. The model's own statistics, its
    weights and its final output do not change.

    Args:
        net: A converted model. It is run in evaluation mode, so that dropout is off.
        batches: Inputs in the form of the example. If that was one tensor, pairs such as (images, labels) are accepted
            as well: the first of each is used.

    Returns:
        The number of batches.
    """
    training = net.training
    net.eval()
    try:
        for batch in batches:
            single = len(net.form.args) == 1 and isinstance(batch, list | tuple)
            net.statistics.averaged += 1
            net(batch[0] if single else batch)
        count = net.statistics.averaged
    finally:
        net.statistics.averaged = 0
        net.train(training)
    if count == 0:
        raise InputError("there are no batches to compute statistics from: give at least one")
    return count
