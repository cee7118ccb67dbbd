"""Networks by name."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from typing_extensions import Unpack

from cascaded.cascade.network import Cascade
from cascaded.errors import InputError
from cascaded.models.build import Options
from cascaded.models.densenet import densenet121
from cascaded.models.resnet import resnet18, resnet34, resnet50

NETWORKS: dict[str, Callable[..., Cascade]] = {
    "resnet18": resnet18,
    "resnet34": resnet34,
    "resnet50": resnet50,
    "densenet121": densenet121,
}


def make_network(name: str, **options: Unpack[Options]) -> Cascade:
    """A network by name; options as for `resnet` and `densenet`."""
    if name not in NETWORKS:
        near = get_close_matches(name, NETWORKS, n=1)
        fix = f"did you mean {near[0]}?" if near else f"give one of {', '.join(NETWORKS)}"
        raise InputError(f"there is no architecture {name!r}: {fix}")
    return NETWORKS[name](**options)
