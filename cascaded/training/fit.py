"""Batch size and epochs for the images that there are, and what to print about them."""

from __future__ import annotations

from dataclasses import replace

from cascaded.training.config import Spec
from cascaded.training.data import training_images
from cascaded.training.options import Options
from cascaded.training.recipe import ENOUGH, FEW, FITTED, fitted


def fit(spec: Spec, options: Options) -> tuple[Spec, list[str]]:
    """A new run with what its options leave open chosen from the number of its images, and lines that explain it.

    Args:
        spec: The run as the recipe has it.
        options: What was given for it.
    """
    images = training_images(spec)
    chosen = replace(spec, recipe=fitted(spec.recipe, images, options.given))
    lines = []
    if changed := [name for name in FITTED if getattr(chosen.recipe, name) != getattr(spec.recipe, name)]:
        values = ", ".join(f"{name} {getattr(chosen.recipe, name)}" for name in changed)
        usual = ", ".join(f"{name} {getattr(spec.recipe, name)}" for name in changed)
        lines.append(
            f"chosen for {images} training images: {values} (weight updates: {updates(chosen, images)}; the recipe's "
            f"{usual} would give {updates(spec, images)}, fewer than {ENOUGH})"
        )
    if 0 < updates(chosen, images) < FEW:
        lines.append(
            f"cascaded: warning: few weight updates ({updates(chosen, images)}: {images} training images, batch "
            f"{chosen.recipe.batch}, epochs {chosen.recipe.epochs}), the network may learn little: give more --epochs "
            "or a smaller --batch"
        )
    return chosen, lines


def updates(spec: Spec, images: int) -> int:
    """Weight updates in a whole run."""
    return spec.recipe.epochs * (images // spec.recipe.batch)
