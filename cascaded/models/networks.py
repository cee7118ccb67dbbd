"""Networks by name."""

from __future__ import annotations

from collections.abc import Callable

from typing_extensions import Unpack

from cascaded.cascade.network import Cascade
from cascaded.errors import unknown
from cascaded.models.build import Options
from cascaded.models.classifier import Classifier
from cascaded.models.densenet import densenet121
from cascaded.models.resnet import resnet18, resnet34, resnet50

Network = Cascade | Classifier
"""What is trained and recorded: a hand-written cascade, or a converted model."""
NETWORKS: dict[str, Callable[..., Cascade]] = {
    "resnet18": resnet18,
    "resnet34": resnet34,
    "resnet50": resnet50,
    "densenet121": densenet121,
}


def make_network(name: str, **options: Unpack[Options]) -> Cascade:
    """A network by name; options as for `resnet` and `densenet`."""
    if name not in NETWORKS:
        raise unknown("architecture", name, NETWORKS)
    return NETWORKS[name](**options)
