"""The data sets that have a short name: where each is, what it contains, how its images are augmented."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from cascaded.data.augment import Augment
from cascaded.data.columns import Columns
from cascaded.data.decode import Fit


@dataclass(frozen=True)
class Part:
    """Some rows of a split.

    Attributes:
        split: The split.
        rows: Which of its rows.
        take: All of them, a tenth of every class that is drawn at random, or the rest of every class.
        most: Keep so many classes, if none are given: the most numerous of those whose name contains this word.
    """

    split: str
    rows: slice = field(default_factory=lambda: slice(None))
    take: Literal["all", "tenth", "rest"] = "all"
    most: tuple[int, str] | None = None


def parts(*splits: str) -> dict[str, Part]:
    """Splits that have the same name on the hub."""
    return {split: Part(split) for split in splits}


@dataclass(frozen=True)
class Source:
    """A data set, and how to read it.

    Attributes:
        name: Its name here, a path, or OWNER/NAME on the hub.
        about: One line about it.
        hub: Its name on the Hugging Face hub; None if it is embedded or a path.
        splits: Our splits, each a part of one on the hub.
        augment: How its images are augmented.
        config: Which of several configurations under that name.
        folder: Its folder below $CASCADED_DATA; None if that has the name of the source.
        columns: Its columns, where they are not detected.
        size: Height and width that images are resized to; None keeps theirs.
        fit: How images are resized.
        classes: Classes to keep; empty keeps all.
        choose: Whether it is too large to be loaded as a whole, so that classes must be chosen.
    """

    name: str
    about: str = ""
    hub: str | None = None
    splits: Mapping[str, Part] = field(default_factory=lambda: parts("train", "test"))
    augment: Augment = field(default_factory=Augment)
    config: str | None = None
    folder: str | None = None
    columns: Columns = field(default_factory=Columns)
    size: int | None = None
    fit: Fit = "resize"
    classes: tuple[str, ...] = ()
    choose: bool = False


SVHN = Augment(pad=4, flip=False, cutout=8)  # a mirrored digit is another sign
TINY = Augment(pad=11, flip=True, cutout=0)
DIGITS = Augment(pad=1, flip=False, cutout=0)
CLUTTERED = Augment(pad=2, flip=False, cutout=0)
LARGE = Augment(pad=0, flip=True, cutout=0, area=0.08, border=16)  # of the 256 px that the shorter side is resized to

# Data that is only used as out-of-distribution data has no training set. Its validation and test images differ: halves
# of the 10,000 of LSUN; 10,000 training images of TinyImageNet, which the hub has sorted by class, and its validation
# images; all training images and the test images of SVHN.
HALVES = {"validation": Part("train", slice(0, 5000)), "test": Part("train", slice(5000, None))}
TENTH = {"validation": Part("train", slice(0, None, 10)), "test": Part("valid")}
SVHN_SPLITS = {**parts("train", "test", "extra"), "validation": Part("train")}
TINY_SPLITS = {"train": Part("train"), "test": Part("valid")}
IMAGENET_SPLITS = {"train": Part("train"), "test": Part("validation")}  # the hub's own test images have no labels
# The paper neither lists its ten terriers nor says what it tests on: the choice of the reference code.
BREEDS = (10, "terrier")
TERRIER_SPLITS = {"train": Part("train", take="rest", most=BREEDS), "test": Part("train", take="tenth", most=BREEDS)}
VALIDATION_TEST = parts("validation", "test")
TINY_HUB, IMAGENET_HUB = "zh-plus/tiny-imagenet", "ILSVRC/imagenet-1k"

_TINY = Source("", "", TINY_HUB, TENTH, folder="tinyimagenet", size=32)
_LSUN = Source("", "", "detectors/lsun_c-ood", HALVES, size=32)
_IMAGENET = Source("", "", IMAGENET_HUB, IMAGENET_SPLITS, LARGE, folder="imagenet", size=224)
_CIFAR100 = Source("cifar100", "100 classes in 20 coarse ones, 32 px, 50,000 + 10,000", "uoft-cs/cifar100", size=32)
_SAMPLE = "1,000 test images of cifar10 (Krizhevsky, 2009), 10 classes, 32 px, 300 + 700, embedded"
_PATCHES = "patches of two photographs, 28 px gray, no labels, 360 + 720, embedded"
_CLUTTERED = "digits among pieces of others, 28 px gray, 5,752 + 718, embedded"

_ALL = (
    Source("cifar10", "10 classes, 32 px, 50,000 + 10,000", "uoft-cs/cifar10", size=32),
    replace(_CIFAR100, columns=Columns(label="fine_label", coarse="coarse_label")),
    Source("tinyimagenet", "200 classes, 64 px, 100,000 + 10,000", TINY_HUB, TINY_SPLITS, TINY, size=64),
    Source("svhn", "house numbers, 32 px", "ufldl-stanford/svhn", SVHN_SPLITS, SVHN, "cropped_digits", size=32),
    replace(_LSUN, name="lsun-crop", about="random 32 px of scenes, no labels", fit="random-crop"),
    replace(_LSUN, name="lsun-resize", about="scenes resized to 32 px, no labels", hub="detectors/lsun_r-ood"),
    replace(_TINY, name="tinyimagenet-crop", about="random 32 px of tinyimagenet", fit="random-crop"),
    replace(_TINY, name="tinyimagenet-resize", about="tinyimagenet resized to 32 px"),
    replace(_IMAGENET, name="imagenet", about="1000 classes, choose some; 224 px; terms must be accepted", choose=True),
    replace(_IMAGENET, name="terriers", about="ten of its breeds; terms must be accepted", splits=TERRIER_SPLITS),
    Source("digits", "digits of scikit-learn, 8 px gray, 1,438 + 359, embedded", augment=DIGITS, size=8),
    Source("cluttered-digits", _CLUTTERED, augment=CLUTTERED, size=28),
    Source("cifar10-sample", _SAMPLE, splits=VALIDATION_TEST, size=32),
    Source("photographs", _PATCHES, splits=VALIDATION_TEST, augment=CLUTTERED, size=28),
)

SOURCES: dict[str, Source] = {source.name: source for source in _ALL}


def augmentation(name: str | Path, size: int) -> Augment:
    """The augmentation of a source; for other data that of CIFAR in the paper, in proportion to the image size."""
    known = SOURCES.get(str(name))
    if known is not None and size == (known.size or size):
        return known.augment
    usual = known.augment if known is not None else Augment()
    if usual.border and known is not None and known.size:
        return replace(usual, border=round(usual.border * size / known.size))
    return Augment(pad=size // 8, flip=usual.flip, cutout=size // 4 if usual.cutout else 0)
