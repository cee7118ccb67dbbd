"""The temporal-difference loss: every step learns from what later steps say.

    G_T = onehot(y)        G_t = (1 - lam) p_{t+1} + lam G_{t+1}        loss = sum_t H(G_t, p_t)

Unrolled, `G_t = (1 - lam) sum_{i=1..T-t} lam^(i-1) p_{t+i} + lam^(T-t) onehot(y)`. With lambda 1 every step learns the
true label; with lambda 0 it learns to say what the next step will, and only the last one is told the truth.

All of it works on any `(time, batch, classes)` tensor of logits, whatever network it came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor
from torch.nn import functional as F

from cascaded.errors import InputError
from cascaded.training.method import check_lam

Reduction = Literal["mean", "sum", "none"]
Labels = Int[Tensor, "batch"] | Float[Tensor, "batch classes"]


def td_targets(
    trace: Float[Tensor, "time batch classes"], labels: Labels, lam: float, ignore_index: int = -100
) -> Tensor:
    """What each step should have said: later answers mixed with the truth, backwards in one pass, without gradient.

    Args:
        trace: Logits at every step.
        labels: True classes, or a distribution over the classes for every item.
        lam: Lambda, from 0 (the next step's answer) to 1 (the truth).
        ignore_index: Items with this label have no target: zeros at every step.

    Returns:
        A distribution for every step and item, of the trace's shape.
    """
    check_lam(lam)
    used = UsedItems.of(trace, labels, ignore_index)
    return used.scatter(_targets(used, lam))


def td_loss(
    trace: Float[Tensor, "time batch classes"],
    labels: Labels,
    lam: float,
    reduction: Reduction = "mean",
    ignore_index: int = -100,
) -> Tensor:
    """Cross-entropy between what each step said and what it should have said, summed over steps.

    A sum over steps and not a mean: under lambda 0 one step alone is told the truth, and would hear it T times softer.

    Args:
        trace: Logits at every step.
        labels: True classes, or a distribution over the classes for every item.
        lam: Lambda, from 0 to 1.
        reduction: `mean` or `sum` over the batch, or `none` for a loss a step and item, `(time, batch)`.
        ignore_index: Items with this label are ignored at every step, as in `torch.nn.functional.cross_entropy`: they
            add nothing to the loss, to the gradient or to the number of items that `mean` divides by. If all items are
            ignored, the loss and its gradient are 0.
    """
    check_lam(lam)
    used = UsedItems.of(trace, labels, ignore_index)
    losses = -(_targets(used, lam) * used.trace.log_softmax(dim=-1)).sum(dim=-1)
    return _reduce(used, losses, reduction)


def ce_loss(
    trace: Float[Tensor, "time batch classes"], labels: Labels, reduction: Reduction = "mean", ignore_index: int = -100
) -> Tensor:
    """Cross-entropy of the last step alone; earlier ones say what they like. Options as for `td_loss`."""
    used = UsedItems.of(trace, labels, ignore_index)
    last = F.cross_entropy(used.trace[-1], used.truth, reduction="none")
    return _reduce(used, last.unsqueeze(0), reduction)


def _targets(used: UsedItems, lam: float) -> Float[Tensor, "time used classes"]:
    targets = used.trace.detach().softmax(dim=-1).roll(-1, dims=0)  # step t is to learn from step t+1
    targets[-1] = used.truth
    for t in range(len(targets) - 2, -1, -1):
        targets[t].lerp_(targets[t + 1], lam)
    return targets


def _reduce(used: UsedItems, losses: Float[Tensor, "time used"], reduction: Reduction) -> Tensor:
    if reduction == "none":
        return used.scatter(losses)
    if reduction not in ("mean", "sum"):
        raise InputError(f"reduction is {reduction!r}: say 'mean', 'sum' or 'none'")
    return losses.sum() / max(losses.shape[1], 1) if reduction == "mean" else losses.sum()


@dataclass(frozen=True)
class UsedItems:
    """The items of a batch that are not ignored.

    The others are left out before anything is computed: whatever their logits are, also NaN, their gradient is 0.

    Attributes:
        trace: Their logits, in at least single precision.
        truth: Their true distributions.
        mask: Which items of the batch they are; None for all.
    """

    trace: Float[Tensor, "time used classes"]
    truth: Float[Tensor, "used classes"]
    mask: Bool[Tensor, "batch"] | None

    @classmethod
    def of(cls, trace: Tensor, labels: Tensor, ignore_index: int) -> UsedItems:
        """Check trace and labels, and leave out the items whose label is `ignore_index`."""
        check_shapes(trace, labels)
        trace, mask = precise(trace), None
        if not labels.is_floating_point() and not labels.is_meta and (labels == ignore_index).any():
            mask = (labels != ignore_index).to(trace.device)
            trace, labels = trace[:, mask], labels[labels != ignore_index]
        return cls(trace, distributions(trace, labels), mask)

    def scatter(self, values: Shaped[Tensor, "time used *classes"]) -> Shaped[Tensor, "time batch *classes"]:
        """Values of these items in their places in the whole batch, with 0 for the ignored ones."""
        if self.mask is None:
            return values
        batch = values.new_zeros(len(values), len(self.mask), *values.shape[2:])
        batch[:, self.mask] = values
        return batch


def check_shapes(trace: Tensor, labels: Tensor) -> None:
    """Logits `(time, batch, classes)`, and a label or a distribution for every item."""
    if isinstance(trace, list | tuple):
        raise InputError(
            f"trace is a {type(trace).__name__} of {len(trace)}, a loss takes one tensor of logits (time, batch, "
            "classes): stack them, torch.stack(logits)"
        )
    for name, value in (("trace", trace), ("labels", labels)):
        if not isinstance(value, Tensor):
            raise InputError(f"{name} is a {type(value).__name__}, a loss takes tensors: convert with torch.as_tensor")
    if trace.dim() != 3 or not trace.is_floating_point():
        raise InputError(
            f"trace has shape {tuple(trace.shape)} and type {trace.dtype}, a loss takes logits (time, batch, classes): "
            "stack the steps along a first axis"
        )
    batch = trace.shape[1]
    if labels.dim() == 0 or len(labels) != batch:
        raise InputError(
            f"labels have shape {tuple(labels.shape)}, the trace has {batch} items: give one label an item"
        )
    if not labels.is_floating_point() and labels.dim() != 1:
        raise InputError(f"labels have shape {tuple(labels.shape)}: give whole numbers (batch,), or probabilities")


def distributions(trace: Float[Tensor, "time batch classes"], labels: Labels) -> Float[Tensor, "batch classes"]:
    """The truth as a distribution over the classes for every item, checked against the trace it belongs to."""
    check_shapes(trace, labels)
    _, batch, classes = trace.shape
    if labels.is_floating_point():
        return _soft(labels.detach(), classes).to(trace)
    if labels.is_meta:  # shapes without values, for counting operations
        return trace.new_zeros(batch, classes)
    if batch and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        raise InputError(
            f"labels go from {int(labels.min())} to {int(labels.max())}, the trace has {classes} classes: labels must "
            f"lie in 0..{classes - 1}"
        )
    return F.one_hot(labels.long(), classes).to(trace)


def _soft(labels: Tensor, classes: int) -> Tensor:
    if labels.dim() != 2 or labels.shape[1] != classes:
        raise InputError(
            f"soft labels have shape {tuple(labels.shape)}, the trace has {classes} classes: give a probability a class"
        )
    sums = labels.sum(dim=1)
    if not (labels >= 0).all() or not torch.allclose(sums, torch.ones_like(sums), atol=1e-3):
        raise InputError("soft labels are not distributions: give probabilities that are not negative and sum to 1")
    return labels


def precise(trace: Tensor) -> Tensor:
    """Logits in at least single precision: half of it is not enough to sum probabilities in."""
    return trace.float() if trace.dtype in (torch.float16, torch.bfloat16) else trace
