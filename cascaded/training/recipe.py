"""The recipe: everything about training that is not the model or the data."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

from cascaded.errors import InputError

Precision = Literal["float32", "bfloat16"]
RateSchedule = Literal["steps", "one-cycle"]
CLIMB = 50
"""Steps that a one-cycle rate takes to its peak at the least: climbing faster, losses over all steps become nan."""

FITTED = ("epochs", "batch")
"""Chosen from the number of training images unless given. The width is not: docs/training.md, few images."""
ENOUGH = 400
"""Updates (optimiser steps) that a recipe is left with as it is; small data sets get about as many."""
LONGEST = 200
"""Epochs at most, however few the images are."""
FEW = 200
"""Updates below which a network of these has hardly learned anything."""


@dataclass(frozen=True)
class Recipe:
    """SGD with Nesterov momentum, a rate that falls, and what is done to the images.

    Attributes:
        width: Channels of the network's first stage.
        epochs: Passes over the training images.
        batch: Images a step, over all processes.
        rate: The learning rate at its highest.
        momentum: Of SGD.
        nesterov: Whether momentum looks ahead.
        decay: Weight decay.
        schedule: `steps`, down by `drop` every `drop_every` epochs; `one-cycle`, up in a straight line for the share
            `warm_up` of all steps, then down in a straight line to nothing. A short training does not climb faster than
            to `rate` in 50 steps, and may not get that far.
        drop: What `steps` multiplies the rate with.
        drop_every: Epochs between two drops.
        warm_up: Share of the training in which a one-cycle rate rises.
        held_out: Share of the training images, the same of every class, that is kept for validation.
        pad: Reflected pixels around an image before it is cropped; None for the data set's own.
        flip: Whether half of the images are mirrored; None for the data set's own.
        cutout: Side of the square that is cut out; None for the data set's own, none where there is noise.
        noise: One of the six noises as an augmentation.
        precision: `bfloat16` for mixed precision.
        sync_norm: Whether several processes share their batch statistics; otherwise each uses its own.
    """

    width: int = 64
    epochs: int = 120
    batch: int = 128
    rate: float = 0.1
    momentum: float = 0.9
    nesterov: bool = True
    decay: float = 5e-4
    schedule: RateSchedule = "steps"
    drop: float = 0.2
    drop_every: int = 30
    warm_up: float = 0.3
    held_out: float = 0.1
    pad: int | None = None
    flip: bool | None = None
    cutout: int | None = None
    noise: str | None = None
    precision: Precision = "float32"
    sync_norm: bool = True

    def __post_init__(self):
        for name in ("width", "epochs", "batch", "drop_every"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}: give at least 1")
        for name in ("pad", "cutout"):
            if (getattr(self, name) or 0) < 0:
                raise InputError(f"{name} is {getattr(self, name)}: give 0 for none, or a number of pixels")
        if not (math.isfinite(self.rate) and self.rate > 0):
            raise InputError(f"rate is {self.rate}: give a positive number, e.g. 0.1")
        for name in ("momentum", "decay", "held_out"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}: give a number from 0 to below 1")
        for name, known in {"schedule": get_args(RateSchedule), "precision": get_args(Precision)}.items():
            if getattr(self, name) not in known:
                raise InputError(f"{name} is {getattr(self, name)!r}: say {' or '.join(known)}")
        if not 0 < self.drop <= 1:
            raise InputError(f"drop is {self.drop}: give a number above 0, and 1 for a rate that stays")
        if not 0 < self.warm_up < 1:
            raise InputError(f"warm_up is {self.warm_up}: give a share of the training, between 0 and 1")

    def rate_at(self, step: int, steps_an_epoch: int) -> float:
        """The learning rate of a step, counted from 0."""
        if self.schedule == "steps":
            return self.rate * self.drop ** (step // steps_an_epoch // self.drop_every)
        done = (step + 1) / (self.epochs * steps_an_epoch + 1)  # neither the first step nor the last has a rate of 0
        rising = done / self.warm_up
        climbing = (step + 1) / CLIMB
        falling = (1 - done) / (1 - self.warm_up)
        return self.rate * min(rising, climbing, falling)

    def but(self, **changes: Any) -> Recipe:
        """The same recipe with changes; those that are None are left out."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})

    def to_json(self) -> dict[str, Any]:
        """As a run's `spec.json` keeps it."""
        return asdict(self)

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Recipe:
        """What `to_json` gave."""
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(told) - known):
            raise InputError(f"a recipe has no {', '.join(unknown)}: it was made by a newer cascaded, update this one")
        return cls(**told)


RECIPES: dict[str, Recipe] = {
    "paper": Recipe(),
    "laptop": Recipe(width=16, epochs=10, batch=64, rate=0.1, schedule="one-cycle", warm_up=0.2, cutout=0),
}
"""`paper`: spec and appendix of the paper, for a GPU. `laptop`: a narrow network within the hour on two cores."""


def fitted(recipe: Recipe, images: int, given: Collection[str] = ()) -> Recipe:
    """A recipe for a small data set: smaller batches and more epochs, until there are about `ENOUGH` updates.

        batch size = images / 8, to a power of two, from 8 to the recipe's
        epochs     = ENOUGH / (images // batch size), rounded up, at most LONGEST

    The width stays. A recipe that has as many updates already is left as it is.

    Args:
        recipe: What large data sets are trained with.
        images: How many images there are to train on.
        given: Which of `FITTED` the user has chosen; they stay.
    """
    if images < 1 or recipe.epochs * (images // recipe.batch) >= ENOUGH:
        return recipe
    batch = min(recipe.batch, max(8, 2 ** round(math.log2(images / 8))))
    batch = recipe.batch if "batch" in given else min(batch, images)
    epochs = min(LONGEST, math.ceil(ENOUGH / max(1, images // batch)))
    return recipe.but(batch=batch, epochs=None if "epochs" in given else max(recipe.epochs, epochs))
