"""What others have found out about the images of CIFAR-10: how people label them, and how regular they are.

Both are files below $CASCADED_DATA, in the form in which their authors publish them. They are read where they are,
never unpickled and never copied.
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
AGREED = 0.5  # by far more than by chance, by far less than where the order is right


def cscores(
    indices: Int[np.ndarray, "items"], labels: Int[np.ndarray, "items"] | None = None
) -> Float64[np.ndarray, "items"]:
    """C-scores of CIFAR-10 training images: how likely a network is right about an image it was not trained on.

    Args:
        indices: Rows of the training set, in its original order.
        labels: Their classes, if known: held against those that come with the scores.
    """
    found = _read(CSCORES, CSCORES_AT)
    scores = _checked(CSCORES, found, "scores", np.floating, (TRAIN,))
    if not ((scores >= 0) & (scores <= 1)).all():
        raise InputError(f"{CSCORES} holds scores outside 0..1: it is damaged, fetch it again from {CSCORES_AT}")
    rows = _rows(indices, TRAIN, "training")
    if labels is not None:
        theirs = _checked(CSCORES, found, "labels", np.integer, (TRAIN,))[rows]
        _check_labels(rows, labels, theirs)
    return scores[rows].astype(np.float64)


def human_counts(
    indices: Int[np.ndarray, "items"], labels: Int[np.ndarray, "items"] | None = None
) -> Int64[np.ndarray, "items classes"]:
    """How many people chose each class for CIFAR-10 test images, of about fifty an image (CIFAR-10H).

    Args:
        indices: Rows of the test set, in its original order.
        labels: The class of each, if known: people agree with nearly all, unless the order is another one.
    """
    counts = _checked(COUNTS, _read(COUNTS, COUNTS_AT), "counts", np.integer, (TEST, CLASSES))
    if (counts < 0).any():
        raise InputError(f"{COUNTS} holds counts below 0: it is damaged, fetch it again from {COUNTS_AT}")
    chosen = counts[_rows(indices, TEST, "test")].astype(np.int64)
    if labels is not None and (agreed := float((chosen.argmax(axis=1) == labels).mean())) < AGREED:
        raise InputError(
            f"people in {COUNTS} agree with {agreed:.0%} of the labels here, with the test set's own they agree with "
            "99 %: give the test images of CIFAR-10 in their original order"
        )
    return chosen


def _read(name: str, published: str) -> Mapping[str, np.ndarray]:
    """The arrays of a file by name; the one of a .npy file is called counts."""
    root = data_folder()
    if root is None or not (file := root / name).is_file():
        where = root or "$CASCADED_DATA, which is not set"
        raise InputError(f"there is no {name} in {where}: fetch it from {published} and put it there")
    try:
        with file.open("rb") as opened:
            loaded = np.load(opened, allow_pickle=False)  # a pickle runs whatever its author likes
            return {"counts": loaded} if isinstance(loaded, np.ndarray) else {each: loaded[each] for each in loaded}
    except Exception as error:  # damaged archives fail in many ways: zlib.error, BadZipFile, MemoryError ...
        told = str(error).split("\n")[0]
        raise InputError(f"{file} cannot be read ({told}): fetch it again from {published}") from error


def _checked(
    name: str, found: Mapping[str, np.ndarray], array: str, kind: type[np.generic], shape: tuple[int, ...]
) -> np.ndarray:
    if array not in found:
        raise InputError(f"{name} holds {', '.join(found) or 'nothing'} and no {array}: give the file as published")
    values = found[array]
    if values.shape != shape or not np.issubdtype(values.dtype, kind):
        raise InputError(
            f"{array} in {name} have shape {values.shape} and type {values.dtype}, {shape} of {kind.__name__} are "
            "expected: give the file as published"
        )
    return values


def _rows(indices: Int[np.ndarray, "items"], there: int, split: str) -> Int64[np.ndarray, "items"]:
    rows = np.asarray(indices)
    if rows.ndim != 1 or not np.issubdtype(rows.dtype, np.integer):
        raise InputError(f"indices have shape {rows.shape} and type {rows.dtype}: give whole numbers, one an image")
    outside = rows[(rows < 0) | (rows >= there)]
    if len(outside):
        raise InputError(
            f"image {outside[0]} is asked for, the judgements are of CIFAR-10's {there} {split} images: give rows 0 to "
            f"{there - 1} of cifar10 {'train' if split == 'training' else split}"
        )
    return rows.astype(np.int64)


def _check_labels(
    rows: Int64[np.ndarray, "items"], ours: Int[np.ndarray, "items"], theirs: Int[np.ndarray, "items"]
) -> None:
    if ours.shape != rows.shape:
        raise InputError(f"there are {len(rows)} indices and labels of shape {ours.shape}: give one label an index")
    different = np.flatnonzero(ours != theirs)
    if len(different):
        first = different[0]
        raise InputError(
            f"image {rows[first]} has label {ours[first]} here and {theirs[first]} in {CSCORES}, {len(different)} of "
            f"{len(rows)} differ: give the training images of CIFAR-10 in their original order"
        )
