"""The serial schedule: every block once, from its final input.

Step 1 computes the stem, step k block k-1, and later steps compute nothing. Blocks that have not been computed
contribute nothing but their skip path.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from cascaded.cascade.film import SETTLED, still
from cascaded.errors import InputError

if TYPE_CHECKING:
    from cascaded.cascade.network import Cascade


def serial_trace(net: Cascade, images: Tensor, steps: int | None) -> Float[Tensor, "time batch classes"]:
    """Logits at every step."""
    if images.dim() == 5:
        raise InputError(
            "the serial schedule computes every block once and cannot follow a film of several frames: give still "
            "images (batch, channels, height, width), or run net.serial() on each frame"
        )
    settled, trace = None, []
    for number in range(1, (steps or len(net.blocks) + 1) + 1):
        logits, settled = cycle(net, images, settled, number)
        trace.append(logits)
    return torch.stack(trace)


def final_logits(net: Cascade, images: Tensor) -> Float[Tensor, "batch classes"]:
    """Logits of the last step only: every block once."""
    z = net.stem(still(net.arrange(images), steps=1, start=SETTLED))
    for block in net.chain:
        z = block.forward_settled(z)
    return net.readout(z)[0]


def cycle(net: Cascade, images: Tensor, settled: Tensor | None, number: int) -> tuple[Tensor, Tensor]:
    """Logits at one step, and the final features so far, from those of the step before."""
    if settled is None:
        z = net.stem(still(net.arrange(images), steps=1, start=SETTLED))
        z = replace(z, start=number)
    else:
        z = still(settled, steps=1, start=number)
        if number <= len(net.blocks) + 1:
            z = net.chain[number - 2].forward_settled(z)
    features = z
    if net.heads != "shallow_deep":
        for block in net.chain[number - 1 :]:
            features = block.skip_only(features)
    return net.readout(features)[0], z.frames
