"""Which images a network is shown: its own data's, or others brought to the form it takes."""

from __future__ import annotations

import os
from dataclasses import replace

import torch
from jaxtyping import Int64
from torch import Tensor

from cascaded.data.images import Images
from cascaded.data.sources import load
from cascaded.data.split import limited
from cascaded.errors import InputError, MissingSplitError
from cascaded.learning.feed import held_out, load_split
from cascaded.learning.trained import Trained, told_shape


def shown_images(
    run: Trained, data: str | None, split: str, limit: int | None = None
) -> tuple[Images, Int64[Tensor, "items"]]:
    """Images, and the numbers of those that are shown.

    Args:
        run: The network.
        data: A name or a path; None, or the run's own, for the data it was trained on.
        split: Which part; `validation` of its own data is what was held out of its training images.
        limit: How many, the same of every class; None for all.
    """
    if data is None or os.path.normpath(data) == os.path.normpath(run.spec.data):
        images, items = own_images(run, split)
    else:
        images = load(data, split, size=run.inputs.shape[-1])
        items = torch.arange(len(images))
    if tuple(images.images.shape[1:]) != run.inputs.shape:
        raise InputError(
            f"{images.name} has {told_shape(images.images.shape[1:])}, {run.folder} was trained on "
            f"{told_shape(run.inputs.shape)}: record other data"
        )
    if limit is not None:
        items = items[limited(images.labels[items], limit)]
    return images, items


def own_images(run: Trained, split: str) -> tuple[Images, Int64[Tensor, "items"]]:
    """Images of the data a network was trained on."""
    if split != "validation":
        try:
            images = load_split(run.spec, split)
        except MissingSplitError as error:
            raise MissingSplitError(f"{error}; validation is what was held out of the training images") from error
        return images, torch.arange(len(images))
    images = load_split(run.spec, "train")
    if not (run.spec.fold or run.spec.recipe.held_out):
        raise InputError(
            f"{run.folder} held no training images out, validation has none: train it with --held-out 0.1, or record "
            "--split test"
        )
    return replace(images, split="validation"), held_out(run.spec, images)[1]
