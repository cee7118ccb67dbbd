"""Patches of scikit-learn's two photographs: images that are no digits, for networks that know nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt8

from cascaded.data.columns import Columns
from cascaded.data.digits import png
from cascaded.data.table import Row, Table

if TYPE_CHECKING:
    from PIL.Image import Image

NAME = "photographs"
SIDE = 28  # pixels of a patch
LARGEST = 160  # pixels of a photograph that a patch shows, at most; at least its own
CONTRAST = 25  # deviation of a patch's shades, of 255: sky and shadow show nothing
TRIES = 50  # squares that are looked at for a patch
PATCHES = {"validation": 360, "test": 720}
SEED, VERSION = 0, 1
"""The version is counted up when patches change: what was decoded before is then made again."""


class Photographs:
    """One split: validation is of the left half of both photographs, test of the right one, so that none overlap."""

    def __init__(self, split: str):
        self.split = split

    def origin(self) -> list[str]:
        """What the content depends on."""
        return [NAME, str(VERSION), *(f"{each} {version(each)}" for each in ("scikit-learn", "pillow", "numpy"))]

    def open(self, asked: Columns) -> Table:
        """Patches without labels."""
        return Table(self.rows)

    def rows(self) -> Iterator[Row]:
        """Encoded like any other image, by turns of the one photograph and of the other."""
        halves = [half(photograph, self.split) for photograph in photographs()]
        for number in range(PATCHES[self.split]):
            draws = np.random.default_rng([SEED, list(PATCHES).index(self.split), number])
            shades = patch(halves[number % len(halves)], draws)
            yield Row(number, f"row {number}", partial(png, shades), -1, -1)


@lru_cache(maxsize=1)
def photographs() -> list[Image]:
    """A temple and a flower, in shades of grey."""
    from PIL import Image
    from sklearn.datasets import load_sample_images

    return [Image.fromarray(pixels).convert("L") for pixels in load_sample_images().images]


def half(photograph: Image, split: str) -> Image:
    """The half of a photograph that a split is taken from."""
    width, height = photograph.size
    left = 0 if split == "validation" else width // 2
    return photograph.crop((left, 0, left + width // 2, height))


def patch(photograph: Image, draws: np.random.Generator) -> UInt8[np.ndarray, "side side"]:
    """A square of a drawn size at a drawn place, scaled to the size of a patch; the first of some that shows much."""
    from PIL import Image

    shades = np.zeros((SIDE, SIDE), np.uint8)
    for _ in range(TRIES):
        side = round(SIDE * (LARGEST / SIDE) ** draws.uniform())  # a patch of half the scale is as likely as of twice
        left, top = (int(draws.integers(0, whole - side, endpoint=True)) for whole in photograph.size)
        square = photograph.crop((left, top, left + side, top + side))
        shades = np.asarray(square.resize((SIDE, SIDE), Image.Resampling.BOX))
        if shades.std() >= CONTRAST:
            break
    return shades
