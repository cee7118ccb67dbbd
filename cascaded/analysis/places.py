"""Metrics per step of networks that predict at several places of an item: pixels or characters.

IoU_c = |predicted c and labeled c| / |predicted c or labeled c|        bits = -log2 p(the character that follows)
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from cascaded.errors import InputError
from cascaded.losses import td_loss


def mean_iou(
    predictions: Int64[Tensor, "time *items"], labels: Int64[Tensor, "*items"], classes: int, ignore_index: int = -100
) -> Float[Tensor, "time"]:
    """Intersection over union of every class over all pixels, averaged over the classes, per step.

    A class that is neither predicted nor labeled anywhere is left out of the average.

    Args:
        predictions: Classes that are predicted at every step, such as `logits.argmax(dim=2)`.
        labels: The class of every pixel.
        classes: How many classes there are.
        ignore_index: Pixels with this label are not counted.
    """
    if predictions.shape[1:] != labels.shape:
        raise InputError(
            f"predictions have shape {tuple(predictions.shape)}, labels {tuple(labels.shape)}: give predictions (time, "
            "...) and labels of the shape behind the time"
        )
    used = labels != ignore_index
    pairs = [(step[used] * classes + labels[used]).bincount(minlength=classes**2) for step in predictions]
    counts = torch.stack(pairs).unflatten(1, (classes, classes)).double()  # (time, predicted, labeled)
    both = counts.diagonal(dim1=1, dim2=2)
    either = counts.sum(dim=1) + counts.sum(dim=2) - both
    return (both / either).nanmean(dim=1)  # 0 / 0 where a class does not occur


def bits_per_character(
    trace: Float[Tensor, "time batch tokens classes"], labels: Int64[Tensor, "batch tokens"], ignore_index: int = -100
) -> Float[Tensor, "time"]:
    """Cross-entropy of the following character in bits, averaged over all characters, per step.

    Args:
        trace: Logits at every step.
        labels: The character that follows each position.
        ignore_index: Positions with this label are not counted.
    """
    nats = td_loss(trace, labels, lam=1.0, reduction="none", ignore_index=ignore_index)  # lambda 1: the label's
    return nats.flatten(1).sum(dim=1) / (labels != ignore_index).sum() / math.log(2)
