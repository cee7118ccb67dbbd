"""Cluttered digits: a digit somewhere on a canvas, among pieces of others, so that how typical an image is is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from importlib.metadata import version
from io import BytesIO

import numpy as np
import torch
from jaxtyping import Float, Int64

from cascaded.data.columns import Columns
from cascaded.data.digits import Digits, png
from cascaded.data.split import chosen_share
from cascaded.data.table import Row, Table
from cascaded.errors import InputError

NAME = "cluttered-digits"
SIDE, DIGIT = 28, 16  # pixels: the canvas, and the digit on it
PIECE = (6, 10)  # pixels: the shortest and the longest side of a piece
MOST = 4  # pieces on a canvas; from none to these all numbers are equally likely
STRENGTH = (0.1, 0.9)  # of all pieces of a canvas beside the digit: some canvases are hard to read and most are not
COVERED = 0.1  # share of the digit's ink that a piece may lie on
TRIES = 20  # places that are looked at for a piece; where none will do there is one piece less
CANVASES = {"train": 4, "test": 2}
"""How many canvases are made of each digit, more or less."""
HELD = 0.1  # what `hold_out` takes unless it is told otherwise
SEED, VERSION = 0, 1
"""The version is counted up when canvases change: what was decoded before is then made again."""

Shades = Float[np.ndarray, "height width"]
"""Ink, from 0 to 1."""


class ClutteredDigits:
    """One split: digits of the same split of `digits`, among pieces of others of that split."""

    def __init__(self, split: str):
        self.split = split

    def origin(self) -> list[str]:
        """What the content depends on."""
        return [NAME, str(VERSION), *(f"{each} {version(each)}" for each in ("scikit-learn", "pillow", "numpy"))]

    def open(self, asked: Columns) -> Table:
        """Classes are those of the digits; there are no columns to ask for."""
        return Table(self.rows, tuple(map(str, range(10))))

    def rows(self) -> Iterator[Row]:
        """Encoded like any other image; numbered from 0, as `clutter` numbers them."""
        _, labels = large_digits(self.split)
        for row, digit in enumerate(digit_of_row(self.split)):
            shades = (canvas_of_row(self.split, row)[0] * 255).round().astype("uint8")
            yield Row(row, f"row {row}", partial(png, shades), int(labels[digit]), -1)


def clutter(split: str, rows: Int64[np.ndarray, "items"] | None = None) -> Float[np.ndarray, "items"]:
    """How cluttered images are: the share of an image's ink that is not the digit's.

    Args:
        split: `train` or `test`. Images that were held out keep their rows in `train`.
        rows: Which images, by number; all by default.
    """
    if split not in CANVASES:
        raise InputError(f"{NAME} has no split {split!r}: say {' or '.join(CANVASES)}")
    rows = np.arange(len(digit_of_row(split))) if rows is None else rows
    return np.array([canvas_of_row(split, row)[1] for row in rows.tolist()])


def canvas_of_row(split: str, row: int) -> tuple[Shades, float]:
    """The canvas of a row, and how cluttered it is: drawn from the row alone, whatever was drawn before."""
    draws = np.random.default_rng([SEED, list(CANVASES).index(split), row])
    return cluttered(large_digits(split)[0], digit_of_row(split)[row], draws)


@lru_cache(maxsize=2)
def digit_of_row(split: str) -> Int64[np.ndarray, "items"]:
    """Which digit each canvas shows.

    Training rows that are held out by default show digits that no other row shows: a network is not to be judged by
    digits that it has learned on other canvases.
    """
    labels = torch.from_numpy(large_digits(split)[1])
    rows = torch.arange(len(labels)).repeat_interleave(CANVASES[split])
    if split != "train":
        return rows.numpy()
    held_rows, held_digits = (chosen_share(each, HELD, SEED) for each in (labels[rows], labels))
    for label in labels.unique():
        for held in (True, False):
            places = (labels[rows] == label) & (held_rows == held)
            digits = ((labels == label) & (held_digits == held)).nonzero().flatten()
            rows[places] = digits.repeat(CANVASES[split] + 1)[: int(places.sum())]
    return rows.numpy()


def cluttered(digits: Float[np.ndarray, "n d d"], chosen: int, draws: np.random.Generator) -> tuple[Shades, float]:
    """A canvas, and the share of its ink that is not the digit's."""
    digit = placed(digits[chosen], draws.integers(0, SIDE - DIGIT, 2, endpoint=True))
    canvas, strength = digit, draws.uniform(*STRENGTH)
    for _ in range(draws.integers(0, MOST, endpoint=True)):
        other = (chosen + draws.integers(1, len(digits))) % len(digits)  # any but the digit itself
        canvas = np.maximum(canvas, beside(digit, strength * piece(digits[other], draws), draws))
    return canvas, float(1 - digit.sum() / canvas.sum())


def piece(digit: Shades, draws: np.random.Generator) -> Shades:
    """A drawn rectangle of a digit."""
    height, width = draws.integers(*PIECE, 2, endpoint=True)
    top, left = draws.integers(0, DIGIT - height, endpoint=True), draws.integers(0, DIGIT - width, endpoint=True)
    return digit[top : top + height, left : left + width]


def beside(digit: Shades, shown: Shades, draws: np.random.Generator) -> Shades:
    """A canvas with a piece where it lies on little of the digit, and an empty one where no such place is found."""
    inked, (height, width) = shown > 0, shown.shape
    for _ in range(TRIES):
        top, left = (draws.integers(0, SIDE - side, endpoint=True) for side in shown.shape)
        if digit[top : top + height, left : left + width][inked].sum() <= COVERED * digit.sum():
            return placed(shown, (top, left))
    return np.zeros_like(digit)


def placed(shown: Shades, place: Sequence[int] | Int64[np.ndarray, "2"]) -> Shades:
    """An empty canvas with something on it; the place is that of its upper left corner."""
    (top, left), (height, width) = place, shown.shape
    canvas = np.zeros((SIDE, SIDE))
    canvas[top : top + height, left : left + width] = shown
    return canvas


@lru_cache(maxsize=2)
def large_digits(split: str) -> tuple[Float[np.ndarray, "n d d"], Int64[np.ndarray, "n"]]:
    """The digits of a split, smoothly enlarged, and their labels."""
    from PIL import Image

    rows = list(Digits(split).rows())
    files = [Image.open(BytesIO(row.read())) for row in rows]
    large = [np.asarray(file.resize((DIGIT, DIGIT), Image.Resampling.BICUBIC)) for file in files]
    return np.stack(large) / 255, np.array([row.label for row in rows])
