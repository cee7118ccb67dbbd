"""Whether a network is the one that its configuration builds, so that it can be loaded again after it was saved."""

from __future__ import annotations

from copy import deepcopy

import torch

from cascaded.cascade.inputs import Schedule
from cascaded.errors import InputError
from cascaded.models.networks import Network


def check_weights(net: Network, built: Network, expected: str) -> None:
    """Refuse a network whose weights have other names or shapes than those of its configuration.

    Args:
        net: The user's network.
        built: A network built from the configuration.
        expected: The configuration in words.
    """
    own, wanted = ({name: tuple(each.shape) for name, each in some.named_parameters()} for some in (net, built))
    for name in {**own, **wanted}:
        if own.get(name) != wanted.get(name):
            raise InputError(
                f"the network is not a {expected} (its {name} has shape {own.get(name)}, the configuration gives "
                f"{wanted.get(name)}): change config and inputs, or share your own blocks as docs/own-model.md shows"
            )


@torch.no_grad()
def check_outputs(net: Network, built: Network, shape: tuple[int, ...], schedule: Schedule) -> None:
    """Refuse a network with the same weights but other outputs: pooling, norms and kernels are not in the weights.

    Args:
        net: The user's network.
        built: A network built from the configuration, with the weights of `net`.
        shape: Channels, height and width of an image.
        schedule: The schedule of both.
    """
    image = torch.rand(1, *shape, generator=torch.Generator().manual_seed(0))
    copy = deepcopy(net).to("cpu", torch.float32).eval()
    outputs, expected = (each(image, kernel=built.kernel, schedule=schedule) for each in (copy, built))
    if net.kernel != built.kernel or not torch.allclose(outputs, expected, rtol=1e-4, atol=1e-5, equal_nan=True):
        raise InputError(
            f"the network (kernel {net.kernel}) has other outputs than the one built from its configuration (kernel "
            f"{built.kernel}, pooling, default norms; cascaded-ce has statistics per step only with "
            "fill_statistics=True): build it alike, or share it as docs/own-model.md shows"
        )
