"""A folder of images: `root/<split>/<class>/*.png`, `root/<class>/*.png`, or images without classes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from cascaded.data.columns import Columns
from cascaded.data.decode import UnreadableError
from cascaded.data.table import Row, Table
from cascaded.errors import InputError, MissingSplitError

IMAGES = {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"}
PICKLES = {".pkl", ".pickle", ".pt", ".pth", ".npy", ".npz", ".joblib"}
SPLITS = ("train", "validation", "valid", "val", "test")
SAME = ("validation", "valid", "val")


def refuse_pickle(file: Path) -> None:
    """Formats that may hold a pickle are never opened: reading one can run any program."""
    if file.suffix.lower() in PICKLES:
        raise InputError(
            f"{file} may hold a pickle, and reading one can run any program: move it away, and give images as Parquet "
            "or as files in folders"
        )


def named(split: str, there: list[str]) -> str | None:
    """The split that is meant among those that are there: validation has three usual names."""
    same = SAME if split in SAME else ()
    known = {name.casefold(): name for name in there}
    return next((known[name.casefold()] for name in (split, *same) if name.casefold() in known), None)


class Folder:
    """One split of a folder of images; its classes are those of all splits, so that their numbers agree."""

    def __init__(self, root: Path, split: str):
        self.root = root
        tops = divisions(root, split) or {"train": root}
        own = named(split, list(tops))
        if own is None:
            raise MissingSplitError(
                f"{root} has no split {split!r}, there are {', '.join(tops)}: say one of them with --split, or make "
                f"{root / split}"
            )
        self.top = tops[own]
        self.classes = tuple(sorted({name for top in tops.values() for name in folders(top)}))
        self.files = [(file, -1) for file in images(self.top, deep=not self.classes)]
        if self.classes and self.files:
            raise InputError(
                f"{self.files[0][0]} stands beside the folders {self.classes[0]}, ...: move it to that of its class"
            )
        for label, name in enumerate(self.classes):
            self.files += [(file, label) for file in images(self.top / name)]
        if not self.files:
            raise InputError(f"{self.top} holds no images: put .png, .jpg or .webp files there, a folder a class")

    def origin(self) -> Any:
        """What the content depends on."""
        return self.classes, [stamp(file, self.root) for file, _ in self.files]

    def open(self, asked: Columns) -> Table:
        """Folders have no columns."""
        for kind, column in (("image", asked.image), ("label", asked.label)):
            if column is not None:
                raise InputError(f"{self.root} is a folder of images, it has no column {column!r}: leave --{kind} out")
        return Table(self.rows, self.classes, total=len(self.files))

    def rows(self) -> Iterator[Row]:
        """Class by class, files by name."""
        for index, (file, label) in enumerate(self.files):
            yield Row(index, str(file), partial(read, file), label, -1)


def divisions(root: Path, split: str) -> dict[str, Path]:
    """The folders that are splits, if they are: a class may be called "train" too, but has no folders below it."""
    below = folders(root)
    fitting = {name: root / name for name in below if name.casefold() in (*SPLITS, split.casefold())}
    return fitting if len(fitting) == len(below) or any(map(folders, fitting.values())) else {}


def folders(root: Path) -> list[str]:
    """Names of the folders below, hidden ones left out."""
    return sorted(each.name for each in root.iterdir() if each.is_dir() and not each.name.startswith("."))


def images(root: Path, deep: bool = True) -> list[Path]:
    """The image files in a folder, by name, and with `deep` in all folders below."""
    if not root.is_dir():
        return []
    files = sorted(each for each in (root.rglob("*") if deep else root.iterdir()) if each.is_file())
    for file in files:
        refuse_pickle(file)
    return [each for each in files if each.suffix.lower() in IMAGES and not each.name.startswith(".")]


def stamp(file: Path, root: Path) -> tuple[str, int, int]:
    """What changes when a file does: name, size, time."""
    told = file.stat()
    return str(file.relative_to(root)), told.st_size, told.st_mtime_ns


def read(file: Path) -> bytes:
    """All of a file."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise UnreadableError(error.strerror or str(error)) from error
