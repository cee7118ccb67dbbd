"""An exponential moving average of the weights, which is often more accurate than the weights themselves."""

from __future__ import annotations

import copy

import torch

from cascaded.models.networks import Network


class WeightAverage:
    """A copy of a network whose weights and norm statistics are averages over the steps of its training.

        a <- d a + (1 - d) w        d = min(decay, (1 + t) / (10 + t)) after step t = 0, 1, 2, ...

    With the smaller d of the first steps the initial weights do not count in the average.

    Args:
        net: The network that is trained.
        decay: Of the average: 0.999 averages over about the last 1,000 steps.
    """

    def __init__(self, net: Network, decay: float):
        self.net, self.decay = copy.deepcopy(net).eval(), decay

    @torch.no_grad()
    def update(self, net: Network, step: int) -> None:
        """Add the weights after a step, counted from 0."""
        decay = min(self.decay, (1 + step) / (10 + step))
        new, average = net.state_dict(), self.net.state_dict()
        resized = {name: each for name, each in new.items() if each.shape != average[name].shape}
        if resized:  # norms add rows when they see more steps; what has no average yet starts with what it is
            self.net.load_state_dict(resized, strict=False)
            average = self.net.state_dict()
        for name, each in average.items():
            if each.is_floating_point():
                each.lerp_(new[name], 1 - decay)
            else:  # a norm's number of batches
                each.copy_(new[name])
