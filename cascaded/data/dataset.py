"""A data set of the package `datasets`, from the hub or from local files, as a table of images."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import islice
from typing import Any

import torch

from cascaded.data.catalogue import Part
from cascaded.data.columns import Columns, class_names, find_columns, most_numerous, names_of_values
from cascaded.data.decode import UnreadableError
from cascaded.data.split import chosen_share
from cascaded.data.table import Row, Table
from cascaded.errors import InputError, first_line

TENTH = 0.1
"""Of every class, for `Part.take`."""


def library() -> Any:
    """The package `datasets`, imported when it is needed, without its own progress bars and messages."""
    import datasets
    import datasets.config

    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)
    # it reports every load to a server, of local files too, and without a network waits 3 s for that
    datasets.config.HF_UPDATE_DOWNLOAD_COUNTS = False
    return datasets


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn any failure of a library that reads files of others into one sentence."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        fix = "it is damaged, unreachable or another format"
        raise InputError(f"{what} cannot be read ({first_line(error)}): {fix}") from error


def dataset_table(
    what: str,
    splits: Sequence[Any],
    given: Columns,
    part: Part,
    total: int | None = None,
    fetch: Callable[[str], bytes] | None = None,
) -> Table:
    """A table over a streamed `datasets.IterableDataset`: columns and classes are found, no image is read yet.

    Args:
        what: Its name in messages.
        splits: The data set, then all its splits: undeclared class names are collected from their rows, so that
            numbers agree between splits.
        given: Columns that were given.
        part: Which rows and classes to take.
        total: The number of rows before that.
        fetch: Reads a file that a row only names; without it such rows are unreadable, as in files from anywhere.
    """
    dataset, *every = splits
    with reading(what):
        features: Any = dataset.features or dataset._resolve_features().features
        columns = find_columns(given, features)
        # the same column may be given twice: coarse labels as the labels
        dataset = dataset.select_columns(list(dict.fromkeys(filter(None, vars(columns).values()))))
        if columns.image and isinstance(features[columns.image], library().Image):
            dataset = dataset.cast_column(columns.image, library().Image(decode=False))
        classes, coarse = (_classes(features, column, every) for column in (columns.label, columns.coarse))
    labels = cache(partial(_labels, what, dataset, columns.label, classes))  # read at most once, and only if needed
    rows = partial(_rows, what, dataset, columns, (classes, coarse), part, labels, fetch)
    share = {"all": 1, "tenth": TENTH, "rest": 1 - TENTH}[part.take]
    count = None if total is None else round(share * len(range(*part.rows.indices(total))))
    choose = tuple if part.most is None else partial(_most, part.most, classes, labels)
    return Table(rows, classes, coarse, count, choose_classes=choose)


def _classes(features: Any, column: str | None, every: Sequence[Any]) -> tuple[str, ...]:
    if column is None:
        return ()
    if (declared := class_names(features[column])) is not None:
        return declared
    return names_of_values(row[column] for split in every for row in split.select_columns([column]))


def _most(most: tuple[int, str], classes: tuple[str, ...], labels: Callable[[], list[int]]) -> tuple[str, ...]:
    return most_numerous(*most, classes, labels())


def _labels(what: str, dataset: Any, column: str | None, classes: tuple[str, ...]) -> list[int]:
    """The label of every row of a split, as a number; none without labels."""
    if column is None:
        return []
    numbers = {name: number for number, name in enumerate(classes)}
    with reading(what):
        return [_number(row[column], numbers) for row in dataset.select_columns([column])]


def _rows(
    what: str,
    dataset: Any,
    columns: Columns,
    classes: Any,
    part: Part,
    read_labels: Callable[[], list[int]],
    fetch: Any,
) -> Iterator[Row]:
    """The rows of a part, labels as numbers."""
    numbers = [{name: number for number, name in enumerate(names)} for names in classes]
    tenth = None if part.take == "all" else chosen_share(torch.tensor(read_labels()), TENTH, seed=0).tolist()
    with reading(what):
        for index, row in islice(enumerate(dataset), part.rows.start, part.rows.stop, part.rows.step):
            if tenth is not None and tenth[index] != (part.take == "tenth"):
                continue
            labels = (row.get(column) for column in (columns.label, columns.coarse))
            read = partial(_encoded, row[columns.image], fetch)
            yield Row(index, f"row {index}", read, *map(_number, labels, numbers))


def _number(label: Any, known: dict[str, int]) -> int:
    """A label as a number: it is one, or the name of a class, or missing."""
    return -1 if label is None else known[label] if isinstance(label, str) else int(label)


def _encoded(cell: Any, fetch: Callable[[str], bytes] | None) -> bytes:
    """The bytes of an image, which a row contains as they are or with a path."""
    encoded, path = (cell.get("bytes"), cell.get("path")) if isinstance(cell, dict) else (cell, None)
    if encoded is None and path and fetch is not None:
        with reading(path):
            return fetch(path)
    if not isinstance(encoded, bytes):
        raise UnreadableError("the row contains no bytes")
    return encoded
