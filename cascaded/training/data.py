"""From data to batches. Which images a step has and how they are augmented depends on the seed and the step only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

import torch
from jaxtyping import Int64
from torch import Tensor

from cascaded.data.augment import Augment, normalize
from cascaded.data.images import Images
from cascaded.data.noise import make_noise
from cascaded.data.problems import check_classes
from cascaded.data.sources import SOURCES, augmentation, hub_name, load
from cascaded.data.split import divided, fold, limited
from cascaded.errors import InputError, MissingSplitError
from cascaded.training.config import RunConfig
from cascaded.training.distributed import Distributed
from cascaded.training.runs import Inputs
from cascaded.training.seeds import generator_at

EVAL_PIXELS = 512_000
"""Pixels of an evaluation batch: 500 images of CIFAR, 10 of ImageNet."""


@dataclass(frozen=True)
class Batches:
    """The images of a run as batches; they are mapped from the disk and taken by index.

    Every process prepares the whole batch and takes its share, so that the augmentation of an image does not depend on
    the number of processes.

    Attributes:
        images: The training images, those for validation included.
        train: Indices of the images to train on.
        validation: Indices of the images for validation.
        test: Test images, if there are any.
        augment: Augmentation.
        seed: Of the order and of augmentation.
        batch_size: Images per step, over all processes.
        processes: The processes that train the network.
        device: Where batches are put.
    """

    images: Images
    train: Int64[Tensor, "items"]
    validation: Int64[Tensor, "validation"]
    test: Images | None
    augment: Augment
    seed: int
    batch_size: int
    processes: Distributed
    device: torch.device

    def __post_init__(self):
        if self.batch_size > len(self.train):
            raise InputError(
                f"batch_size is {self.batch_size}, there are {len(self.train)} training images: give a smaller "
                "--batch-size"
            )
        if self.batch_size % self.processes.size:
            raise InputError(
                f"batch_size is {self.batch_size}, there are {self.processes.size} processes: give a multiple of that"
            )

    @property
    def steps_per_epoch(self) -> int:
        """Full batches in the training images; the remaining images may be in the next epoch's batches."""
        return len(self.train) // self.batch_size

    @cached_property
    def statistics(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and standard deviation per channel of the training images."""
        return self.images.statistics(self.train)

    @property
    def inputs(self) -> Inputs:
        """What the network expects, and what its outputs mean."""
        return Inputs(tuple(self.images.images.shape[1:]), *self.statistics, self.images.classes)

    def at(self, step: int) -> tuple[Tensor, Tensor]:
        """This process's share of the images and labels of a step."""
        epoch, place = divmod(step, self.steps_per_epoch)
        order = _order(self.seed, epoch, len(self.train))
        items = self.train[order[place * self.batch_size : (place + 1) * self.batch_size]]
        stored = self.images.images if self.images.bordered is None else self.images.bordered
        images = stored[items].to(self.device)
        images = self.augment(images, *self.statistics, generator_at(self.seed, "augment", step))
        share = self.processes.share
        return share(images), share(self.images.labels[items]).to(self.device)

    def statistics_batches(self, epoch: int, batches: int) -> Iterator[Tensor]:
        """Augmented images of an epoch, to compute norm statistics from."""
        for place in range(min(batches, self.steps_per_epoch)):
            yield self.at(epoch * self.steps_per_epoch + place)[0]

    def eval_batches(
        self, images: Images, items: Int64[Tensor, "items"] | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Images without augmentation, all or some, in order, with their labels."""
        items = torch.arange(len(images)) if items is None else items
        height, width = images.images.shape[-2:]
        for some in items.split(max(1, EVAL_PIXELS // (height * width))):
            batch = normalize(images.images[some].to(self.device), *self.statistics)
            yield batch, images.labels[some].to(self.device)


@lru_cache(maxsize=2)
def _order(seed: int, epoch: int, items: int) -> Tensor:
    return torch.randperm(items, generator=generator_at(seed, "order", epoch))


def load_batches(config: RunConfig, processes: Distributed, device: torch.device) -> Batches:
    """Load the images of a run. The validation split is the same for every seed."""
    images = _load_labeled(config)
    train, validation = _split(config, images)
    test = _load_test(config, images)
    augment = _augment(augmentation(config.data, images.images.shape[-1]), config)
    batches = Batches(images, train, validation, test, augment, config.seed, config.batch_size, processes, device)
    batches.at(0)  # an augmentation that is impossible for these images raises an error now
    return batches


def training_images(config: RunConfig) -> int:
    """How many images a run is trained on, without those for validation."""
    return len(_split(config, _load_labeled(config))[0])


def load_split(config: RunConfig, split: str) -> Images:
    """A split of a run's data, with the run's image size, columns and classes."""
    return load(
        config.data,
        split,
        image_size=config.image_size,
        image_column=config.image_column,
        label_column=config.label_column,
        classes=config.classes or None,
    )


@contextmanager
def data_of(run: Path, config: RunConfig) -> Iterator[None]:
    """While the data of an existing run is loaded: if its path leads nowhere from here, the error says from where."""
    try:
        yield
    except MissingSplitError:
        raise
    except InputError as error:
        path = Path(config.data).expanduser()
        if config.data in SOURCES or path.is_absolute() or path.exists():
            raise
        way = f"run this command from the folder in which {run} was trained"
        if _may_be_on_hub(config.data):
            raise InputError(f"{error}; if it is a path, {way}") from error
        raise InputError(f"{run} was trained on {config.data}, a path that does not exist from here: {way}") from error


def _may_be_on_hub(name: str) -> bool:
    try:
        return hub_name(name) is not None
    except InputError:
        return False


def split_validation(config: RunConfig, images: Images) -> tuple[Int64[Tensor, "train"], Int64[Tensor, "validation"]]:
    """Indices of the training images to train on, and of those for validation: a fold, or the configured fraction."""
    if config.fold:
        return fold(images.labels, *config.fold)
    return divided(images, config.val_fraction, name="--val-fraction")


def _split(config: RunConfig, images: Images) -> tuple[Int64[Tensor, "train"], Int64[Tensor, "validation"]]:
    train, validation = torch.arange(len(images)), torch.arange(0)
    if config.fold or config.val_fraction:
        train, validation = split_validation(config, images)
    if config.max_images is not None:
        train = train[limited(images.labels[train], config.max_images)]
    return train, validation


def _load_labeled(config: RunConfig) -> Images:
    images = load_split(config, "train")
    if not images.classes:
        raise InputError(f"{config.data} has no labels: name their column with --label-column, or use other data")
    check_classes(images.classes, config.data)
    return images


def _load_test(config: RunConfig, images: Images) -> Images | None:
    """The test images, if there are any with labels; checked before the training starts."""
    try:
        test = load_split(config, "test")
    except MissingSplitError:
        return None
    if not test.classes:
        return None
    for what, mine, theirs in (
        ("classes", test.classes, images.classes),
        ("size", tuple(test.images.shape[1:]), tuple(images.images.shape[1:])),
    ):
        if mine != theirs:
            raise InputError(
                f"the {what} of {config.data} differ between test, {mine}, and train, {theirs}: make them equal, or "
                "move the test images away"
            )
    return test


def _augment(own: Augment, config: RunConfig) -> Augment:
    """The data set's own augmentation with the configured changes; noise replaces cut-out."""
    noise = {} if config.noise is None else {"cutout": 0, "noise": make_noise(config.noise)}
    given = {name: getattr(config, name) for name in ("pad", "flip", "cutout")}
    return replace(own, **noise | {name: value for name, value in given.items() if value is not None})
