"""Decode all rows of a split into one tensor: by a few threads, in order, with few images in memory at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from cascaded.data.catalogue import Source
from cascaded.data.decode import Decoded, Fit, UnreadableError, decode
from cascaded.data.images import Images
from cascaded.data.problems import Problems, start_problems
from cascaded.data.table import Row, Table
from cascaded.progress import cores, progress

BATCH = 256
"""How many rows are in memory at a time."""


def build(table: Table, source: Source, split: str, folder: Path) -> Images:
    """Decode all rows of the wanted classes, which get new numbers in the order in which they are wanted.

    Args:
        table: The opened split.
        source: Its name, the size of the images, how they are resized, and the classes to keep.
        split: The name of the split.
        folder: A folder with space for all pixels.
    """
    problems = start_problems(table, source, split)
    rows: list[tuple[int, int, int]] = []
    shape, gray = (0, 0, 0), True
    with tempfile.TemporaryFile(dir=folder) as file:  # without a name: it is gone when this process is
        for row, image in decode_rows(table, source, problems):
            if problems.clean:  # otherwise reading continues, to find the other problems
                rows.append((row.index, row.label, row.coarse))
                shape, gray = image.pixels.shape, gray and image.gray
                file.write(image.pixels.tobytes())
        problems.raise_if_any(source.name, split)
        file.flush()
        pixels = torch.from_numpy(np.memmap(file, np.uint8, "r+", shape=(len(rows), *shape)))  # pyright: ignore
        pixels = pixels[:, :1].contiguous() if gray else pixels
    indices, labels, coarse = torch.tensor(rows).T
    wanted = list(range(len(table.classes))) if problems.wanted is None else list(problems.wanted)
    new = {number: position for position, number in enumerate(wanted)}
    labels = torch.tensor([new.get(label, -1) for label in labels.tolist()])
    return Images(
        name=source.name,
        split=split,
        images=pixels,
        labels=labels,
        classes=tuple(table.classes[number] for number in wanted) if bool((labels >= 0).any()) else (),
        indices=indices.contiguous(),
        coarse=coarse.contiguous() if table.coarse_classes else None,
        coarse_classes=table.coarse_classes,
    )


def decode_rows(table: Table, source: Source, problems: Problems) -> Iterator[tuple[Row, Decoded]]:
    """Decode the rows of the wanted classes; rows with problems are added to the problems and left out."""
    work = partial(try_decode, size=source.size, fit=source.fit)
    rows = table.rows()
    with (
        ThreadPoolExecutor(cores()) as pool,
        progress(f"decoding {source.name}", table.total or 0, quiet=not table.total) as bar,
    ):
        while batch := list(islice(rows, BATCH)):
            for row in batch:
                problems.check_label(row)
            kept = [row for row in batch if problems.wanted is None or row.label in problems.wanted]
            for row, result in zip(kept, pool.map(work, kept), strict=True):
                problems.add(row, result)
                if isinstance(result, Decoded):
                    yield row, result
            bar.advance(len(batch))


def try_decode(row: Row, size: int | None, fit: Fit) -> Decoded | UnreadableError:
    """The pixels of a row, or why there are none."""
    try:
        return decode(row.read(), size, fit, row.index)
    except UnreadableError as error:
        return error
