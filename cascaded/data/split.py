"""Stratified subsets of images: the same fraction of every class."""

from __future__ import annotations

import torch
from jaxtyping import Int64
from torch import Generator, Tensor

from cascaded.data.images import Images
from cascaded.errors import InputError
from cascaded.progress import counted


def hold_out(images: Images, share: float = 0.1, seed: int = 0) -> tuple[Images, Images]:
    """Split images into training and validation images, each in their original order.

    Args:
        images: The images, usually a training set.
        share: The fraction of each class for validation, above 0 and below 1, rounded to whole images.
        seed: Seed of the random choice.
    """
    left, held = divided(images, share, seed)
    return images.select(left), images.select(held)


def divided(
    images: Images, share: float = 0.1, seed: int = 0, name: str = "share"
) -> tuple[Int64[Tensor, "left"], Int64[Tensor, "held"]]:
    """The indices of training and validation images of `hold_out`, without a copy of the images."""
    if not 0 < share < 1:
        raise InputError(f"{name} is {share}: give a fraction above 0 and below 1")
    held = chosen_share(images.labels, share, seed)
    if bool(held.all()) or not bool(held.any()):
        there, classes = int(held.sum()), counted(max(1, len(images.classes)), "class")
        largest = int(images.labels.unique(return_counts=True)[1].max())
        fix = f"give one that leaves some for both, e.g. {1 / largest:.2g}" if largest > 1 else "add images"
        raise InputError(
            f"{name} is {share} of {counted(len(images), 'image')} in {classes}: it leaves {there} for validation and "
            f"{len(images) - there} for training, so {fix}"
        )
    return (~held).nonzero().flatten(), held.nonzero().flatten()


def fold(
    labels: Int64[Tensor, "items"], number: int, folds: int, seed: int = 0
) -> tuple[Int64[Tensor, "left"], Int64[Tensor, "held"]]:
    """Indices of one of several folds: the training images, and the fold itself.

    The folds do not overlap, contain all items together, and differ by at most one item per class.

    Args:
        labels: The class of every item.
        number: Which fold, from 1.
        folds: How many there are.
        seed: Seed of the random choice.
    """
    if folds < 2 or not 1 <= number <= folds:
        raise InputError(f"the fold is {number} of {folds}: give at least 2 folds, and a fold from 1 to their number")
    _, labels, sizes = labels.unique(return_inverse=True, return_counts=True)
    if folds > int(sizes.max()):
        largest = counted(int(sizes.max()), "image")
        raise InputError(f"there are {folds} folds, the largest class has {largest}: use fewer folds")
    held = ranks(labels, Generator().manual_seed(seed)) % folds == number - 1
    return (~held).nonzero().flatten(), held.nonzero().flatten()


def limit(images: Images, items: int, seed: int = 0) -> Images:
    """A subset in the original order, with equally many images per class where there are enough.

    Subsets with the same seed are nested: the 1000 images contain the 500.
    """
    return images.select(limited(images.labels, items, seed))


def limited(labels: Int64[Tensor, "items"], items: int, seed: int = 0) -> Int64[Tensor, "kept"]:
    """The indices of `limit`."""
    if not 1 <= items <= len(labels):
        raise InputError(f"the number of images is {items}, there are {len(labels)}: give 1 to {len(labels)}")
    generator = Generator().manual_seed(seed)
    classes, labels = labels.unique(return_inverse=True)
    # in turn: the first of every class, then the second; the order of the classes is random too
    turn = torch.randperm(len(classes), generator=generator)[labels]
    order = (ranks(labels, generator) * len(classes) + turn).argsort()
    return order[:items].sort().values


def chosen_share(labels: Int64[Tensor, "items"], share: float, seed: int) -> Tensor:
    """A mask over items: a random choice of the same fraction of each class."""
    _, labels, sizes = labels.unique(return_inverse=True, return_counts=True)
    return ranks(labels, Generator().manual_seed(seed)) < (sizes * share).round()[labels]


def ranks(labels: Int64[Tensor, "items"], generator: Generator) -> Int64[Tensor, "items"]:
    """The position of each item in a random order of its class. Labels are 0 to n - 1, each at least once."""
    shuffled = torch.randperm(len(labels), generator=generator)
    by_class = shuffled[labels[shuffled].argsort(stable=True)]
    sizes = labels.bincount()
    first = sizes.cumsum(0) - sizes
    places = torch.empty_like(labels)
    places[by_class] = torch.arange(len(labels)) - first.repeat_interleave(sizes)
    return places
