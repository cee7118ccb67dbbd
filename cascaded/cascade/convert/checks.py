"""Checks of a conversion: the final step equals the model's output, and folding time into the batch changes nothing.

Both are tried, not assumed. A mixture of experts, for example, routes all items of a batch together: on frames folded
into one batch it computes something else than on each frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from cascaded.cascade.convert.run import Run
from cascaded.cascade.convert.segments import Segment
from cascaded.errors import InputError


@contextmanager
def unchanged(net: nn.Module) -> Iterator[None]:
    """Compute without gradients, without moving buffers and without advancing the random generators."""
    saved = [(buffer, buffer.clone()) for buffer in net.buffers()]
    with torch.no_grad(), torch.random.fork_rng(list(range(torch.cuda.device_count()))):
        try:
            yield
        finally:  # also if the model is refused
            for buffer, value in saved:
                buffer.copy_(value)


def close(result: Tensor, expected: Tensor) -> bool:
    """Whether two tensors are equal up to rounding."""
    return result.shape == expected.shape and difference(result, expected) < tolerance(expected)


def difference(result: Tensor, expected: Tensor) -> float:
    """The largest difference, relative to the largest value."""
    result, expected = (x.to(torch.float64) for x in (result, expected))
    same = (result == expected) | (result.isnan() & expected.isnan())
    if same.all():
        return 0.0
    return float(((result - expected).abs() / expected[expected.isfinite()].abs().max().clamp(min=1e-12))[~same].max())


def tolerance(like: Tensor) -> float:
    """How much rounding may change a result."""
    return {torch.float64: 1e-9, torch.float32: 1e-3}.get(like.dtype, 3e-2) if like.is_floating_point() else 0.5


def run_checked(run: Run) -> dict[int, str]:
    """Run all segments frame by frame; for those that cannot be folded, why not."""
    reasons = {}
    for position, segment in enumerate(run.plan.moving):
        if segment.key.behind_stem and run.rest is None:
            run.rest = run.at_rest()
        frames = run.frames(segment)
        reason = "the batch size is fixed by the model" if not run.plan.captured.any_batch else None
        if frames > 1 and reason is None:
            reason = _reason_not_to_fold(run, segment, frames)
        if reason is not None:
            reasons[position] = f"{segment.place}: {reason}"
        run.run_segment(segment, frames, fold=False)
    return reasons


def _reason_not_to_fold(run: Run, segment: Segment, frames: int) -> str | None:
    taken = run.taken(segment, frames)
    expected = run.loop(segment, taken, frames)
    try:
        results = run.fold(segment, taken, frames)
    except (RuntimeError, IndexError) as error:
        return f"it fails on several steps at once ({str(error).splitlines()[0]})"
    for result, wanted in zip(results, expected, strict=True):
        if result.batch != wanted.batch or not close(result.frames, wanted.frames):
            return "it mixes the items of a batch"
    return None


def check_final(model: nn.Module, final: Tensor, expected: Tensor) -> None:
    """Refuse a conversion whose final step is not the model's output."""
    if not close(final, expected):
        detail = (
            "has another shape" if final.shape != expected.shape else f"differs by {difference(final, expected):.1e}"
        )
        raise InputError(
            f"the final step {detail} from the output of {type(model).__name__}: a layer keeps state, or draws random "
            "numbers; convert the model in evaluation mode, or exclude its skip connection with exclude="
        )
