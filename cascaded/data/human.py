"""Published scores of CIFAR-10 images: C-scores of training images, human labels of test images (CIFAR-10H).

Both are files below $CASCADED_DATA in the form in which their authors publish them. They are read there, never
unpickled and never copied. `trials` and `curves` are answers of people at deadlines, which come with this package.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float64, Int, Int64

from cascaded.data.folder import data_folder
from cascaded.data.trials import curves as curves
from cascaded.data.trials import trials as trials
from cascaded.errors import InputError, first_line

CSCORES, CSCORES_AT = "cifar10-cscores-orig-order.npz", "https://pluskid.github.io/structural-regularity"
COUNTS, COUNTS_AT = "cifar10h-counts.npy", "https://github.com/jcpeterson/cifar-10h"
TRAIN, TEST, CLASSES = 50_000, 10_000, 10
AGREED = 0.5  # far above chance, far below the agreement in the right order
ORDER = "images of CIFAR-10 in their original order"


def cscores(
    indices: Int[np.ndarray, "items"], labels: Int[np.ndarray, "items"] | None = None
) -> Float64[np.ndarray, "items"]:
    """C-scores of CIFAR-10 training images: the expected accuracy of networks that were not trained on the image.

    Args:
        indices: Rows of the training set, in its original order.
        labels: Their classes, if known: compared with those in the file.
    """
    arrays = _read(CSCORES, CSCORES_AT)
    scores = _array(CSCORES, arrays, "scores", np.floating, (TRAIN,))
    if not ((scores >= 0) & (scores <= 1)).all():
        raise InputError(f"{CSCORES} contains scores outside 0..1: download it again from {CSCORES_AT}")
    _check(indices, labels, "train", TRAIN)
    if labels is not None:
        different = labels != _array(CSCORES, arrays, "labels", np.integer, (TRAIN,))[indices]
        if different.any():
            count = f"{different.sum()} of {len(labels)} labels, first that of image {indices[different][0]},"
            raise InputError(f"{count} differ from those in {CSCORES}: use the training {ORDER}")
    return scores[indices].astype(np.float64)


def human_counts(
    indices: Int[np.ndarray, "items"], labels: Int[np.ndarray, "items"] | None = None
) -> Int64[np.ndarray, "items classes"]:
    """The number of people who chose each class for CIFAR-10 test images, about fifty per image (CIFAR-10H).

    Args:
        indices: Rows of the test set, in its original order.
        labels: Their classes, if known: people agree with nearly all of them if the order is right.
    """
    counts = _array(COUNTS, _read(COUNTS, COUNTS_AT), "counts", np.integer, (TEST, CLASSES))
    if (counts < 0).any():
        raise InputError(f"{COUNTS} contains counts below 0: download it again from {COUNTS_AT}")
    _check(indices, labels, "test", TEST)
    chosen = counts[indices].astype(np.int64)
    if labels is not None and (agreed := float((chosen.argmax(axis=1) == labels).mean())) < AGREED:
        agreement = f"people in {COUNTS} agree with {agreed:.0%} of these labels, with the right ones in 99 % of images"
        raise InputError(f"{agreement}: use the test {ORDER}")
    return chosen


def _read(name: str, url: str) -> Mapping[str, np.ndarray]:
    """The arrays of a file by name; the array of a .npy file is called counts."""
    root = data_folder()
    if root is None or not (file := root / name).is_file():
        where = root or "$CASCADED_DATA, which is not set"
        raise InputError(f"there is no {name} in {where}: download it from {url} and put it there")
    try:
        with file.open("rb") as opened:
            loaded = np.load(opened, allow_pickle=False)  # unpickling can run any program
            return {"counts": loaded} if isinstance(loaded, np.ndarray) else {each: loaded[each] for each in loaded}
    except Exception as error:  # damaged archives fail in many ways: zlib.error, BadZipFile, MemoryError ...
        raise InputError(f"{file} cannot be read ({first_line(error)}): download it again from {url}") from error


def _array(
    name: str, arrays: Mapping[str, np.ndarray], key: str, kind: type[np.generic], shape: tuple[int, ...]
) -> np.ndarray:
    """One of the arrays in a file, of the published shape and type."""
    if key not in arrays:
        raise InputError(f"{name} contains {', '.join(arrays) or 'nothing'} and no {key}: use the file as published")
    values = arrays[key]
    if values.shape != shape or not np.issubdtype(values.dtype, kind):
        raise InputError(
            f"{key} in {name} have shape {values.shape} and type {values.dtype}, {shape} of {kind.__name__} are "
            "expected: use the file as published"
        )
    return values


def _check(indices: np.ndarray, labels: np.ndarray | None, split: str, total: int) -> None:
    """Check that indices are rows of a split, and that there is one label per index."""
    if indices.ndim != 1 or not np.issubdtype(indices.dtype, np.integer):
        raise InputError(f"indices have shape {indices.shape} and type {indices.dtype}: give one integer per image")
    if labels is not None and labels.shape != indices.shape:
        raise InputError(f"there are {len(indices)} indices and labels of shape {labels.shape}: give one per index")
    outside = indices[(indices < 0) | (indices >= total)]
    if len(outside):
        raise InputError(f"index {outside[0]} is not in the {total} images of cifar10 {split}: give 0 to {total - 1}")
