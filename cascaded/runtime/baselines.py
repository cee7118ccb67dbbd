"""Other networks, whose full pass is timed beside the rules of a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from jaxtyping import Float
from torch import Tensor

from cascaded.errors import InputError
from cascaded.models.networks import Network
from cascaded.training.inputs import describe_shape
from cascaded.training.load import Trained


@dataclass(frozen=True)
class Baseline:
    """Another network, whose full pass is timed beside the rules of the network.

    Attributes:
        name: What it is called.
        net: The network, in evaluation mode.
        images: The same images, normalized for it.
    """

    name: str
    net: Network
    images: Float[Tensor, "items channels height width"]


def folder_of(name: str) -> str:
    """A folder name for a baseline, whose name may be a path."""
    return f"baseline-{quote(name, safe='')}"


def check_baseline(name: str, other: Trained, run: Trained) -> None:
    """Refuse a network that cannot predict the same images."""
    fix = "a baseline must be trained on the same classes and the same size of images, give another one"
    if other.inputs.shape != run.inputs.shape:
        one, two = (describe_shape(each.inputs.shape) for each in (other, run))
        raise InputError(f"{name} takes {one}, {run.folder} {two}: {fix}")
    if other.inputs.classes != run.inputs.classes:
        one, two = (_describe_classes(each.inputs.classes) for each in (other, run))
        raise InputError(f"{name} predicts {one}, {run.folder} {two}: {fix}")


def _describe_classes(classes: Sequence[str]) -> str:
    return f"{len(classes)} classes ({', '.join(classes[:3])}, ...)"
