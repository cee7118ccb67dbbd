"""Data sets that need no download: digits and photographs of scikit-learn, and a sample of CIFAR-10.

The sample, `cifar10-sample`, has the first 100 images of each class of the CIFAR-10 test set (Krizhevsky, "Learning
Multiple Layers of Features from Tiny Images", 2009), in the order of that set, as lossless WebP in a Parquet file. The
first 30 images of each class are the validation split, the other 70 are the test split. Its `indices` are rows of the
original test set.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import UInt8

from cascaded.data.clutter import canvases, digits
from cascaded.data.columns import Columns, refuse_columns
from cascaded.data.table import Row, Table

if TYPE_CHECKING:
    from PIL.Image import Image

SAMPLE = Path(__file__).with_name("cifar10-sample.parquet")
SAMPLE_VALIDATION = 30
"""Validation images per class."""
CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

SIDE = 28  # pixels of a patch
LARGEST = 160  # pixels: the largest square of a photograph that becomes a patch; the smallest has the size of a patch
CONTRAST = 25  # standard deviation of the gray values of a patch, 0 to 255: sky and shadow contain nothing
TRIES = 50  # squares that are tried for a patch
PATCHES = {"validation": 360, "test": 720}
SEED = 0

Item = tuple[int, UInt8[np.ndarray, "height width"] | bytes, int]
"""Index, pixels or an encoded image, label (-1 without one)."""


@dataclass(frozen=True)
class Embedded:
    """One split of an embedded data set.

    Attributes:
        items: The items of a split.
        classes: Class names; empty without labels.
        packages: The packages that the pixels depend on.
        version: Increased when the pixels change, so that cached images are made again.
        split: Which split.
    """

    items: Callable[[str], Iterator[Item]]
    classes: tuple[str, ...] = ()
    packages: tuple[str, ...] = ("scikit-learn", "pillow", "numpy")
    version: int = 1
    split: str = "train"

    def origin(self) -> Any:
        """What the content depends on."""
        return [self.version, *(f"{package} {version(package)}" for package in self.packages)]

    def open(self, columns: Columns) -> Table:
        """Images are encoded as in any other table; there are no columns to choose."""
        refuse_columns("this data set is embedded", columns)
        return Table(self.rows, self.classes)

    def rows(self) -> Iterator[Row]:
        """One row per item."""
        for index, image, label in self.items(self.split):
            yield Row(index, f"row {index}", partial(bytes if isinstance(image, bytes) else png, image), label)


def png(pixels: np.ndarray) -> bytes:
    """Gray pixels as a PNG file."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def sample(split: str) -> Iterator[Item]:
    """The CIFAR-10 sample."""
    import pyarrow.parquet as pq

    seen = Counter[int]()
    for row in pq.read_table(SAMPLE).to_pylist():
        seen[row["label"]] += 1
        if (seen[row["label"]] <= SAMPLE_VALIDATION) == (split == "validation"):
            yield row["index"], row["img"]["bytes"], row["label"]


def patches(split: str) -> Iterator[Item]:
    """Patches of two photographs, in turn: out-of-distribution images for networks that classify digits."""
    halves = [half(photograph, split) for photograph in photographs()]
    for number in range(PATCHES[split]):
        generator = np.random.default_rng([SEED, list(PATCHES).index(split), number])
        yield number, patch(halves[number % len(halves)], generator), -1


@lru_cache(maxsize=1)
def photographs() -> list[Image]:
    """A temple and a flower, in gray."""
    from PIL import Image
    from sklearn.datasets import load_sample_images

    return [Image.fromarray(pixels).convert("L") for pixels in load_sample_images().images]


def half(photograph: Image, split: str) -> Image:
    """The half of a photograph that a split uses: left for validation, right for test, so that none overlap."""
    width, height = photograph.size
    left = 0 if split == "validation" else width // 2
    return photograph.crop((left, 0, left + width // 2, height))


def patch(photograph: Image, generator: np.random.Generator) -> UInt8[np.ndarray, "side side"]:
    """A square of random size and position, resized: the first one that has enough contrast."""
    from PIL import Image

    pixels = np.zeros((SIDE, SIDE), np.uint8)
    for _ in range(TRIES):
        side = round(SIDE * (LARGEST / SIDE) ** generator.uniform())  # sizes are uniform on a logarithmic scale
        left, top = (int(generator.integers(0, length - side, endpoint=True)) for length in photograph.size)
        square = photograph.crop((left, top, left + side, top + side))
        pixels = np.asarray(square.resize((SIDE, SIDE), Image.Resampling.BOX))
        if pixels.std() >= CONTRAST:
            break
    return pixels


_DIGITS = tuple(map(str, range(10)))

EMBEDDED: dict[str, Embedded] = {
    "digits": Embedded(digits, _DIGITS, ("scikit-learn",)),
    "cluttered-digits": Embedded(canvases, _DIGITS),
    "photographs": Embedded(patches),
    "cifar10-sample": Embedded(sample, CIFAR10, ("pillow",)),
}
