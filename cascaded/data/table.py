"""Rows of encoded images and their labels, from any source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """An image that is not decoded yet.

    Attributes:
        index: Its number in the original order of the source.
        where: Its row or file, for messages.
        read: Returns the encoded bytes, or raises `UnreadableError`.
        label: Its class, -1 without one.
        coarse: Its coarse class, -1 without one.
    """

    index: int
    where: str
    read: Callable[[], bytes]
    label: int = -1
    coarse: int = -1


@dataclass(frozen=True)
class Table:
    """An opened split.

    Attributes:
        rows: Iterates over the rows from the first on.
        classes: Class names; empty without labels.
        coarse_classes: Names of the coarse classes, if there are any.
        total: The number of rows, about, if it is known beforehand.
        problems: Problems of the files around the rows, such as an image outside the class folders.
        choose_classes: Names of the classes to keep, if none are given; empty keeps all. It may read all labels.
    """

    rows: Callable[[], Iterator[Row]]
    classes: tuple[str, ...] = ()
    coarse_classes: tuple[str, ...] = ()
    total: int | None = None
    problems: tuple[str, ...] = ()
    choose_classes: Callable[[], tuple[str, ...]] = tuple
