"""Published scores of CIFAR-10 images: C-scores of training images, human labels of test images (CIFAR-10H).

Both are files below $CASCADED_DATA in the form in which their authors publish them. They are read there, never
unpickled and never copied.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float64, Int, Int64

from cascaded.data.open import data_folder
from cascaded.errors import InputError

CSCORES, CSCORES_AT = "cifar10-cscores-orig-order.npz", "https://pluskid.github.io/structural-regularity"
COUNTS, COUNTS_AT = "cifar10h-counts.npy", "https://github.com/jcpeterson/cifar-10h"
TRAIN, TEST, CLASSES = 50_000, 10_000, 10
AGREED = 0.5  # far above chance, far below the agreement in the right order


def cscores(
    indices: Int[np.ndarray, "items"], labels: Int[np.ndarray, "items"] | None = None
) -> Float64[np.ndarray, "items"]:
    """C-scores of CIFAR-10 training images: the expected accuracy of networks that were not trained on the image.

    Args:
        indices: Rows of the training set, in its original order.
        labels: Their classes, if known: compared with those in the file.
    """
    arrays = _read(CSCORES, CSCORES_AT)
    scores = _checked(CSCORES, arrays, "scores", np.floating, (TRAIN,))
    if not ((scores >= 0) & (scores <= 1)).all():
        raise InputError(f"{CSCORES} contains scores outside 0..1: download it again from {CSCORES_AT}")
    rows = _rows(indices, TRAIN, "train")
    if labels is not None:
        _check_labels(rows, labels, _checked(CSCORES, arrays, "labels", np.integer, (TRAIN,))[rows])
    return scores[rows].astype(np.float64)


def human_counts(
    indices: Int[np.ndarray, "items"], labels: Int[np.ndarray, "items"] | None = None
) -> Int64[np.ndarray, "items classes"]:
    """The number of people who chose each class for CIFAR-10 test images, about fifty per image (CIFAR-10H).

    Args:
        indices: Rows of the test set, in its original order.
        labels: Their classes, if known: people agree with nearly all of them if the order is right.
    """
    counts = _checked(COUNTS, _read(COUNTS, COUNTS_AT), "counts", np.integer, (TEST, CLASSES))
    if (counts < 0).any():
        raise InputError(f"{COUNTS} contains counts below 0: download it again from {COUNTS_AT}")
    chosen = counts[_rows(indices, TEST, "test")].astype(np.int64)
    if labels is not None and (agreed := float((chosen.argmax(axis=1) == labels).mean())) < AGREED:
        raise InputError(
            f"people in {COUNTS} agree with {agreed:.0%} of these labels, with the right ones in 99 % of images: "
            "use the test images of CIFAR-10 in their original order"
        )
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
        reason = str(error).split("\n")[0]
        raise InputError(f"{file} cannot be read ({reason}): download it again from {url}") from error


def _checked(
    name: str, arrays: Mapping[str, np.ndarray], key: str, kind: type[np.generic], shape: tuple[int, ...]
) -> np.ndarray:
    if key not in arrays:
        raise InputError(f"{name} contains {', '.join(arrays) or 'nothing'} and no {key}: use the file as published")
    values = arrays[key]
    if values.shape != shape or not np.issubdtype(values.dtype, kind):
        raise InputError(
            f"{key} in {name} have shape {values.shape} and type {values.dtype}, {shape} of {kind.__name__} are "
            "expected: use the file as published"
        )
    return values


def _rows(indices: Int[np.ndarray, "items"], total: int, split: str) -> Int64[np.ndarray, "items"]:
    rows = np.asarray(indices)
    if rows.ndim != 1 or not np.issubdtype(rows.dtype, np.integer):
        raise InputError(f"indices have shape {rows.shape} and type {rows.dtype}: give one integer per image")
    outside = rows[(rows < 0) | (rows >= total)]
    if len(outside):
        raise InputError(f"index {outside[0]} is not in the {total} images of cifar10 {split}: give 0 to {total - 1}")
    return rows.astype(np.int64)


def _check_labels(
    rows: Int64[np.ndarray, "items"], ours: Int[np.ndarray, "items"], theirs: Int[np.ndarray, "items"]
) -> None:
    if ours.shape != rows.shape:
        raise InputError(f"there are {len(rows)} indices and labels of shape {ours.shape}: give one label per index")
    different = np.flatnonzero(ours != theirs)
    if len(different):
        first = different[0]
        raise InputError(
            f"image {rows[first]} has label {ours[first]} here and {theirs[first]} in {CSCORES}, {len(different)} of "
            f"{len(rows)} differ: use the training images of CIFAR-10 in their original order"
        )
