"""Learn from a stream of frames without storing it: memory stays flat however long the stream is.

The summed TD loss needs the whole trace, and memory grows with its length. Eligibility traces give the same gradient
one step at a time. Each setting runs in a process of its own, so that peaks can be told apart.

    python examples/online_learning.py 20 40 80
"""

import resource
import subprocess
import sys
from collections.abc import Iterator

import torch
from torch import Tensor

import cascaded

LAM = 0.5


def stream(steps: int) -> Iterator[Tensor]:
    """Frames that arrive one by one."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        yield torch.randn(4, 3, 64, 64, generator=generator)


def learn(way: str, steps: int) -> tuple[float, float]:
    """How many MiB of memory a way of learning takes, and a number that shows that the gradient is the same."""
    net = cascaded.resnet((1, 1, 1), width=8, num_classes=3, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(4) % 3
    net(next(stream(1)))  # what torch itself takes is there from the start
    before = peak()
    if way == "summed":
        cascaded.td_loss(net(torch.stack(list(stream(steps)))), labels, LAM).backward()
    else:
        td, state = cascaded.EligibilityTraces(net.parameters(), LAM), None
        for frame in stream(steps):
            logits, state = net.step(frame, state)
            td.step(logits)
        td.finish(labels)
    size = sum(p.grad.abs().sum() for p in net.parameters() if p.grad is not None)
    return peak() - before, float(size)


def peak() -> float:
    """The most memory this process has had so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Run every setting in a process of its own."""
    print(f"{'steps':>5} {'summed':>12} {'online':>12}   gradient, both ways")
    for steps in sys.argv[1:] or ["20", "40", "80"]:
        told = {}
        for way in ("summed", "online"):
            ended = subprocess.run([sys.executable, __file__, way, steps], capture_output=True, text=True, check=True)
            told[way] = [float(each) for each in ended.stdout.split()]
        (summed, one), (online, other) = told["summed"], told["online"]
        print(f"{steps:>5} {summed:>8.0f} MiB {online:>8.0f} MiB   {one:.4f} {other:.4f}")


if __name__ == "__main__":
    if sys.argv[1:2] in (["summed"], ["online"]):
        torch.set_num_threads(1)
        print(*learn(sys.argv[1], int(sys.argv[2])))
    else:
        main()
