"""The data sets that go by a short name: where each is, what it holds, how its images are augmented."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cascaded.data.augment import Augment
from cascaded.data.decode import Fit


@dataclass(frozen=True)
class Part:
    """Some rows of a split on the hub."""

    split: str
    rows: slice = field(default_factory=lambda: slice(None))


@dataclass(frozen=True)
class Source:
    """A data set by name.

    Attributes:
        name: What it is called here.
        about: One line about it.
        splits: Our splits, each a part of one on the hub.
        augment: How its images are augmented.
        hub: Its name on the Hugging Face hub; None if it comes with a package.
        config: Which of several parts under that name.
        folder: Its folder below $CASCADED_DATA, where it is not called like the source.
        image: The column with the images; None finds it. (Copies of one data set call it differently.)
        label: The column with labels; None finds it.
        coarse: The column with coarser labels.
        size: Height and width its images are brought to; None keeps theirs.
        fit: How they get that size.
        classes: Classes to keep; empty keeps all.
        choose: Whether it is too large to be loaded whole, so that classes must be chosen.
    """

    name: str
    about: str
    splits: Mapping[str, Part]
    augment: Augment
    hub: str | None = None
    config: str | None = None
    folder: str | None = None
    image: str | None = None
    label: str | None = None
    coarse: str | None = None
    size: int | None = None
    fit: Fit = "resize"
    classes: tuple[str, ...] = ()
    choose: bool = False


TRAIN_TEST = {"train": Part("train"), "test": Part("test")}

# What is only held against other data, never learned, has no training set. Its validation and test images differ:
# halves of the 10,000, or every other one where the hub has them sorted by class.
HALVES = {"validation": Part("train", slice(0, 5000)), "test": Part("train", slice(5000, None))}
TURNS = {"validation": Part("valid", slice(0, None, 2)), "test": Part("valid", slice(1, None, 2))}

CIFAR = Augment(pad=4, flip=True, cutout=8)
SVHN = Augment(pad=4, flip=False, cutout=8)  # a mirrored digit is another sign
TINY = Augment(pad=11, flip=True, cutout=0)
DIGITS = Augment(pad=1, flip=False, cutout=0)
CLUTTERED = Augment(pad=2, flip=False, cutout=0)
LARGE = Augment(pad=28, flip=True, cutout=0)  # the paper gives none: an eighth of the side, as for CIFAR

# The paper's ten terriers are not listed there: these are ten of the breeds in ImageNet.
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

SVHN_SPLITS = {**TRAIN_TEST, "extra": Part("extra"), "validation": Part("extra", slice(0, 10_000))}
IMAGENET_SPLITS = {"train": Part("train"), "test": Part("validation")}  # the hub's own test images have no labels
TINY_HUB = "zh-plus/tiny-imagenet"

_ALL = (
    Source("cifar10", "10 classes, 32 px, 50,000 + 10,000", TRAIN_TEST, CIFAR, "uoft-cs/cifar10", size=32),
    Source(
        "cifar100",
        "100 classes in 20 coarser ones, 32 px, 50,000 + 10,000",
        TRAIN_TEST,
        CIFAR,
        "uoft-cs/cifar100",
        label="fine_label",
        coarse="coarse_label",
        size=32,
    ),
    Source(
        "tinyimagenet",
        "200 classes, 64 px, 100,000 + 10,000",
        {"train": Part("train"), "test": Part("valid")},
        TINY,
        TINY_HUB,
        size=64,
    ),
    Source(
        "svhn", "house numbers, 10 classes, 32 px", SVHN_SPLITS, SVHN, "ufldl-stanford/svhn", "cropped_digits", size=32
    ),
    Source("lsun-crop", "scenes, 32 px cut out, no labels", HALVES, CIFAR, "detectors/lsun_c-ood", size=32, fit="crop"),
    Source("lsun-resize", "scenes, scaled to 32 px, no labels", HALVES, CIFAR, "detectors/lsun_r-ood", size=32),
    Source(
        "tinyimagenet-crop",
        "the middle 32 px of tinyimagenet",
        TURNS,
        CIFAR,
        TINY_HUB,
        folder="tinyimagenet",
        size=32,
        fit="crop",
    ),
    Source(
        "tinyimagenet-resize",
        "tinyimagenet scaled to 32 px",
        TURNS,
        CIFAR,
        TINY_HUB,
        folder="tinyimagenet",
        size=32,
    ),
    Source(
        "imagenet",
        "1000 classes, of which some are chosen, 224 px; terms must be accepted",
        IMAGENET_SPLITS,
        LARGE,
        "ILSVRC/imagenet-1k",
        size=224,
        choose=True,
    ),
    Source(
        "terriers",
        "ten terriers of imagenet, 224 px; terms must be accepted",
        IMAGENET_SPLITS,
        LARGE,
        "ILSVRC/imagenet-1k",
        folder="imagenet",
        size=224,
        classes=TERRIERS,
    ),
    Source(
        "digits", "handwritten digits of scikit-learn, 8 px grey, 1,438 + 359, embedded", TRAIN_TEST, DIGITS, size=8
    ),
    Source(
        "cluttered-digits",
        "digits among pieces of others, 28 px grey, 5,752 + 718, embedded",
        TRAIN_TEST,
        CLUTTERED,
        size=28,
    ),
    Source(
        "cifar10-sample",
        "1,000 test images of cifar10 (Krizhevsky, 2009), 10 classes, 32 px, 300 + 700, embedded",
        {"validation": Part("validation"), "test": Part("test")},
        CIFAR,
        size=32,
    ),
    Source(
        "photographs",
        "patches of two photographs, 28 px grey, no labels, 360 + 720, embedded",
        {"validation": Part("validation"), "test": Part("test")},
        CLUTTERED,
        size=28,
    ),
)

SOURCES: dict[str, Source] = {source.name: source for source in _ALL}
