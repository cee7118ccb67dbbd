"""The data sets that have a short name: where each is, what it contains, how its images are augmented."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from cascaded.data.augment import Augment
from cascaded.data.columns import Columns
from cascaded.data.decode import Fit


@dataclass(frozen=True)
class Part:
    """Some rows of a split on the hub."""

    split: str
    rows: slice = field(default_factory=lambda: slice(None))


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
LARGE = Augment(pad=28, flip=True, cutout=0)  # the paper gives none: an eighth of the side, as for CIFAR

# Data that is only used as out-of-distribution data has no training set. Its validation and test images differ: halves
# of the 10,000 of LSUN; 10,000 training images of TinyImageNet, which the hub has sorted by class, and its validation
# images; all training images and the test images of SVHN.
HALVES = {"validation": Part("train", slice(0, 5000)), "test": Part("train", slice(5000, None))}
TENTH = {"validation": Part("train", slice(0, None, 10)), "test": Part("valid")}
SVHN_SPLITS = {**parts("train", "test", "extra"), "validation": Part("train")}
TINY_SPLITS = {"train": Part("train"), "test": Part("valid")}
IMAGENET_SPLITS = {"train": Part("train"), "test": Part("validation")}  # the hub's own test images have no labels
VALIDATION_TEST = parts("validation", "test")
TINY_HUB, IMAGENET_HUB = "zh-plus/tiny-imagenet", "ILSVRC/imagenet-1k"

# The paper does not list its ten terriers: these are ten of the breeds in ImageNet.
TERRIERS = (
    "n02093647 Bedlington terrier",
    "n02093754 Border terrier",
    "n02093859 Kerry blue terrier",
    "n02093991 Irish terrier",
    "n02094114 Norfolk terrier",
    "n02094258 Norwich terrier",
    "n02094433 Yorkshire terrier",
    "n02095570 Lakeland terrier",
    "n02096051 Airedale, Airedale terrier",
    "n02098286 West Highland white terrier",
)

_TINY = Source("", "", TINY_HUB, TENTH, folder="tinyimagenet", size=32)
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
    Source("lsun-crop", "scenes, cropped to 32 px, no labels", "detectors/lsun_c-ood", HALVES, size=32, fit="crop"),
    Source("lsun-resize", "scenes, resized to 32 px, no labels", "detectors/lsun_r-ood", HALVES, size=32),
    replace(_TINY, name="tinyimagenet-crop", about="the middle 32 px of tinyimagenet", fit="crop"),
    replace(_TINY, name="tinyimagenet-resize", about="tinyimagenet resized to 32 px"),
    replace(_IMAGENET, name="imagenet", about="1000 classes, choose some; 224 px; terms must be accepted", choose=True),
    replace(_IMAGENET, name="terriers", about="ten terriers of imagenet; terms must be accepted", classes=TERRIERS),
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
    return Augment(pad=size // 8, flip=usual.flip, cutout=size // 4 if usual.cutout else 0)
