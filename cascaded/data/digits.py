"""The handwritten digits that come with scikit-learn: a real data set that needs no network and no files."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import partial
from importlib.metadata import version

import numpy as np
import torch

from cascaded.data.columns import Columns
from cascaded.data.split import chosen_share
from cascaded.data.table import Row, Table

TEST_SHARE, SEED = 0.2, 0
"""A fifth of every class is the test set, the same one for everybody."""


class Digits:
    """One split of the 1797 images of 8 x 8 pixels."""

    def __init__(self, split: str):
        self.split = split

    def origin(self) -> list[str]:
        """What the content depends on."""
        return ["scikit-learn", version("scikit-learn")]

    def open(self, asked: Columns) -> Table:
        """Classes are the digits; there are no columns to ask for."""
        return Table(self.rows, tuple(map(str, range(10))))

    def rows(self) -> Iterator[Row]:
        """Encoded like any other image, so that all that holds for those holds for these."""
        from sklearn.datasets import load_digits

        pixels, labels = map(np.asarray, load_digits(return_X_y=True))
        shades = (pixels * 255 / 16).round().astype("uint8").reshape(-1, 8, 8)  # from 0..16
        held = chosen_share(torch.from_numpy(labels).long(), TEST_SHARE, SEED)
        for index in (held if self.split == "test" else ~held).nonzero().flatten().tolist():
            yield Row(index, f"row {index}", partial(png, shades[index]), int(labels[index]), -1)


def png(shades: np.ndarray) -> bytes:
    """A grey image as a file."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(shades).save(file, "PNG")
    return file.getvalue()
