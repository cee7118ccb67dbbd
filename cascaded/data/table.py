"""Rows of encoded images and their labels, one after the other, wherever they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from cascaded.data.columns import Columns, found, names, numbered
from cascaded.data.decode import UnreadableError
from cascaded.errors import InputError

if TYPE_CHECKING:
    from datasets import IterableDataset


@dataclass(frozen=True)
class Row:
    """An image that is not decoded yet.

    Attributes:
        index: Its number in the source's own order.
        where: How a person finds it: a row or a file.
        read: Gives the encoded bytes, or raises `UnreadableError`.
        label: Its class, -1 without one.
        coarse: Its coarser class, -1 without one.
    """

    index: int
    where: str
    read: Callable[[], bytes]
    label: int
    coarse: int


@dataclass(frozen=True)
class Table:
    """A split, opened: what its classes are called, and its rows.

    Attributes:
        rows: Reads them from the first on.
        classes: Names; empty where there are no labels.
        coarse_classes: Names of the coarser classes, where there are such.
        total: How many rows there are, where that is known beforehand.
        problems: Problems of the files around the rows, such as an image outside the folders of the classes.
    """

    rows: Callable[[], Iterator[Row]]
    classes: tuple[str, ...] = ()
    coarse_classes: tuple[str, ...] = ()
    total: int | None = None
    problems: tuple[str, ...] = ()


def library() -> Any:
    """The package `datasets`, imported when it is needed, its own bars and messages off: ours stand in their place."""
    import datasets
    import datasets.config

    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)
    # it reports every load to a server, of local files too, and without a network waits 3 s for that
    datasets.config.HF_UPDATE_DOWNLOAD_COUNTS = False
    return datasets


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Whatever fails inside a library that reads other people's files becomes one sentence."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        told = str(error).strip().split("\n")[0] or type(error).__name__
        raise InputError(f"{what} cannot be read ({told}): it is damaged, out of reach or something else") from error


@dataclass(frozen=True)
class Stream:
    """A table over a data set of the library that is streamed, so that nothing is stored twice.

    Attributes:
        what: What it is called in messages.
        dataset: The rows.
        every: All splits: undeclared class names are taken from their rows, so that numbers agree between them.
        asked: Columns that were named.
        part: Which rows to take.
        total: How many rows there are before that.
        fetch: Reads a file that a row only names; without it such rows are unreadable, as in files from anywhere.
    """

    what: str
    dataset: IterableDataset
    every: Sequence[IterableDataset]
    asked: Columns
    part: slice = field(default_factory=lambda: slice(None))
    total: int | None = None
    fetch: Callable[[str], bytes] | None = None

    def table(self) -> Table:
        """Columns and classes found; no image is read yet."""
        datasets = library()
        with reading(self.what):
            features: Any = self.dataset.features or self.dataset._resolve_features().features
            columns = found(self.asked, features)
            # the same column may be asked for twice: coarse labels as the labels
            dataset = self.dataset.select_columns(list(dict.fromkeys(filter(None, vars(columns).values()))))
            if columns.image and isinstance(features[columns.image], datasets.Image):
                dataset = dataset.cast_column(columns.image, datasets.Image(decode=False))
            classes, coarse = (self.classes(features, column) for column in (columns.label, columns.coarse))
        total = None if self.total is None else len(range(*self.part.indices(self.total)))
        return Table(partial(self.rows, dataset, columns, classes, coarse), classes, coarse, total)

    def classes(self, features: Any, column: str | None) -> tuple[str, ...]:
        """What a column's classes are called."""
        if column is None:
            return ()
        declared = names(features[column])
        if declared is not None:
            return declared
        return numbered(row[column] for split in self.every for row in split.select_columns([column]))

    def rows(self, dataset: Any, columns: Columns, *classes: tuple[str, ...]) -> Iterator[Row]:
        """One row after the other, labels as numbers."""
        numbers = [{name: number for number, name in enumerate(names)} for names in classes]
        taken, rows, index = range(*self.part.indices(1 << 62)), iter(dataset), -1
        while True:
            with reading(self.what):
                row = next(rows, None)
            if row is None:
                return
            index += 1
            if index >= taken.stop:
                return
            if index in taken:
                label, coarse = (
                    number(row[column], known) if column else -1
                    for column, known in zip((columns.label, columns.coarse), numbers, strict=True)
                )
                yield Row(index, f"row {index}", partial(self.encoded, row[columns.image]), label, coarse)

    def encoded(self, cell: Any) -> bytes:
        """The bytes of an image in any of the ways that rows hold them."""
        held, path = (cell.get("bytes"), cell.get("path")) if isinstance(cell, dict) else (cell, None)
        if held is None and path and self.fetch is not None:
            with reading(path):
                return self.fetch(path)
        if not isinstance(held, bytes):
            raise UnreadableError("the row holds no bytes")
        return held


def number(label: Any, known: dict[str, int]) -> int:
    """A label as a number: it is one, or the name of a class, or missing."""
    if label is None:
        return -1
    return known[label] if isinstance(label, str) else int(label)
