"""Select the images that are presented to a network: its own data, or other data in the shape of its inputs."""

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
from cascaded.training.data import data_of, load_split, split_validation
from cascaded.training.inputs import describe_shape
from cascaded.training.load import Trained

Selection = tuple[Images, Int64[Tensor, "items"]]
"""Images of a data set, and the numbers of those that are presented."""


def select_images(run: Trained, data: str | None = None, split: str | None = None) -> Selection:
    """The images of a split, and the numbers of those that a network may be evaluated on.

    Args:
        run: The network.
        data: A name or a path; None for the data that the network was trained on.
        split: Which split; `validation` of the network's own data is the part left out of its training images, of other
            data without such a split it is their training images. None for the test split, or the validation split if
            there is no test split.
    """
    images, items = _test_or_validation(run, data) if split is None else _split(run, data, split)
    if tuple(images.images.shape[1:]) != run.inputs.shape:
        raise InputError(
            f"{images.name} has {describe_shape(images.images.shape[1:])}, {run.folder} was trained on "
            f"{describe_shape(run.inputs.shape)}: record other data"
        )
    return images, items


def limit_images(images: Images, items: Tensor, max_images: int | None) -> Int64[Tensor, "items"]:
    """At most so many of the items, the same number per class, in their order; all of them if there are no more."""
    if max_images is None or max_images >= len(items):
        return items
    return items[limited(images.labels[items], max_images)]


def _test_or_validation(run: Trained, data: str | None) -> Selection:
    """The test split; if there is none, the validation split."""
    try:
        return _split(run, data, "test")
    except MissingSplitError as error:
        missing = error
    try:
        return _own_validation(run) if _is_own(run, data) else _other_images(run, str(data), "validation")
    except MissingSplitError:
        raise missing from None
    except InputError as error:
        raise InputError(f"{data or run.config.data} has no test split and {error}") from missing


def _split(run: Trained, data: str | None, split: str) -> Selection:
    if _is_own(run, data):
        return _own_validation(run) if split == "validation" else _own_images(run, split)
    try:
        return _other_images(run, str(data), split)
    except MissingSplitError:
        if split != "validation":
            raise
    images, items = _other_images(run, str(data), "train")  # the network was trained on none of them
    return replace(images, split=split), items


def _is_own(run: Trained, data: str | None) -> bool:
    return data is None or os.path.normpath(data) == os.path.normpath(run.config.data)


def _other_images(run: Trained, data: str, split: str) -> Selection:
    channels, _, size = run.inputs.shape
    images = load(data, split, image_size=size, channels=channels)
    return images, torch.arange(len(images))


def _own_images(run: Trained, split: str) -> Selection:
    try:
        with data_of(run.folder, run.config):
            images = load_split(run.config, split)
    except MissingSplitError as error:
        raise MissingSplitError(f"{error}; validation is the part left out of the training images") from error
    return images, torch.arange(len(images))


def _own_validation(run: Trained) -> Selection:
    if not (run.config.fold or run.config.val_fraction):
        raise InputError(
            f"{run.folder} was trained without a validation split: add test images, or train with --val-fraction 0.1"
        )
    with data_of(run.folder, run.config):
        images = load_split(run.config, "train")
    return replace(images, split="validation"), split_validation(run.config, images)[1]
