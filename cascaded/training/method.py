"""The paper's training methods: a schedule, heads and a loss. The network is the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cascaded.errors import InputError, between, unknown

if TYPE_CHECKING:  # these modules import torch
    from cascaded.cascade.inputs import Schedule
    from cascaded.cascade.readout import Heads

MethodName = Literal[
    "cascaded-td",
    "cascaded-td-multihead",
    "cascaded-ce",
    "serial-td",
    "serial-td-multihead",
    "serial-ce",
    "shallow-deep",
]


@dataclass(frozen=True)
class TD:
    """The temporal-difference loss, `losses.td_loss`, with a lambda that may change during training.

    Attributes:
        lam: A number, or several that are interpolated linearly from the first epoch to the last.
    """

    lam: float | tuple[float, ...] = 0.0

    def __post_init__(self):
        if not self.knots:
            raise InputError("lam is empty: give a number from 0 to 1")
        for each in self.knots:
            between(0, 1, lam=each)

    @property
    def knots(self) -> tuple[float, ...]:
        """The values that are interpolated."""
        return self.lam if isinstance(self.lam, tuple) else (self.lam,)

    def at(self, progress: float) -> float:
        """Lambda at a fraction of the training, from 0 to 1."""
        place = min(max(progress, 0.0), 1.0) * (len(self.knots) - 1)
        before = min(int(place), max(len(self.knots) - 2, 0))
        after = min(before + 1, len(self.knots) - 1)
        return self.knots[before] + (self.knots[after] - self.knots[before]) * (place - before)


@dataclass(frozen=True)
class CE:
    """Cross-entropy of the last step only, `losses.ce_loss`."""


@dataclass(frozen=True)
class Method:
    """How a network is run and which loss it is trained with."""

    schedule: Schedule
    heads: Heads
    loss: TD | CE


METHODS: dict[str, Method] = {
    "cascaded-td": Method("cascaded", "shared", TD(0.0)),
    "cascaded-td-multihead": Method("cascaded", "per_step", TD(0.0)),
    "cascaded-ce": Method("cascaded", "shared", CE()),
    "serial-td": Method("serial", "shared", TD(1.0)),
    "serial-td-multihead": Method("serial", "per_step", TD(1.0)),
    "serial-ce": Method("serial", "shared", CE()),
    "shallow-deep": Method("serial", "shallow_deep", TD(1.0)),
}


def get_method(name: str, lam: float | Sequence[float] | None = None) -> Method:
    """A method by name; `lam` replaces its own lambda."""
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    method = METHODS[name]
    if lam is None:
        return method
    if isinstance(method.loss, CE):
        raise InputError(
            f"{name} is trained on the last step only and has no lambda, --lam is given: leave it out, or use "
            f"{name.replace('-ce', '-td')}"
        )
    return Method(method.schedule, method.heads, TD(tuple(lam) if isinstance(lam, Sequence) else lam))


def parse_lam(text: str) -> float | tuple[float, ...]:
    """`0.5`, or `1:0` for a lambda that falls from 1 to 0 over the epochs."""
    try:
        knots = tuple(float(each) for each in text.split(":"))
    except ValueError as error:
        raise InputError(f"--lam is {text!r}: give a number, 0.5, or several over the epochs, 1:0") from error
    return TD(knots[0] if len(knots) == 1 else knots).lam
