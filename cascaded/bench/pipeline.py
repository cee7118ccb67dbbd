"""The way of a batch to the network: what it takes beside a training step."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import torch

from cascaded.data.augment import Augment
from cascaded.data.images import Images
from cascaded.training.data import Feed
from cascaded.training.distributed import Team

ITEMS = 10_000


def batches(batch: int, size: int) -> Callable[[], None]:
    """A function that prepares the next batch as training does: drawn, cropped, mirrored, normalised, cut out."""
    generator = torch.Generator().manual_seed(0)
    items = max(ITEMS, batch)
    pixels = torch.randint(256, (items, 3, size, size), generator=generator, dtype=torch.uint8)
    labels = torch.randint(10, (items,), generator=generator)
    images = Images("made", "train", pixels, labels, tuple(map(str, range(10))), torch.arange(items))
    augment = Augment(pad=size // 8, cutout=size // 4)
    feed = Feed(images, images.indices, images.indices[:0], None, augment, 0, batch, Team(), torch.device("cpu"))
    steps = count()

    def prepare() -> None:
        feed.at(next(steps))

    return prepare
