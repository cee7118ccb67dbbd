"""A labeled set of images as tensors: decoded once, in the order of its source."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Int64, UInt8
from torch import Tensor

from cascaded.errors import InputError

CHUNK = 2048
"""How many images are read together: images that are mapped from the disk are not all in memory at once."""


@dataclass(frozen=True)
class Images:
    """Images with their labels and their rows in the source.

    Attributes:
        name: The source: a name such as "cifar10", a path, or a name on the hub.
        split: The split.
        images: The pixels; loaded images are mapped from the cache, not read.
        labels: The class of each image; -1 for all if the source has no labels.
        classes: Class names; empty without labels.
        indices: The row of each image in the original order of the source, as published scores use it.
        coarse: The coarse class of each image, if the source has two levels.
        coarse_classes: Names of the coarse classes.
        bordered: The same images with a border around them, for random crops; None if there is none.
    """

    name: str
    split: str
    images: UInt8[Tensor, "items channels height width"]
    labels: Int64[Tensor, "items"]
    classes: tuple[str, ...]
    indices: Int64[Tensor, "items"]
    coarse: Int64[Tensor, "items"] | None = None
    coarse_classes: tuple[str, ...] = ()
    bordered: UInt8[Tensor, "items channels h w"] | None = None

    def __post_init__(self):
        coarse = self.labels if self.coarse is None else self.coarse
        if not len(self.images) == len(self.labels) == len(self.indices) == len(coarse):
            raise InputError(
                f"there are {len(self.images)} images, {len(self.labels)} labels, {len(self.indices)} indices, "
                f"{len(coarse)} coarse labels: give one of each per item"
            )

    def __len__(self) -> int:
        return len(self.images)

    def select(self, items: Int64[Tensor, "chosen"] | Bool[Tensor, "items"]) -> Images:
        """The images of the given indices, in their order, or of a mask. They are copied to memory."""
        return replace(
            self,
            images=self.images[items],
            labels=self.labels[items],
            indices=self.indices[items],
            coarse=None if self.coarse is None else self.coarse[items],
            bordered=None if self.bordered is None else self.bordered[items],
        )

    def with_border(self, border: int) -> Images:
        """The centers of these images, which themselves are `bordered`. Nothing is copied."""
        if not border:
            return self
        return replace(self, images=self.images[..., border:-border, border:-border], bordered=self.images)

    def with_channels(self, channels: int) -> Images:
        """The same images with this many channels: a gray channel is repeated, nothing is copied."""
        if self.images.shape[1] == 1:
            bordered = None if self.bordered is None else self.bordered.expand(-1, channels, -1, -1)
            return replace(self, images=self.images.expand(-1, channels, -1, -1), bordered=bordered)
        return self

    def fingerprint(self) -> str:
        """A digest of the shape, of all labels, and of about a thousand images from first to last."""
        digest = hashlib.sha256(repr(tuple(self.images.shape)).encode())
        digest.update(self.labels.numpy().tobytes())
        digest.update(self.images[:: max(1, len(self) // 1000)].numpy().tobytes())
        return digest.hexdigest()

    def statistics(self, items: Int64[Tensor, "chosen"] | None = None) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and standard deviation per channel, of values in 0..1, over all images or some.

        A pixel has one of 256 values, so counting them is exact and needs no floating-point copy of the images.
        """
        items = torch.arange(len(self)) if items is None else items
        if len(items) == 0:
            raise InputError(f"{self.name} {self.split} has no images, a mean needs one: select at least one")
        values = torch.arange(256, dtype=torch.float64) / 255
        counts = torch.zeros(self.images.shape[1], 256, dtype=torch.long)
        for chunk in items.split(CHUNK):
            pixels = self.images[chunk].transpose(0, 1).flatten(1)
            counts += torch.stack([channel.bincount(minlength=256) for channel in pixels])
        fractions = counts.double() / counts[0].sum()
        mean = (fractions * values).sum(1, keepdim=True)
        std = (fractions * (values - mean) ** 2).sum(1).sqrt()
        return tuple(mean.flatten().tolist()), tuple(std.tolist())
