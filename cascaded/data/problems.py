"""Problems of a split: the same list for `cascaded data check` and for loading, so that the two always agree."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from cascaded.data.catalogue import Source
from cascaded.data.columns import select_classes
from cascaded.data.decode import Decoded, UnreadableError
from cascaded.data.table import Row, Table
from cascaded.errors import InputError
from cascaded.progress import counted
from cascaded.shell import program

Size = tuple[int, int]  # width and height in pixels

LISTED = 5
"""Problems in the message of an error; `data check` prints all of them."""

SUGGESTED = 8, 64
"""Pixels: networks need at least 8, and above 64 training on a CPU takes hours."""


def suggested_size(sizes: Counter[Size]) -> int:
    """The `--image-size` for images of these sizes: the smallest side, so that none is enlarged, from 8 to 64."""
    lowest, highest = SUGGESTED
    return min(max(min(min(size) for size in sizes), lowest), highest)


@dataclass
class Problems:
    """What was seen while a split was read.

    Attributes:
        table: The opened split.
        size: Height and width that images are resized to; None if they must have one size already.
        wanted: The classes to keep; None keeps all.
        complete: Whether every class needs an image, as in a training set.
        suggestion: The `--image-size` to suggest; None computes it from these images.
        rows: Problems of files and rows, in their order.
        sizes: The number of images of each size.
        labels: The number of images of each class, -1 for those without a label.
    """

    table: Table
    size: int | None = None
    wanted: Sequence[int] | None = None
    complete: bool = True
    suggestion: int | None = None
    rows: list[str] = field(default_factory=list)
    sizes: Counter[Size] = field(default_factory=Counter)
    labels: Counter[int] = field(default_factory=Counter)

    def __post_init__(self):
        self.rows += self.table.problems

    @property
    def clean(self) -> bool:
        """Whether there are no problems of rows so far."""
        return not self.rows and (self.size is not None or len(self.sizes) < 2)

    def check_label(self, row: Row) -> None:
        """Note a label outside the classes."""
        for label, classes in ((row.label, self.table.classes), (row.coarse, self.table.coarse_classes)):
            if not -1 <= label < len(classes):
                count = counted(len(classes), "class")
                self.rows.append(f"{row.where} has label {label}, there are {count} (from 0 on): correct it")
                return

    def add(self, row: Row, result: Decoded | UnreadableError) -> None:
        """Note the size of an image, or that it cannot be read."""
        self.labels[row.label] += 1
        if isinstance(result, UnreadableError):
            self.rows.append(f"{row.where} cannot be read ({result}): replace or remove it")
        else:
            _, height, width = result.pixels.shape
            self.sizes[width, height] += 1

    def all(self) -> list[str]:
        """All problems: first those of the split as a whole, then those of files and rows."""
        images = self.labels.total()
        if not images:
            which = "" if self.wanted is None else " of these classes"
            return self.rows or [f"there are no images{which}: add some, or use other data"]
        whole = []
        if len(self.sizes) > 1 and self.size is None:
            size = self.suggestion or suggested_size(self.sizes)
            whole.append(
                f"images have {len(self.sizes):,} sizes, training needs one: use --image-size {size} "
                f"(image_size={size} in Python)"
            )
        if 0 < self.labels[-1] < images:
            have = "has" if self.labels[-1] == 1 else "have"
            whole.append(f"{counted(self.labels[-1], 'image')} {have} no label, the others have one: label all or none")
        if self.complete and self.labels[-1] < images:
            numbers = range(len(self.table.classes)) if self.wanted is None else self.wanted
            empty = [self.table.classes[number] for number in numbers if not self.labels[number]]
            whole += [f"class {name!r} has no images: add some, or use --classes without it" for name in empty]
        return [*whole, *self.rows]

    def raise_if_any(self, name: str, split: str) -> None:
        """Raise `InputError` with the first problems and the number of all, if there are any."""
        problems = self.all()
        if len(problems) == 1:
            raise InputError(f"{name} {split} has 1 problem: {problems[0]}")
        if problems:
            lines = [f"{name} {split} has {counted(len(problems), 'problem')}:", *problems[:LISTED]]
            if len(problems) > LISTED:
                lines.append(f"and {len(problems) - LISTED} more: {program()} data check {shlex.quote(name)}")
            raise InputError("\n  ".join(lines))


def start_problems(table: Table, source: Source, split: str) -> Problems:
    """The list of a split before it is read; with chosen classes, or in a training set, no class may be empty."""
    chosen = source.classes or table.choose_classes()
    wanted = select_classes(chosen, table.classes) if chosen else None
    return Problems(table, source.size, wanted, complete=split.casefold() == "train" or wanted is not None)


def check_classes(classes: Sequence[str], name: str) -> None:
    """Refuse to train on one class, which is always predicted: the folder of all classes was taken for one of them."""
    if len(classes) == 1:
        raise InputError(
            f"{name} has one class, {classes[0]!r}, and training needs two: give the folder that contains one folder "
            "per class"
        )
