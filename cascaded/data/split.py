"""Parts of a set of images, with the same share of every class."""

from __future__ import annotations

import torch
from jaxtyping import Int64
from torch import Generator, Tensor

from cascaded.data.images import Images
from cascaded.errors import InputError
from cascaded.progress import counted


def hold_out(images: Images, share: float = 0.1, seed: int = 0) -> tuple[Images, Images]:
    """Set a share of every class aside: what is trained on and what is held out, each in its original order.

    Args:
        images: What to divide, usually a training set.
        share: Which part of each class is held out, above 0 and below 1, rounded to whole images.
        seed: Another seed draws other images.
    """
    left, held = divided(images, share, seed)
    return images.select(left), images.select(held)


def divided(images: Images, share: float = 0.1, seed: int = 0) -> tuple[Int64[Tensor, "left"], Int64[Tensor, "held"]]:
    """What `hold_out` divides as numbers of items, which need no copy of the images."""
    if not 0 < share < 1:
        raise InputError(f"share is {share}: hold out more than 0 and less than 1 of the images")
    held = chosen_share(images.labels, share, seed)
    if bool(held.all()) or not bool(held.any()):
        there, classes = int(held.sum()), counted(max(1, len(images.classes)), "class")
        raise InputError(
            f"share is {share} of {counted(len(images), 'image')} in {classes}: {there} would be held out and "
            f"{len(images) - there} left, so give a share that leaves some of both"
        )
    return (~held).nonzero().flatten(), held.nonzero().flatten()


def fold(
    labels: Int64[Tensor, "items"], number: int, folds: int, seed: int = 0
) -> tuple[Int64[Tensor, "left"], Int64[Tensor, "held"]]:
    """One of several folds as numbers of items: what is left to train on, and the fold itself.

    The folds do not overlap, hold all items together, and have the same share of every class, to an item.

    Args:
        labels: The class of every item.
        number: Which fold, from 1.
        folds: How many there are.
        seed: Another seed draws other folds.
    """
    if folds < 2 or not 1 <= number <= folds:
        raise InputError(f"fold {number} of {folds} is asked for: say 1 to the number of folds, of at least 2")
    _, labels, sizes = labels.unique(return_inverse=True, return_counts=True)
    if folds > int(sizes.max()):
        largest = counted(int(sizes.max()), "image")
        raise InputError(f"{folds} folds are asked for, the largest class has {largest}: ask for fewer")
    held = ranks(labels, Generator().manual_seed(seed)) % folds == number - 1
    return (~held).nonzero().flatten(), held.nonzero().flatten()


def limit(images: Images, items: int, seed: int = 0) -> Images:
    """A smaller set, in its original order, with as many images of one class as of another where there are enough.

    Sets of different size and the same seed are nested: 1000 images contain the 500.
    """
    return images.select(limited(images.labels, items, seed))


def limited(labels: Int64[Tensor, "items"], items: int, seed: int = 0) -> Int64[Tensor, "kept"]:
    """What `limit` keeps as numbers of items."""
    if not 1 <= items <= len(labels):
        raise InputError(f"{items} images are asked for, there are {len(labels)}: keep 1 to {len(labels)}")
    generator = Generator().manual_seed(seed)
    classes, labels = labels.unique(return_inverse=True)
    # in turns: the first of every class, then the second of every class; who goes first is drawn as well
    turn = torch.randperm(len(classes), generator=generator)[labels]
    order = (ranks(labels, generator) * len(classes) + turn).argsort()
    return order[:items].sort().values


def chosen_share(labels: Int64[Tensor, "items"], share: float, seed: int) -> Tensor:
    """A mask over items: of each class the same share, drawn at random."""
    _, labels, sizes = labels.unique(return_inverse=True, return_counts=True)
    return ranks(labels, Generator().manual_seed(seed)) < (sizes * share).round()[labels]


def ranks(labels: Int64[Tensor, "items"], generator: Generator) -> Int64[Tensor, "items"]:
    """The place of each item in a random order of its own class. Labels are 0 to n - 1, each there at least once."""
    shuffled = torch.randperm(len(labels), generator=generator)
    by_class = shuffled[labels[shuffled].argsort(stable=True)]
    sizes = labels.bincount()
    first = sizes.cumsum(0) - sizes
    places = torch.empty_like(labels)
    places[by_class] = torch.arange(len(labels)) - first.repeat_interleave(sizes)
    return places
