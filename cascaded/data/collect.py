"""Rows become one tensor: decoded by a few threads, in order, in little more memory than a handful of images."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np
import torch
from torch import Tensor

from cascaded.data.cache import unwritable
from cascaded.data.catalogue import Source
from cascaded.data.decode import Decoded, Fit, UnreadableError, decode
from cascaded.data.findings import Findings, findings
from cascaded.data.images import Images
from cascaded.data.table import Row, Table
from cascaded.progress import cores, progress

TOGETHER = 256
"""How many rows are in memory at a time."""


@dataclass
class Spool:
    """Pixels on their way: appended to a file that has no name, and is gone when this process is, however it ends."""

    folder: Path
    file: IO[bytes]
    shape: tuple[int, ...] | None = None
    grey: bool = True
    rows: list[tuple[int, int, int]] = field(default_factory=list)

    def add(self, row: Row, decoded: Decoded) -> None:
        """One more image."""
        self.shape = decoded.pixels.shape
        self.grey = self.grey and decoded.grey
        self.rows.append((row.index, row.label, row.coarse))
        self.file.write(decoded.pixels.tobytes())

    def pixels(self) -> Tensor:
        """All that was added; of images that are all grey one channel. Mapped, not read."""
        self.file.flush()
        mapped = np.memmap(self.file, np.uint8, "r+", shape=(len(self.rows), *(self.shape or ())))  # pyright: ignore
        pixels = torch.from_numpy(mapped)
        return pixels[:, :1].contiguous() if self.grey else pixels


def collect(table: Table, source: Source, split: str, folder: Path) -> Images:
    """Decode all rows of the wanted classes, which are numbered anew in the order in which they are wanted.

    Args:
        table: The opened split.
        source: Its name, the size of the images, how they get it, and the classes to keep.
        split: Which split it is.
        folder: A folder with room for all pixels.
    """
    found = findings(table, source.classes, split, source.size)
    with opened(folder) as spool:
        for row, decoded in read_all(table, source, found):
            if found.clean:  # otherwise reading continues, to find the other problems
                with room(folder):
                    spool.add(row, decoded)
        found.refuse(source.name, split)
        with room(folder):
            pixels = spool.pixels()
    indices, labels, coarse = torch.tensor(spool.rows).T
    wanted = list(range(len(table.classes))) if found.wanted is None else list(found.wanted)
    places = {number: place for place, number in enumerate(wanted)}
    labels = torch.tensor([places.get(label, -1) for label in labels.tolist()])
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


def read_all(table: Table, source: Source, found: Findings) -> Iterator[tuple[Row, Decoded]]:
    """Decode the rows of the wanted classes; problems are added to the findings, and such rows are left out."""
    work = partial(attempt, size=source.size, fit=source.fit)
    with ThreadPoolExecutor(cores()) as pool:
        for batch in batches(table, f"decoding {source.name}"):
            for row in batch:
                found.check_label(row)
            some = [row for row in batch if found.keeps(row)]
            for row, result in zip(some, pool.map(work, some), strict=True):
                found.add(row, result)
                if isinstance(result, Decoded):
                    yield row, result


def batches(table: Table, what: str) -> Iterator[list[Row]]:
    """All rows, some at a time, so that few are in memory; says how far it has come where it is known how far to go."""
    rows = table.rows()
    with progress(what, table.total or 0, quiet=not table.total) as told:
        while batch := list(islice(rows, TOGETHER)):
            yield batch
            told.advance(len(batch))


def attempt(row: Row, size: int | None, fit: Fit) -> Decoded | UnreadableError:
    """The pixels of a row, or why there are none."""
    try:
        return decode(row.read(), size, fit)
    except UnreadableError as error:
        return error


@contextmanager
def opened(folder: Path) -> Iterator[Spool]:
    """A place for pixels."""
    with room(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed below
    try:
        yield Spool(folder, file)
    except BaseException:
        with suppress(OSError):  # what it still has to write, there was no room for
            file.close()
        raise
    with room(folder):
        file.close()


@contextmanager
def room(folder: Path) -> Iterator[None]:
    """Writing fails where there is no room: that is the user's to put right."""
    try:
        yield
    except OSError as error:
        raise unwritable(folder, error) from error
