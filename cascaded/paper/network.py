"""A network of the paper: trained once with every seed, whichever tables and figures need it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cascaded.training.config import RunConfig
from cascaded.training.method import get_method
from cascaded.training.sweep import Job, plan

DEFAULT = RunConfig()
FOLDS = 10
"""Over which the paper's networks are cross-validated."""


@dataclass(frozen=True)
class Network:
    """What is trained, but for the recipe and the seeds, which are the scale's.

    Attributes:
        model: One of the paper's models.
        lam: Lambda of a TD model.
        data: What it learns.
        noise: The noise that it learns with.
        folds: How many folds it is cross-validated over; None where it is trained once.
    """

    model: str
    lam: str | None = None
    data: str = "cifar10"
    noise: str | None = None
    folds: int | None = None

    @property
    def part(self) -> str:
        """Which networks it is compared with, by folder: those of the same data and noise."""
        folds = None if self.folds is None else f"{self.folds}folds"
        return "-".join(word for word in (self.data, self.noise, folds) if word)

    @property
    def name(self) -> str:
        """Model and lambda, as its folder is called."""
        return self.jobs((0,), Path())[0].name.partition("/")[0]

    @property
    def is_serial(self) -> bool:
        """Whether nothing is delayed in it, so that its time is as fine as it gets."""
        return get_method(self.model).schedule == "serial"

    def jobs(self, seeds: Sequence[int], out: Path, config: RunConfig = DEFAULT) -> list[Job]:
        """Its runs, each kept in OUT/PART/NAME/SEED."""
        return plan(config, (self.model,), (self.lam,) if self.lam else (), seeds, out / self.part, self.folds)
