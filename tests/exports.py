"""Tiny networks to export, with batch statistics that differ from step to step."""

from __future__ import annotations

import torch

import cascaded
from cascaded.cascade.network import Cascade
from cascaded.training.inputs import Inputs

SHAPE = (3, 9, 8)
"""Odd, so that pooling meets an incomplete window."""


def tiny_net(kind: str = "resnet", heads: str = "shared", steps: int = 7, **options) -> Cascade:
    """A tiny network in evaluation mode; its norms have seen this many steps of still images."""
    make = {
        "resnet": lambda **given: cascaded.resnet((1, 2), **{"width": 4, **given}),
        "bottleneck": lambda **given: cascaded.resnet((1, 1), "bottleneck", **{"width": 2, "pool": False, **given}),
        "densenet": lambda **given: cascaded.densenet((2, 1), 4, **given),
    }[kind]
    generator = torch.Generator().manual_seed(1)
    net = make(num_classes=5, heads=heads, generator=generator, **options).train()
    schedule = "serial" if heads == "shallow_deep" else "cascaded"
    with torch.no_grad():
        for _ in range(3):
            net(2 * images(8, generator) + 0.3, steps=steps, schedule=schedule, kernel=cascaded.OneStepDelay())
    return net.eval()


def images(items: int, generator: torch.Generator | None = None) -> torch.Tensor:
    """Normalized images."""
    return torch.randn(items, *SHAPE, generator=generator or torch.Generator().manual_seed(2))


def inputs_of(net: Cascade) -> Inputs:
    """What these networks expect."""
    return Inputs(SHAPE, (0.4, 0.5, 0.6), (0.2, 0.3, 0.4), tuple("abcde")[: net.num_classes])
