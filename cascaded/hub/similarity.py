"""Whether a network is the one that is built from its configuration: what is saved must be what is loaded."""

from __future__ import annotations

from copy import deepcopy

import torch

from cascaded.cascade.inputs import Schedule
from cascaded.cascade.network import Cascade
from cascaded.errors import InputError


def check_weights(net: Cascade, built: Cascade, what: str) -> None:
    """That two networks have weights of the same names and shapes.

    Args:
        net: Somebody's.
        built: From a configuration.
        what: The configuration in words.
    """
    mine, asked = ({name: tuple(each.shape) for name, each in some.named_parameters()} for some in (net, built))
    for name in {**mine, **asked}:
        has, wants = (f"shape {found[name]}" if name in found else "none" for found in (mine, asked))
        if has != wants:
            raise InputError(
                f"the network is not {what} (its {name} has {has}, its config asks for {wants}): make config and "
                "inputs those of the network, or share a network of your own blocks as docs/own-model.md says"
            )


@torch.no_grad()
def check_answers(net: Cascade, built: Cascade, shape: tuple[int, ...], schedule: Schedule) -> None:
    """That two networks with the same weights say the same: pooling, norms and kernels show in no weight.

    Args:
        net: Somebody's.
        built: From a configuration, with the weights of the other.
        shape: Of an image.
        schedule: How both are run.
    """
    image = torch.rand(1, *shape, generator=torch.Generator().manual_seed(0))
    copy = deepcopy(net).to("cpu", torch.float32).eval()
    said, expected = (each(image, kernel=built.kernel, schedule=schedule) for each in (copy, built))
    if net.kernel != built.kernel or not torch.allclose(said, expected, rtol=1e-4, atol=1e-5, equal_nan=True):
        raise InputError(
            f"the network (kernel {net.kernel}) answers otherwise than what is built from its configuration (kernel "
            f"{built.kernel}, pooled, usual norms): make it alike, or share it as docs/own-model.md says"
        )
