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
    if is_pickle(file):
        raise InputError(pickle_problem(file))


def is_pickle(file: Path) -> bool:
    """Whether a file is of a format that may hold a pickle."""
    return file.suffix.lower() in PICKLES


def pickle_problem(file: Path) -> str:
    """Why a file is refused."""
    return (
        f"{file} may hold a pickle, and reading one can run any program: move it away, and give images as Parquet or "
        "as files in folders"
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
        loose = all_files(self.top, deep=not self.classes)
        inside = [(file, label) for label, name in enumerate(self.classes) for file in all_files(self.top / name)]
        listed = inside if self.classes else [(file, -1) for file in loose]
        self.files = [(file, label) for file, label in listed if is_image(file)]
        self.problems = tuple(self.wrong(loose, [*loose, *dict(inside)]))

    def wrong(self, loose: list[Path], files: list[Path]) -> Iterator[str]:
        """What is wrong with the files of this split: those beside the folders of the classes, and all."""
        if not self.files:
            yield f"{self.top} holds no images: put .png, .jpg or .webp files there, a folder a class"
        yield from (pickle_problem(file) for file in files if is_pickle(file))
        for file in filter(is_image, loose if self.classes else []):
            yield f"{file} is beside the class folders ({self.classes[0]}, ...): move it into that of its class"

    def origin(self) -> Any:
        """What the content depends on."""
        return self.classes, [stamp(file, self.root) for file, _ in self.files], *self.problems

    def open(self, asked: Columns) -> Table:
        """Folders have no columns."""
        for kind, column in (("image", asked.image), ("label", asked.label)):
            if column is not None:
                raise InputError(f"{self.root} is a folder of images, it has no column {column!r}: leave --{kind} out")
        return Table(self.rows, self.classes, total=len(self.files), problems=self.problems)

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


def all_files(root: Path, deep: bool = True) -> list[Path]:
    """The files in a folder, by name, and with `deep` in all folders below; none if there is no such folder."""
    if not root.is_dir():
        return []
    return sorted(each for each in (root.rglob("*") if deep else root.iterdir()) if each.is_file())


def is_image(file: Path) -> bool:
    """Whether a file is an image by its name; hidden files are not."""
    return file.suffix.lower() in IMAGES and not file.name.startswith(".")


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
