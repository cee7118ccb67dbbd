"""Rows become one tensor: decoded by a few threads, in order, in little more memory than a handful of images."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
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

from cascaded.data.catalogue import Source
from cascaded.data.classes import chosen
from cascaded.data.decode import Decoded, Fit, UnreadableError, decode
from cascaded.data.images import Images
from cascaded.data.table import Row, Table
from cascaded.errors import InputError
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
        self.shape = check_shape(row, decoded, self.shape)
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
    name = source.name
    wanted = chosen(source.classes, table.classes) if source.classes else list(range(len(table.classes)))
    with opened(folder) as spool:
        for row, decoded in decoded_rows(table, wanted, source):
            with room(folder):
                spool.add(row, decoded)
        if not spool.rows:
            which = " of these classes" if source.classes else ""
            raise InputError(f"{name} {split} has no images{which}: give it some, or load something else")
        with room(folder):
            pixels = spool.pixels()
    indices, labels, coarse = torch.tensor(spool.rows).T
    places = {number: place for place, number in enumerate(wanted)}
    labels = torch.tensor([places.get(label, -1) for label in labels.tolist()])
    classes = tuple(table.classes[number] for number in wanted)
    check_all_there(name, split, labels, classes, strict=split == "train" or bool(source.classes))
    return Images(
        name=name,
        split=split,
        images=pixels,
        labels=labels,
        classes=classes if bool((labels >= 0).any()) else (),
        indices=indices.contiguous(),
        coarse=coarse.contiguous() if table.coarse_classes else None,
        coarse_classes=table.coarse_classes,
    )


def decoded_rows(table: Table, wanted: list[int], source: Source) -> Iterator[tuple[Row, Decoded]]:
    """Rows whose class is wanted, with their pixels; the others are passed over undecoded."""
    keep = set(wanted) if source.classes else {-1, *wanted}
    work = partial(attempt, size=source.size, fit=source.fit)
    with ThreadPoolExecutor(cores()) as pool:
        for batch in batches(table, f"decoding {source.name}"):
            for row in batch:
                check_label(row, table)
            some = [row for row in batch if row.label in keep]
            yield from zip(some, pool.map(work, some), strict=True)


def batches(table: Table, what: str) -> Iterator[list[Row]]:
    """All rows, some at a time, so that few are in memory; says how far it has come where it is known how far to go."""
    rows = table.rows()
    with progress(what, table.total or 0, quiet=not table.total) as told:
        while batch := list(islice(rows, TOGETHER)):
            yield batch
            told.advance(len(batch))


def attempt(row: Row, size: int | None, fit: Fit) -> Decoded:
    """The pixels of a row."""
    try:
        return decode(row.read(), size, fit)
    except UnreadableError as error:
        raise InputError(
            f"the image in {row.where} cannot be read ({error}): `cascaded data check` lists all such"
        ) from error


def check_label(row: Row, table: Table) -> None:
    """A label that stands for a class."""
    wrong = stray_label(row, table)
    if wrong is not None:
        raise InputError(f"{row.where} has {wrong}: correct it or declare its class; see `cascaded data check`")


def stray_label(row: Row, table: Table) -> str | None:
    """What is wrong with a row's labels, if anything."""
    for label, classes in ((row.label, table.classes), (row.coarse, table.coarse_classes)):
        if not -1 <= label < len(classes):
            return f"label {label}, there are {len(classes)} classes (from 0 on)"
    return None


def check_shape(row: Row, decoded: Decoded, shape: tuple[int, ...] | None) -> tuple[int, ...]:
    """Images of one size."""
    own = decoded.pixels.shape
    if shape is not None and own != shape:
        raise InputError(
            f"{row.where} is {own[2]} x {own[1]} pixels, those before it are {shape[2]} x {shape[1]}: bring all to one "
            f"size, with size={min(shape[1:])} or --size {min(shape[1:])}"
        )
    return own


def check_all_there(name: str, split: str, labels: Tensor, classes: Sequence[str], strict: bool) -> None:
    """Every image of a labelled set has a class and, where that matters, every class an image."""
    missing = int((labels < 0).sum())
    if 0 < missing < len(labels):
        at = int((labels < 0).nonzero()[0])
        raise InputError(
            f"{name} {split} has {missing} images without a label (the first is number {at}): label all or none"
        )
    counts = labels.clamp(min=0).bincount(minlength=len(classes)).tolist() if not missing else []
    empty = [called for called, count in zip(classes, counts, strict=False) if count == 0]
    if strict and empty:
        raise InputError(
            f"{name} {split} has no image of class {empty[0]!r} ({len(empty)} of {len(classes)} are empty): add "
            "some, or name the classes to keep with --classes"
        )


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
        told = error.strerror or error
        raise InputError(
            f"{folder} cannot be written ({told}): make room, or set CASCADED_CACHE to another folder"
        ) from error
