"""A sample of CIFAR-10 test images that is part of the package, so that photographs need no download.

Source: Alex Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from cascaded.data.columns import Columns
from cascaded.data.table import Row, Table

NAME = "cifar10-sample"
FILE = Path(__file__).with_name("cifar10-sample.parquet")
VALIDATION = 30
"""Validation images per class; the other 70 are test images."""


class Cifar10Sample:
    """One split of the first 100 images of each class of the CIFAR-10 test set, in its order.

    The first 30 images of each class are the validation split, the other 70 are the test split. The images are
    lossless WebP in a Parquet file; `index` is the row in the original test set.
    """

    def __init__(self, split: str):
        self.split = split

    def origin(self) -> list[Any]:
        """What the content depends on."""
        return [NAME, FILE.stat().st_size]

    def open(self, asked: Columns) -> Table:
        """The classes are those of CIFAR-10."""
        import pyarrow.parquet as pq

        features = json.loads(pq.read_schema(FILE).metadata[b"huggingface"])["info"]["features"]
        return Table(self.rows, tuple(features["label"]["names"]))

    def rows(self) -> Iterator[Row]:
        """Rows with the index of the original test set."""
        import pyarrow.parquet as pq

        seen = Counter[int]()
        for row in pq.read_table(FILE).to_pylist():
            seen[row["label"]] += 1
            if (seen[row["label"]] <= VALIDATION) == (self.split == "validation"):
                yield Row(row["index"], f"row {row['index']}", partial(bytes, row["img"]["bytes"]), row["label"], -1)
