"""Handwritten digits of scikit-learn, and cluttered digits: a digit on a canvas among pieces of other digits.

The amount of clutter of an image is known, and so is how typical the image is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float, Int64, UInt8

from cascaded.data.split import chosen_share
from cascaded.errors import InputError

NAME = "cluttered-digits"
TEST_SHARE = 0.2  # of the digits of every class
SIDE, DIGIT = 28, 16  # pixels: the canvas, and the digit on it
PIECE = (6, 10)  # pixels: the shortest and the longest side of a piece
MOST = 4  # pieces on a canvas; all numbers from 0 to this are equally likely
STRENGTH = (0.1, 0.9)  # of the pieces of a canvas relative to the digit: few canvases are hard to read
COVERED = 0.1  # fraction of the digit's ink that a piece may cover
TRIES = 20  # positions that are tried for a piece; if none is possible, there is one piece less
CANVASES = {"train": 4, "test": 2}
"""The number of canvases per digit, on average."""
HELD = 0.1  # the default of `hold_out`
SEED = 0

Ink = Float[np.ndarray, "_ _"]  # a digit, a piece of one, or a canvas
"""From 0 to 1."""


def digits(split: str) -> Iterator[tuple[int, UInt8[np.ndarray, "8 8"], int]]:
    """Index, pixels and label of the digits of a split: a fifth of every class is the test set."""
    from sklearn.datasets import load_digits

    pixels, labels = map(np.asarray, load_digits(return_X_y=True))
    gray = (pixels * 255 / 16).round().astype("uint8").reshape(-1, 8, 8)  # from 0..16
    test = chosen_share(torch.from_numpy(labels).long(), TEST_SHARE, SEED)
    for index in (test if split == "test" else ~test).nonzero().flatten().tolist():
        yield index, gray[index], int(labels[index])


def canvases(split: str) -> Iterator[tuple[int, UInt8[np.ndarray, "28 28"], int]]:
    """Index, pixels and label of cluttered digits; all digits of a canvas are of the same split of `digits`."""
    _, labels = large_digits(split)
    for row, digit in enumerate(digit_of_row(split)):
        pixels = (canvas_of_row(split, row)[0] * 255).round().astype("uint8")
        yield row, pixels, int(labels[digit])


def clutter(split: str, rows: Int64[np.ndarray, "items"] | None = None) -> Float[np.ndarray, "items"]:
    """The amount of clutter: the fraction of an image's ink that does not belong to the digit.

    Args:
        split: `train` or `test`. Validation images keep their rows in `train`.
        rows: Which images, by row; None for all.
    """
    if split not in CANVASES:
        raise InputError(f"{NAME} has no split {split!r}: use {' or '.join(CANVASES)}")
    rows = np.arange(len(digit_of_row(split))) if rows is None else rows
    return np.array([canvas_of_row(split, row)[1] for row in rows.tolist()])


def canvas_of_row(split: str, row: int) -> tuple[Ink, float]:
    """The canvas of a row and its amount of clutter; random numbers depend on the row only."""
    generator = np.random.default_rng([SEED, list(CANVASES).index(split), row])
    return make_canvas(large_digits(split)[0], int(digit_of_row(split)[row]), generator)


@lru_cache(maxsize=2)
def digit_of_row(split: str) -> Int64[np.ndarray, "items"]:
    """The digit on each canvas.

    Training rows that `hold_out` selects by default contain digits that no other row contains: a network is not
    validated on digits that it was trained on.
    """
    labels = torch.from_numpy(large_digits(split)[1])
    rows = torch.arange(len(labels)).repeat_interleave(CANVASES[split])
    if split != "train":
        return rows.numpy()
    held_rows, held_digits = (chosen_share(each, HELD, SEED) for each in (labels[rows], labels))
    for label in labels.unique():
        for held in (True, False):
            mask = (labels[rows] == label) & (held_rows == held)
            available = ((labels == label) & (held_digits == held)).nonzero().flatten()
            rows[mask] = available.repeat(CANVASES[split] + 1)[: int(mask.sum())]
    return rows.numpy()


def make_canvas(digits: Float[np.ndarray, "n d d"], chosen: int, generator: np.random.Generator) -> tuple[Ink, float]:
    """A canvas, and the fraction of its ink that does not belong to the digit."""
    digit = place(digits[chosen], generator.integers(0, SIDE - DIGIT, 2, endpoint=True))
    canvas, strength = digit, generator.uniform(*STRENGTH)
    for _ in range(generator.integers(0, MOST, endpoint=True)):
        other = (chosen + generator.integers(1, len(digits))) % len(digits)  # any but the digit itself
        canvas = np.maximum(canvas, place_beside(digit, strength * cut_piece(digits[other], generator), generator))
    return canvas, float(1 - digit.sum() / canvas.sum())


def cut_piece(digit: Ink, generator: np.random.Generator) -> Ink:
    """A random rectangle of a digit."""
    height, width = generator.integers(*PIECE, 2, endpoint=True)
    top, left = (generator.integers(0, DIGIT - side, endpoint=True) for side in (height, width))
    return digit[top : top + height, left : left + width]


def place_beside(digit: Ink, piece: Ink, generator: np.random.Generator) -> Ink:
    """A canvas with a piece where it covers little of the digit; empty if no such position was drawn."""
    inked, (height, width) = piece > 0, piece.shape
    for _ in range(TRIES):
        top, left = (int(generator.integers(0, SIDE - side, endpoint=True)) for side in piece.shape)
        if digit[top : top + height, left : left + width][inked].sum() <= COVERED * digit.sum():
            return place(piece, (top, left))
    return np.zeros_like(digit)


def place(ink: Ink, position: Sequence[int] | Int64[np.ndarray, "2"]) -> Ink:
    """An empty canvas with ink on it; the position is that of the upper left corner."""
    (top, left), (height, width) = position, ink.shape
    canvas = np.zeros((SIDE, SIDE))
    canvas[top : top + height, left : left + width] = ink
    return canvas


@lru_cache(maxsize=2)
def large_digits(split: str) -> tuple[Float[np.ndarray, "n d d"], Int64[np.ndarray, "n"]]:
    """The digits of a split, smoothly enlarged, and their labels."""
    from PIL import Image

    _, pixels, labels = zip(*digits(split), strict=True)
    large = [Image.fromarray(each).resize((DIGIT, DIGIT), Image.Resampling.BICUBIC) for each in pixels]
    return np.stack([np.asarray(image) for image in large]) / 255, np.array(labels)
