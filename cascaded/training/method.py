"""The paper's models: a schedule, heads and a loss. The network is the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal

from cascaded.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

    from cascaded.cascade.inputs import Schedule
    from cascaded.cascade.readout import Heads
    from cascaded.losses import Labels

MethodName = Literal[
    "cascaded-td",
    "cascaded-td-multihead",
    "cascaded-ce",
    "serial-td",
    "serial-td-multihead",
    "serial-ce",
    "shallow-deep",
]


def check_lam(lam: float) -> None:
    """Lambda is a weight: from 0 to 1."""
    if not 0 <= lam <= 1:
        raise InputError(f"lam is {lam}: give a number from 0 (the next step's answer) to 1 (the true label)")


@dataclass(frozen=True)
class TD:
    """The temporal-difference loss with a lambda that may change while a network is trained.

    Attributes:
        lam: A number, or several that lambda runs through from the first epoch to the last, in straight lines.
    """

    lam: float | tuple[float, ...] = 0.0

    def __post_init__(self):
        if not self.knots:
            raise InputError("lam is empty: give a number from 0 to 1")
        for each in self.knots:
            check_lam(each)

    @property
    def knots(self) -> tuple[float, ...]:
        """The values that lambda runs through."""
        return self.lam if isinstance(self.lam, tuple) else (self.lam,)

    def at(self, progress: float) -> float:
        """Lambda when a share of the training is done, from 0 to 1."""
        place = min(max(progress, 0.0), 1.0) * (len(self.knots) - 1)
        before = min(int(place), max(len(self.knots) - 2, 0))
        after = min(before + 1, len(self.knots) - 1)
        return self.knots[before] + (self.knots[after] - self.knots[before]) * (place - before)

    def __call__(self, trace: Tensor, labels: Labels, progress: float = 0.0) -> Tensor:
        from cascaded.losses import td_loss

        return td_loss(trace, labels, self.at(progress))


@dataclass(frozen=True)
class CE:
    """Cross-entropy of the last step alone."""

    def __call__(self, trace: Tensor, labels: Labels, progress: float = 0.0) -> Tensor:
        from cascaded.losses import ce_loss

        return ce_loss(trace, labels)


@dataclass(frozen=True)
class Method:
    """How a network is run and what it is taught."""

    schedule: Schedule
    heads: Heads
    loss: TD | CE

    @property
    def needs_filling(self) -> bool:
        """Whether training sees settled steps alone, and the statistics of the others have to be filled in."""
        return self.schedule == "cascaded" and isinstance(self.loss, CE)


METHODS: dict[str, Method] = {
    "cascaded-td": Method("cascaded", "shared", TD(0.0)),
    "cascaded-td-multihead": Method("cascaded", "per_step", TD(0.0)),
    "cascaded-ce": Method("cascaded", "shared", CE()),
    "serial-td": Method("serial", "shared", TD(0.0)),
    "serial-td-multihead": Method("serial", "per_step", TD(1.0)),
    "serial-ce": Method("serial", "shared", CE()),
    "shallow-deep": Method("serial", "shallow_deep", TD(1.0)),
}


def get_method(name: str, lam: float | Sequence[float] | None = None) -> Method:
    """A method by name; `lam` in place of its own lambda, a number or several to run through."""
    if name not in METHODS:
        near = get_close_matches(name, METHODS, n=1)
        raise InputError(
            f"there is no method {name!r}: " + (f"say {near[0]}?" if near else "say " + ", ".join(METHODS))
        )
    method = METHODS[name]
    if lam is None:
        return method
    if isinstance(method.loss, CE):
        raise InputError(
            f"{name} learns from the last step alone and has no lambda, --lam is given: leave it out, or say "
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
