"""The temporal-difference loss: every step learns from the predictions of later steps.

    G_T = onehot(y)        G_t = (1 - lam) p_{t+1} + lam G_{t+1}        loss = sum_t H(G_t, p_t)

Unrolled, `G_t = (1 - lam) sum_{i=1..T-t} lam^(i-1) p_{t+i} + lam^(T-t) onehot(y)`. With lambda 1 the target of every
step is the label; with lambda 0 it is the prediction of the next step, and only the last step is trained on the label.

The losses work on any `(time, batch, classes)` tensor of logits, whatever network it came from, and on logits of
tokens, `(time, batch, tokens, classes)`, or pixels, `(time, batch, classes, height, width)` with `class_dim=2`.
`EligibilityTraces` compute the same gradient online, one step at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn
from torch.nn import functional as F

from cascaded.errors import InputError, between

Reduction = Literal["mean", "sum", "none"]
Logits = Float[Tensor, "time batch *places_and_classes"]
Labels = Int[Tensor, "batch *places"] | Float[Tensor, "batch *places_and_classes"]


def td_targets(trace: Logits, labels: Labels, lam: float, ignore_index: int = -100, class_dim: int = -1) -> Tensor:
    """The targets of all steps, computed backwards in one pass and without gradient.

    Args:
        trace: Logits at every step.
        labels: Class indices, or a distribution over the classes per item.
        lam: Lambda, from 0 (the next step's prediction) to 1 (the label).
        ignore_index: Items with this label have no target: zeros at every step.
        class_dim: As for `td_loss`.

    Returns:
        A distribution per step and item, of the trace's shape.
    """
    between(0, 1, lam=lam)
    used = UsedItems.of(trace, labels, ignore_index, class_dim)
    return used.scatter(_targets(used, lam)).movedim(-1, class_dim)


def td_loss(
    trace: Logits,
    labels: Labels,
    lam: float,
    reduction: Reduction = "mean",
    ignore_index: int = -100,
    class_dim: int = -1,
) -> Tensor:
    """Cross-entropy between targets and predictions, summed over steps.

    It is a sum over steps and not a mean: with lambda 0 only one step is trained on the label, and a mean would divide
    its gradient by T.

    An item is what has one label: an image, a token or a pixel.

    Args:
        trace: Logits at every step: `(time, batch, classes)`, or with more axes before or behind the classes.
        labels: Class indices of the trace's shape without time and classes, or distributions over the classes of the
            trace's shape without time.
        lam: Lambda, from 0 to 1.
        reduction: `mean` or `sum` over all items, or `none` for one loss per step and item: the trace's shape without
            classes.
        ignore_index: Items with this label are ignored at every step, as in `torch.nn.functional.cross_entropy`: they
            add nothing to the loss, to the gradient or to the number of items that `mean` divides by. If all items are
            ignored, the loss and its gradient are 0.
        class_dim: The axis of the trace that has the classes: -1 for `(time, batch, classes)` and `(time, batch,
            tokens, classes)`, 2 for `(time, batch, classes, height, width)`.
    """
    between(0, 1, lam=lam)
    used = UsedItems.of(trace, labels, ignore_index, class_dim)
    losses = -(_targets(used, lam) * used.trace.log_softmax(dim=-1)).sum(dim=-1)
    return _reduce(used, losses, reduction)


def ce_loss(
    trace: Logits, labels: Labels, reduction: Reduction = "mean", ignore_index: int = -100, class_dim: int = -1
) -> Tensor:
    """Cross-entropy of the last step only. Options as for `td_loss`."""
    used = UsedItems.of(trace, labels, ignore_index, class_dim)
    last = F.cross_entropy(used.trace[-1], used.truth, reduction="none")
    return _reduce(used, last.unsqueeze(0), reduction)


def _targets(used: UsedItems, lam: float) -> Float[Tensor, "time used classes"]:
    targets = used.trace.detach().softmax(dim=-1).roll(-1, dims=0)  # p_{t+1} in the place of step t
    targets[-1] = used.truth
    for t in range(len(targets) - 2, -1, -1):
        targets[t].lerp_(targets[t + 1], lam)
    return targets


def _reduce(used: UsedItems, losses: Float[Tensor, "time used"], reduction: Reduction) -> Tensor:
    if reduction == "none":
        return used.scatter(losses)
    if reduction not in ("mean", "sum"):
        raise InputError(f"reduction is {reduction!r}: give 'mean', 'sum' or 'none'")
    return losses.sum() / max(losses.shape[1], 1) if reduction == "mean" else losses.sum()


class EligibilityTraces:
    """The gradient of `td_loss`, computed online and accumulated in `.grad` while a network runs (paper, appendix).

        e_t = lam e_{t-1} + dz_t/dw        dL/dw = - sum_t (p_{t+1} - p_t) e_t        p_{T+1} = onehot(y)

    No sequence is stored, only one value per parameter, item and class, so memory does not grow with the number of
    steps if the network's own does not: under a one-step delay an output depends on as many frames as there are blocks,
    and autograd releases older ones. With a kernel of infinite memory, detach the state now and then; gradients are
    then truncated.

    A step takes one backward pass per item and class: use it for online learning with small batches, and `td_loss`,
    which is far cheaper, if the whole trace fits in memory. With lambda 0 a step takes one backward pass in all, when
    the next prediction is there; weights must not change in between. With other lambdas they may, if the state is
    detached then.

    Example:
        ```python
        td = cascaded.EligibilityTraces(net.parameters(), lam=0.5)
        for frame in frames:
            logits, state = net.step(frame, state)
            td.step(logits)
        td.finish(labels)
        optimizer.step()
        ```

    Args:
        parameters: Parameters to compute the gradient of; those that need none are left out.
        lam: Lambda, from 0 to 1.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], lam: float):
        between(0, 1, lam=lam)
        self.lam = lam
        self.parameters = [p for p in parameters if p.requires_grad]
        if not self.parameters:
            raise InputError("none of the parameters needs a gradient: give net.parameters() of a network to train")
        self.logits: Tensor | None = None
        self.traces: list[Float[Tensor, "batch classes ..."]] | None = None

    def step(self, logits: Float[Tensor, "batch classes"]) -> None:
        """Add the gradient that the next output determines."""
        if logits.dim() != 2 or not logits.requires_grad:
            raise InputError(
                f"logits have shape {tuple(logits.shape)} and requires_grad={logits.requires_grad}: give (batch, "
                "classes) straight from a network that runs with gradients on"
            )
        if self.logits is not None:
            if logits.shape != self.logits.shape:
                raise InputError(
                    f"logits have shape {tuple(logits.shape)}, at the step before {tuple(self.logits.shape)}: keep the "
                    "same items until finish(labels)"
                )
            self._add_gradient(_probabilities(logits))
        self.logits = logits
        self._update_traces()

    def finish(self, labels: Labels) -> None:
        """Add the gradient of the last step, and start a new sequence. The gradient is the mean over the batch."""
        if self.logits is None:
            raise InputError("finish() before any step(): run the network first")
        self._add_gradient(distributions(self.logits.detach().unsqueeze(0), labels))
        self.logits = self.traces = None

    def _add_gradient(self, target: Float[Tensor, "batch classes"]) -> None:
        """Add `-(p_{t+1} - p_t) e_t`."""
        assert self.logits is not None
        error = (_probabilities(self.logits) - target) / len(target)
        if self.traces is None:
            gradients = self._gradients(error)
        else:
            gradients = [torch.einsum("bc,bc...->...", error.to(trace), trace) for trace in self.traces]
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient

    def _update_traces(self) -> None:
        """`e_t = lam e_{t-1} + dz_t/dw`; with lambda 0 the graph of one step is enough."""
        if self.lam == 0:
            return
        assert self.logits is not None
        jacobian = zip(*(self._gradients(unit) for unit in self._units()), strict=True)
        now = [torch.stack(rows).unflatten(0, self.logits.shape) for rows in jacobian]
        before = self.traces or [torch.zeros_like(each) for each in now]
        self.traces = [each.add_(old, alpha=self.lam) for each, old in zip(now, before, strict=True)]

    def _units(self) -> Iterator[Float[Tensor, "batch classes"]]:
        assert self.logits is not None
        for place in range(self.logits.numel()):
            unit = torch.zeros_like(self.logits)
            unit.view(-1)[place] = 1
            yield unit

    def _gradients(self, weights: Float[Tensor, "batch classes"]) -> list[Tensor]:
        """The weighted gradient of the newest logits; later steps still need their graph."""
        assert self.logits is not None
        found = torch.autograd.grad(
            self.logits, self.parameters, weights.to(self.logits), retain_graph=True, allow_unused=True
        )
        return [torch.zeros_like(p) if g is None else g for p, g in zip(self.parameters, found, strict=True)]


def _probabilities(logits: Float[Tensor, "batch classes"]) -> Float[Tensor, "batch classes"]:
    return precise(logits.detach()).softmax(dim=-1)


@dataclass(frozen=True)
class UsedItems:
    """The items of a batch (images, tokens or pixels, on one axis) that are not ignored.

    The others are removed before anything is computed: whatever their logits are, even NaN, their gradient is 0.

    Attributes:
        trace: Logits, in at least single precision.
        truth: Distributions from the labels.
        mask: Which items are used; None for all.
        places: The shape of the items, `(batch,)`, `(batch, tokens)` or `(batch, height, width)`.
    """

    trace: Float[Tensor, "time used classes"]
    truth: Float[Tensor, "used classes"]
    mask: Bool[Tensor, "items"] | None
    places: tuple[int, ...]

    @classmethod
    def of(cls, trace: Tensor, labels: Tensor, ignore_index: int, class_dim: int = -1) -> UsedItems:
        """Check trace and labels, put all items on one axis, and remove those whose label is `ignore_index`."""
        check_shapes(trace, labels, class_dim)
        trace = precise(trace).movedim(class_dim, -1)
        places, trace, mask = tuple(trace.shape[1:-1]), trace.flatten(1, -2), None
        axis = class_dim - 1 if class_dim > 0 else class_dim  # labels have no time
        labels = labels.movedim(axis, -1).flatten(0, -2) if labels.is_floating_point() else labels.flatten()
        if not labels.is_floating_point() and not labels.is_meta and (labels == ignore_index).any():
            mask = (labels != ignore_index).to(trace.device)
            trace, labels = trace[:, mask], labels[labels != ignore_index]
        return cls(trace, distributions(trace, labels), mask, places)

    def scatter(self, values: Shaped[Tensor, "time used *classes"]) -> Shaped[Tensor, "time *places_and_classes"]:
        """Values in the places of the whole batch, with 0 for the ignored items."""
        if self.mask is not None:
            items = values.new_zeros(len(values), len(self.mask), *values.shape[2:])
            items[:, self.mask] = values
            values = items
        return values.unflatten(1, self.places)


def check_shapes(trace: Tensor, labels: Tensor, class_dim: int = -1) -> None:
    """Check that there are logits `(time, batch, classes)`, and a label or a distribution per item."""
    if isinstance(trace, list | tuple):
        raise InputError(
            f"trace is a {type(trace).__name__} of {len(trace)}, a loss takes one tensor of logits (time, batch, "
            "classes): stack them, torch.stack(logits)"
        )
    for name, value in (("trace", trace), ("labels", labels)):
        if not isinstance(value, Tensor):
            raise InputError(f"{name} is a {type(value).__name__}, a loss takes tensors: convert with torch.as_tensor")
    if trace.dim() < 3 or not trace.is_floating_point():
        raise InputError(
            f"trace has shape {tuple(trace.shape)} and type {trace.dtype}, a loss takes logits (time, batch, classes): "
            "stack the steps along a first axis"
        )
    axis = class_dim if class_dim >= 0 else class_dim + trace.dim()
    if not 2 <= axis < trace.dim():
        raise InputError(
            f"class_dim is {class_dim}, the trace has shape {tuple(trace.shape)}: give an axis behind time and batch"
        )
    _check_labels(trace, labels, axis)


def _check_labels(trace: Tensor, labels: Tensor, axis: int) -> None:
    """Labels have the trace's shape without time and, unless they are distributions, classes."""
    shape, batch = tuple(labels.shape), trace.shape[1]
    if not shape or shape[0] != batch:
        raise InputError(f"labels have shape {shape}, the trace has {batch} items: give one label per item")
    places = (*trace.shape[1:axis], *trace.shape[axis + 1 :])
    if labels.is_floating_point() and shape != trace.shape[1:]:
        raise InputError(
            f"soft labels have shape {shape}, the trace has {trace.shape[axis]} classes and shape "
            f"{tuple(trace.shape)}: give one value per class, {tuple(trace.shape[1:])}"
        )
    if not labels.is_floating_point() and shape != places:
        raise InputError(
            f"labels have shape {shape}, the trace has shape {tuple(trace.shape)} and its classes on axis {axis}: give "
            f"whole numbers {places}, probabilities, or another class_dim"
        )


def distributions(trace: Float[Tensor, "time items classes"], labels: Tensor) -> Float[Tensor, "items classes"]:
    """Labels as one distribution over the classes per item, checked against the trace."""
    check_shapes(trace, labels)
    _, items, classes = trace.shape
    if labels.is_floating_point():
        return _soft(labels.detach()).to(trace)
    if labels.is_meta:  # shapes without values, for counting operations
        return trace.new_zeros(items, classes)
    if items and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        raise InputError(
            f"labels go from {int(labels.min())} to {int(labels.max())}, the trace has {classes} classes: labels must "
            f"lie in 0..{classes - 1}"
        )
    return F.one_hot(labels.long(), classes).to(trace)


def _soft(labels: Float[Tensor, "items classes"]) -> Float[Tensor, "items classes"]:
    sums = labels.sum(dim=1)
    if not (labels >= 0).all() or not torch.allclose(sums, torch.ones_like(sums), atol=1e-3):
        raise InputError("soft labels are not distributions: give probabilities that are not negative and sum to 1")
    return labels


def precise(trace: Tensor) -> Tensor:
    """Logits in at least single precision: half precision is not enough to sum probabilities."""
    return trace.float() if trace.dtype in (torch.float16, torch.bfloat16) else trace
