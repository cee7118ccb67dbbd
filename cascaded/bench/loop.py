"""The published method to run a cascade: the whole network once per step, with a queue behind every block.

    z[t,i+1] = relu(skip_i(z[t,i]) + sum_k kappa[k] F_i(z[t-k,i]))

Slow and obvious. It shares only the weights with a `Cascade`: delays, batch statistics and the order of operations are
written out here a second time, as the baseline of the benchmark and the reference of the tests.
"""

from __future__ import annotations

from collections import deque

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cascaded.cascade.block import ResidualBlock
from cascaded.cascade.conv import Conv2d
from cascaded.cascade.kernels import ExponentialSmoothing, Kernel, TappedDelay
from cascaded.cascade.network import Cascade
from cascaded.cascade.norm import TimeBatchNorm


class TimeMajorLoop(nn.Module):
    """Runs a network step by step, with its own running statistics per step for every norm."""

    def __init__(self, net: Cascade):
        super().__init__()
        self.net = net
        self.statistics = {m: _Statistics(m) for m in net.modules() if isinstance(m, TimeBatchNorm)}

    def forward(self, x: Tensor, kernel: Kernel | None = None, steps: int | None = None) -> Tensor:
        kernel, still = kernel or self.net.kernel, x.dim() == 4
        steps = steps or (self.net.steps_to_settle(kernel) if still else len(x))
        kappa = impulse_response(kernel, steps + 1)
        rests = int(kappa[0] == 0)
        lines = [deque(maxlen=len(kappa)) for _ in range(len(self.net.blocks) + 1)]
        trace = []
        for t in range(1 - rests, steps + 1):
            frame = x if still else x[min(t + rests, len(x)) - 1]
            # as published, blocks that are behind at the last step are computed, but no prediction uses them
            used = t + rests <= steps
            z = self._step(frame, t, rests, lines, kappa, used)
            if t > 0:
                trace.append(self.net.readout.at(t)(z.mean(dim=(2, 3))))
        return torch.stack(trace)

    def _step(self, frame: Tensor, t: int, rests: int, lines: list[deque], kappa: list[float], used: bool) -> Tensor:
        z = _pass(lines[0], self._run(self.net.stem, frame, t + rests, used), kappa)
        for line, block in zip(lines[1:], self.net.chain, strict=True):
            delayed = _pass(line, self._run(block.branch, z, t, used), kappa)
            if isinstance(block, ResidualBlock):
                z = torch.relu_(delayed + self._layer(block.skip, z, t))
            else:
                z = torch.cat([delayed, z], dim=1)
            z = self._run(block.after, z, t)
        return z

    def _run(self, layers: nn.Sequential, x: Tensor, t: int, used: bool = True) -> Tensor:
        for layer in layers:
            x = self._layer(layer, x, t, used)
        return x

    def _layer(self, layer: nn.Module, x: Tensor, t: int, used: bool = True) -> Tensor:
        if isinstance(layer, TimeBatchNorm):
            return self.statistics[layer].norm(x, t, self.net.training, used)
        if isinstance(layer, nn.Sequential):
            return self._run(layer, x, t, used)
        if isinstance(layer, Conv2d):
            return F.conv2d(x, layer.weight, None, layer.stride, layer.padding)
        return layer(x)


def impulse_response(kernel: Kernel, length: int) -> list[float]:
    """The weights kappa of a kernel for delays 0, 1, 2, ..."""
    if isinstance(kernel, ExponentialSmoothing):
        return [(1 - kernel.alpha) * kernel.alpha**k for k in range(length)]
    assert isinstance(kernel, TappedDelay)
    return list(kernel.weights)


def _pass(line: deque, x: Tensor, kappa: list[float]) -> Tensor:
    """Push x into a delay line and return its delayed output."""
    line.appendleft(x)
    delayed = [past if weight == 1 else weight * past for weight, past in zip(kappa, line, strict=False) if weight]
    return sum(delayed[1:], start=delayed[0]) if delayed else torch.zeros_like(x)


class _Statistics:
    """Running mean and variance of one norm per step."""

    def __init__(self, norm: TimeBatchNorm):
        self.of = norm
        self.steps = [(m.clone(), v.clone()) for m, v in zip(norm.running_mean, norm.running_var, strict=True)]
        self.batches = list(norm.batches.clone())

    def norm(self, x: Tensor, t: int, training: bool, used: bool) -> Tensor:
        norm = self.of
        row = min(t, len(norm.weight) - 1)
        affine = (norm.weight[row], norm.bias[row])
        if not training:
            return F.batch_norm(x, *self.steps[min(t, len(self.steps) - 1)], *affine, eps=norm.eps)
        if not used:
            return F.batch_norm(x, None, None, *affine, training=True, eps=norm.eps)
        while len(self.steps) <= t:
            self.steps.append((torch.zeros_like(self.steps[0][0]), torch.ones_like(self.steps[0][1])))
            self.batches.append(torch.tensor(0))
        self.batches[t] += 1
        momentum = 1 / int(self.batches[t]) if norm.momentum is None else norm.momentum
        return F.batch_norm(x, *self.steps[t], *affine, training=True, momentum=momentum, eps=norm.eps)
