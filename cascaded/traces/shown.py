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
from cascaded.training.data import held_out, load_split
from cascaded.training.load import Trained, told_shape


def shown_images(
    run: Trained, data: str | None, split: str | None = None, limit: int | None = None
) -> tuple[Images, Int64[Tensor, "items"]]:
    """Images, and the numbers of those that are shown.

    Args:
        run: The network.
        data: A name or a path; None, or the run's own, for the data it was trained on.
        split: Which part; `validation` of its own data is what was held out of its training images. None for the test
            split, or the validation split where there is no test split: the split of the returned images says which.
        limit: How many, the same of every class; None for all.
    """
    if split is None:
        images, items = test_or_validation(run, data)
    else:
        images, items = split_of(run, data, split)
    if tuple(images.images.shape[1:]) != run.inputs.shape:
        raise InputError(
            f"{images.name} has {told_shape(images.images.shape[1:])}, {run.folder} was trained on "
            f"{told_shape(run.inputs.shape)}: record other data"
        )
    if limit is not None:
        items = items[limited(images.labels[items], limit)]
    return images, items


def test_or_validation(run: Trained, data: str | None) -> tuple[Images, Int64[Tensor, "items"]]:
    """The test split, or the validation split of data without one."""
    try:
        return split_of(run, data, "test")
    except MissingSplitError as error:
        missing = error
    if is_own(run, data) and not holds_out(run):
        raise InputError(
            f"{run.spec.data} has no test split and {run.folder} was trained without a validation split: add test "
            "images, or train it with --held-out 0.1"
        ) from missing
    try:
        return split_of(run, data, "validation")
    except MissingSplitError:
        raise missing from None


def split_of(run: Trained, data: str | None, split: str) -> tuple[Images, Int64[Tensor, "items"]]:
    """A split of the run's own data, or of other data, resized."""
    if is_own(run, data):
        return own_images(run, split)
    images = load(str(data), split, image_size=run.inputs.shape[-1], channels=run.inputs.shape[0])
    return images, torch.arange(len(images))


def is_own(run: Trained, data: str | None) -> bool:
    """Whether data is what the run was trained on."""
    return data is None or os.path.normpath(data) == os.path.normpath(run.spec.data)


def holds_out(run: Trained) -> bool:
    """Whether some training images were held out for validation."""
    return bool(run.spec.fold or run.spec.recipe.held_out)


def own_images(run: Trained, split: str) -> tuple[Images, Int64[Tensor, "items"]]:
    """Images of the data a network was trained on."""
    if split != "validation":
        try:
            images = load_split(run.spec, split)
        except MissingSplitError as error:
            raise MissingSplitError(f"{error}; validation is what was held out of the training images") from error
        return images, torch.arange(len(images))
    images = load_split(run.spec, "train")
    if not holds_out(run):
        raise InputError(
            f"{run.folder} held no training images out, validation has none: train it with --held-out 0.1, or record "
            "--split test"
        )
    return replace(images, split="validation"), held_out(run.spec, images)[1]
