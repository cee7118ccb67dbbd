"""Batch size and number of epochs for small data sets, and what to print about them."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace

from cascaded.training.config import FITTED, RunConfig
from cascaded.training.data import training_images

ENOUGH = 400
"""Weight updates from which on a recipe is used unchanged; small data sets get about as many."""
LONGEST = 200
"""Epochs at most, however few the images are."""
FEW = 200
"""Weight updates below which a network has hardly learned anything."""


def fitted(config: RunConfig, images: int, given: Collection[str] = ()) -> RunConfig:
    """Smaller batches and more epochs for a small data set, until there are about `ENOUGH` weight updates.

        batch_size = images / 8, to a power of two, from 8 to the recipe's
        epochs     = ENOUGH / (images // batch_size), rounded up, at most LONGEST

    Args:
        config: The recipe for large data sets.
        images: Number of training images.
        given: Which of `FITTED` the user has chosen; these are kept.
    """
    if images < 1 or updates(config, images) >= ENOUGH:
        return config
    batch = min(config.batch_size, max(8, 2 ** round(math.log2(images / 8))))
    batch = config.batch_size if "batch_size" in given else min(batch, images)
    epochs = min(LONGEST, math.ceil(ENOUGH / max(1, images // batch)))
    return replace(config, batch_size=batch, epochs=config.epochs if "epochs" in given else max(config.epochs, epochs))


def fit(config: RunConfig, given: Collection[str] = ()) -> tuple[RunConfig, list[str]]:
    """A new run, fitted to its number of images, and lines that explain the choice.

    Args:
        config: The run as the recipe has it.
        given: Which of `FITTED` the user has chosen.
    """
    images = training_images(config)
    chosen = fitted(config, images, given)
    lines = []
    if changed := [name for name in FITTED if getattr(chosen, name) != getattr(config, name)]:
        values = ", ".join(f"{name} {getattr(chosen, name)}" for name in changed)
        usual = ", ".join(f"{name} {getattr(config, name)}" for name in changed)
        lines.append(
            f"chosen for {images} training images: {values} (weight updates: {updates(chosen, images)}; the recipe's "
            f"{usual} would give {updates(config, images)}, fewer than {ENOUGH})"
        )
    if 0 < updates(chosen, images) < FEW:
        lines.append(
            f"cascaded: warning: few weight updates ({updates(chosen, images)}: {images} training images, batch_size "
            f"{chosen.batch_size}, epochs {chosen.epochs}), the network may learn little: give more --epochs or a "
            "smaller --batch-size"
        )
    return chosen, lines


def updates(config: RunConfig, images: int) -> int:
    """Weight updates in a whole run."""
    return config.epochs * (images // config.batch_size)
