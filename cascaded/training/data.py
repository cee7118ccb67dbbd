"""From data to batches: which images a step sees, and what is done to them, known from the step alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import torch
from jaxtyping import Int64
from torch import Tensor

from cascaded.data.augment import Augment, normalise
from cascaded.data.images import Images
from cascaded.data.noise import make_noise
from cascaded.data.sources import augmentation, load
from cascaded.data.split import divided, fold, limited
from cascaded.errors import InputError, MissingSplitError
from cascaded.training.config import RunConfig
from cascaded.training.distributed import Team
from cascaded.training.runs import Inputs
from cascaded.training.seeds import generator_at

EVALUATED = 512_000
"""Pixels of a batch where nothing is learned: 500 images of CIFAR, 10 of ImageNet."""


@dataclass(frozen=True)
class Feed:
    """The images of a run, on their way to the network: mapped from the disk, and taken by number.

    Every process of a team prepares the whole batch and takes its share: what is drawn for an image does not depend on
    how many processes there are.
    """

    images: Images
    train: Int64[Tensor, "items"]
    validation: Int64[Tensor, "items"]
    test: Images | None
    augment: Augment
    seed: int
    batch: int
    team: Team
    device: torch.device

    def __post_init__(self):
        if self.batch > len(self.train):
            raise InputError(
                f"batch_size is {self.batch}, there are {len(self.train)} training images: give a smaller --batch-size"
            )
        if self.batch % self.team.size:
            raise InputError(
                f"batch_size is {self.batch}, there are {self.team.size} processes: give a --batch-size they can share"
            )

    @property
    def steps_an_epoch(self) -> int:
        """Full batches in the training images; the rest waits for the next epoch's order."""
        return len(self.train) // self.batch

    @cached_property
    def statistics(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and deviation of the training images, a channel."""
        return self.images.statistics(self.train)

    @property
    def inputs(self) -> Inputs:
        """What the network takes, and what its answers mean."""
        return Inputs(tuple(self.images.images.shape[1:]), *self.statistics, self.images.classes)

    def at(self, step: int) -> tuple[Tensor, Tensor]:
        """This process's share of the images and labels of a step."""
        epoch, place = divmod(step, self.steps_an_epoch)
        order = _order(self.seed, epoch, len(self.train))
        items = self.train[order[place * self.batch : (place + 1) * self.batch]]
        images = self.images.images[items].to(self.device)
        images = self.augment(images, *self.statistics, generator_at(self.seed, "augment", step))
        return self.team.share(images), self.team.share(self.images.labels[items]).to(self.device)

    def to_fill(self, epoch: int, batches: int) -> Iterator[Tensor]:
        """Images as in training, for statistics that training did not gather."""
        for place in range(min(batches, self.steps_an_epoch)):
            yield self.at(epoch * self.steps_an_epoch + place)[0]

    def plain(self, images: Images, items: Int64[Tensor, "items"] | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Images as they are, all or some, in order, with their labels."""
        items = torch.arange(len(images)) if items is None else items
        height, width = images.images.shape[-2:]
        for some in items.split(max(1, EVALUATED // (height * width))):
            shown = images.images[some].to(self.device)
            yield normalise(shown, *self.statistics), images.labels[some].to(self.device)


@lru_cache(maxsize=2)
def _order(seed: int, epoch: int, items: int) -> Tensor:
    return torch.randperm(items, generator=generator_at(seed, "order", epoch))


def make_feed(config: RunConfig, team: Team, device: torch.device) -> Feed:
    """Load a run's images and hold some out. The split is the same for every seed."""
    images = _labelled(config)
    train, validation = _divided(config, images)
    test = _test(config, images)
    augment = _augment(augmentation(config.data, images.images.shape[-1]), config)
    feed = Feed(images, train, validation, test, augment, config.seed, config.batch_size, team, device)
    feed.at(0)  # what cannot be done to these images is said now as well
    return feed


def training_images(config: RunConfig) -> int:
    """How many images a run learns from, without those that are held out."""
    return len(_divided(config, _labelled(config))[0])


def _labelled(config: RunConfig) -> Images:
    images = load_split(config, "train")
    if not images.classes:
        raise InputError(
            f"{config.data} has no labels to learn from: name the column with --label-column, or use other data"
        )
    return images


def _divided(config: RunConfig, images: Images) -> tuple[Int64[Tensor, "left"], Int64[Tensor, "held"]]:
    """The images that a run learns from, and those that it is validated with."""
    train, validation = torch.arange(len(images)), torch.arange(0)
    if config.fold or config.val_fraction:
        train, validation = held_out(config, images)
    return (train if config.max_images is None else train[limited(images.labels[train], config.max_images)]), validation


def held_out(config: RunConfig, images: Images) -> tuple[Int64[Tensor, "left"], Int64[Tensor, "held"]]:
    """The training images that a run learns from, and those that it does not: a fold, or its config's share."""
    return fold(images.labels, *config.fold) if config.fold else divided(images, config.val_fraction)


def _test(config: RunConfig, images: Images) -> Images | None:
    """The test images, if there are any with labels. What is wrong with them is better said before the training."""
    try:
        test = load_split(config, "test")
    except MissingSplitError:
        return None
    if not test.classes:
        return None
    for what, mine, yours in (
        ("classes", test.classes, images.classes),
        ("size", tuple(test.images.shape[1:]), tuple(images.images.shape[1:])),
    ):
        if mine != yours:
            raise InputError(
                f"the {what} of {config.data} differ between test, {mine}, and train, {yours}: make them alike, or "
                "move the test images away"
            )
    return test


def load_split(config: RunConfig, split: str) -> Images:
    """A split of a run's data, as the run has it."""
    return load(
        config.data,
        split,
        image_size=config.image_size,
        image_column=config.image_column,
        label_column=config.label_column,
        classes=config.classes or None,
    )


def _augment(own: Augment, config: RunConfig) -> Augment:
    """The data set's own augmentation with the config's changes; noise takes the place of cut-out."""
    cutout = own.cutout if config.noise is None else 0
    return replace(
        own,
        pad=own.pad if config.pad is None else config.pad,
        flip=own.flip if config.flip is None else config.flip,
        cutout=cutout if config.cutout is None else config.cutout,
        noise=None if config.noise is None else make_noise(config.noise),
    )
