"""Compute the TD gradient online, in memory that does not grow with the length of the stream.

The summed TD loss backpropagates through all steps, so its memory grows with their number. Eligibility traces compute
the same gradient one step at a time. Each measurement runs in its own process, because peak memory is per process.

    python examples/online_learning.py 20 40 80
"""

import resource
import sys
from collections.abc import Iterator
from multiprocessing import get_context

import torch
from torch import Tensor

import cascaded

LAM = 0.5


def stream(steps: int) -> Iterator[Tensor]:
    """Yield random frames one at a time."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        yield torch.randn(4, 3, 64, 64, generator=generator)


def measure(method: str, steps: int) -> tuple[float, float]:
    """Peak memory of a method in MiB, and the L1 norm of its gradient, which should not depend on the method."""
    net = cascaded.resnet((1, 1, 1), width=8, num_classes=3, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(4) % 3
    net(next(stream(1)))  # so that memory for torch itself is not counted
    before = peak()
    if method == "summed":
        cascaded.td_loss(net(torch.stack(list(stream(steps)))), labels, LAM).backward()
    else:
        td, state = cascaded.EligibilityTraces(net.parameters(), LAM), None
        for frame in stream(steps):
            logits, state = net.step(frame, state)
            td.step(logits)
        td.finish(labels)
    norm = sum(p.grad.abs().sum() for p in net.parameters() if p.grad is not None)
    return peak() - before, float(norm)


def peak() -> float:
    """Peak memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Measure both methods for every number of steps, each in its own process."""
    print(f"{'steps':>5} {'summed':>12} {'online':>12}   gradient norm (summed, online)")
    for steps in sys.argv[1:] or ["20", "40", "80"]:
        results = {}
        for method in ("summed", "online"):
            with get_context("fork").Pool(1) as process:
                results[method] = process.apply(measure, (method, int(steps)))
        (summed, summed_norm), (online, online_norm) = results["summed"], results["online"]
        print(f"{steps:>5} {summed:>8.0f} MiB {online:>8.0f} MiB   {summed_norm:.4f} {online_norm:.4f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
