"""What a run is: all that its result depends on, as `spec.json` in its folder says it."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from typing import Any

from cascaded.errors import InputError
from cascaded.training.method import TD, Method, make_method
from cascaded.training.recipe import Recipe

FORMAT = 1


@dataclass(frozen=True)
class Spec:
    """A run: data, model, recipe and seed. Where it is computed, and with how many threads, is not part of it.

    Attributes:
        data: Name or path of the data.
        model: One of the paper's models, e.g. `cascaded-td`.
        lam: Lambda in place of the model's own; a number, or several that it runs through over the epochs.
        network: `resnet18`, `resnet34`, `resnet50` or `densenet121`.
        recipe: How it is trained.
        seed: Draws weights, order and augmentation.
        limit: How many training images are used; None for all.
        size: Height and width that images are brought to; None for what they have.
        classes: Which classes of the data, in which order; empty for all.
        columns: Names of the image and of the label column, where the data does not tell.
        fold: Which fold of how many is held out of the training images: `(3, 10)`; None for the recipe's own share.
        start: SHA-256 of the weights and statistics that it begins with; None where they are drawn.
    """

    data: str
    model: str = "cascaded-td"
    lam: float | tuple[float, ...] | None = None
    network: str = "resnet18"
    recipe: Recipe = field(default_factory=Recipe)
    seed: int = 0
    limit: int | None = None
    size: int | None = None
    classes: tuple[str, ...] = ()
    columns: tuple[str | None, str | None] = (None, None)
    fold: tuple[int, int] | None = None
    start: str | None = None

    @property
    def method(self) -> Method:
        """Schedule, heads and loss."""
        return make_method(self.model, self.lam)

    def to_json(self) -> dict[str, Any]:
        """As `spec.json` keeps it."""
        return {"format": FORMAT, **asdict(self), "recipe": self.recipe.to_json()}

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Spec:
        """What `to_json` gave, back from JSON."""
        told = dict(told)
        if told.pop("format", None) != FORMAT:
            raise InputError(f"spec.json is not of format {FORMAT}, the one this cascaded reads: train the run again")
        told["recipe"] = Recipe.from_json(told["recipe"])
        told["lam"] = tuple(told["lam"]) if isinstance(told["lam"], list) else told["lam"]
        told["classes"], told["columns"] = tuple(told["classes"]), tuple(told["columns"])
        told["fold"] = tuple(told["fold"]) if told.get("fold") else None
        return cls(**told)

    def differences(self, other: Spec) -> list[str]:
        """How another spec differs from this one: `rate 0.1 -> 0.2`."""
        mine, yours = _flat(self), _flat(other)
        return [f"{name} {mine[name]} -> {yours[name]}" for name in mine if mine[name] != yours[name]]


def _flat(spec: Spec) -> dict[str, Any]:
    """All that counts, by name. A slash behind a folder changes nothing, nor does a model's own lambda, if named."""
    loss = spec.method.loss
    told = {**asdict(spec), "data": os.path.normpath(spec.data), "lam": loss.lam if isinstance(loss, TD) else None}
    recipe = told.pop("recipe")
    return {**told, **recipe}
