"""TD(lambda) one step at a time: eligibility traces, after the paper's appendix.

    e_t = lam e_{t-1} + dz_t/dw        dL/dw = - sum_t (p_{t+1} - p_t) e_t        p_{T+1} = onehot(y)

The gradient is that of `td_loss`, but no step waits for later ones and no sequence is stored: what a step owes to the
past is all in `e`, one number a parameter, item and class. So memory does not grow with the number of steps, provided
that the network's own does not: under a one-step delay what a step says depends on as many frames as there are blocks,
and autograd lets go of older ones by itself. With a kernel that never forgets, hand in `state.detach()` now and then;
gradients are then truncated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from jaxtyping import Float
from torch import Tensor, nn

from cascaded.errors import InputError
from cascaded.losses import Labels, distributions, precise
from cascaded.training.method import check_lam


class EligibilityTraces:
    """The gradient of the TD loss, gathered in `.grad` while a network runs.

    Batch times classes backward passes a step, and as many times the parameters' memory: for online learning with small
    batches. Where a whole trace fits, `td_loss` is far cheaper and its gradient the same. With lambda 0 nothing has to
    be remembered, and it costs one backward pass a step, taken when the next answer is there; weights must not change
    in between. With any other lambda they may, if the state is detached where they do.

    Example:
        ```python
        td = cascaded.EligibilityTraces(net.parameters(), lam=0.5)
        for frame in frames:
            logits, state = net.step(frame, state)
            td.step(logits)
        td.finish(labels)
        optimiser.step()
        ```

    Args:
        parameters: What the gradient is taken for; those that need none are left out.
        lam: Lambda, from 0 to 1.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], lam: float):
        check_lam(lam)
        self.lam = lam
        self.parameters = [p for p in parameters if p.requires_grad]
        if not self.parameters:
            raise InputError("none of the parameters needs a gradient: hand in net.parameters() of a network to train")
        self.logits: Tensor | None = None
        self.traces: list[Float[Tensor, "batch classes ..."]] | None = None

    def step(self, logits: Float[Tensor, "batch classes"]) -> None:
        """The network's next answer: what it corrects in the ones before is added to the gradient."""
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
            self._correct(_answer(logits))
        self.logits = logits
        self._remember()

    def finish(self, labels: Labels) -> None:
        """The truth: the last correction, after which a new sequence can start. The gradient is the batch's mean."""
        if self.logits is None:
            raise InputError("finish() before any step(): show the network something first")
        self._correct(distributions(self.logits.detach().unsqueeze(0), labels))
        self.logits = self.traces = None

    def _correct(self, next_answer: Float[Tensor, "batch classes"]) -> None:
        """Add `-(p_{t+1} - p_t) e_t`."""
        assert self.logits is not None
        error = (_answer(self.logits) - next_answer) / len(next_answer)
        if self.traces is None:
            gradients = self._gradients(error)
        else:
            gradients = [torch.einsum("bc,bc...->...", error.to(trace), trace) for trace in self.traces]
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient

    def _remember(self) -> None:
        """`e_t = lam e_{t-1} + dz_t/dw`; with lambda 0 the graph of one step says it all."""
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
        """The gradient of the newest logits, weighted; later steps still need their graph."""
        assert self.logits is not None
        found = torch.autograd.grad(
            self.logits, self.parameters, weights.to(self.logits), retain_graph=True, allow_unused=True
        )
        return [torch.zeros_like(p) if g is None else g for p, g in zip(self.parameters, found, strict=True)]


def _answer(logits: Float[Tensor, "batch classes"]) -> Float[Tensor, "batch classes"]:
    return precise(logits.detach()).softmax(dim=-1)
