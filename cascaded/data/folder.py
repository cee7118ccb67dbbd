"""A folder of images: `root/<split>/<class>/*.png`, `root/<class>/*.png`, or images without classes.

`datasets` has a reader for folders too ("imagefolder"). It takes the innermost folder as the class and drops empty
classes, files beside the class folders and pickles without a word, so that problems would go unnoticed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from cascaded.data.columns import Columns, refuse_columns
from cascaded.data.decode import UnreadableError
from cascaded.data.table import Row, Table
from cascaded.errors import InputError, MissingSplitError

IMAGES = {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"}
PICKLES = {".pkl", ".pickle", ".pt", ".pth", ".npy", ".npz", ".joblib"}
VALIDATION = ("validation", "valid", "val")
SPLITS = ("train", "test", *VALIDATION)


def data_folder() -> Path | None:
    """The folder that the environment variable CASCADED_DATA names; None if it is not set or empty."""
    if not (given := os.environ.get("CASCADED_DATA")):
        return None
    folder = Path(given).expanduser()
    if not folder.is_dir():
        problem = "is a file" if folder.exists() else "does not exist"
        raise InputError(f"CASCADED_DATA is {given}, which {problem}: set it to a folder of data sets, or unset it")
    return folder


def pickle_problem(file: Path) -> str | None:
    """Why a file is refused that may contain a pickle: loading one can run any program."""
    if file.suffix.lower() not in PICKLES:
        return None
    return f"{file} may contain a pickle, and loading one can run any program: remove it, use Parquet or image files"


def match_split(split: str, splits: Iterable[str]) -> str | None:
    """The split of this name in any case; validation has three usual names."""
    known = {name.casefold(): name for name in splits}
    names = (split, *VALIDATION) if split in VALIDATION else (split,)
    return next((known[name.casefold()] for name in names if name.casefold() in known), None)


def find_split(name: object, split: str, splits: Iterable[str], fix: str = "use --split with one of them") -> str:
    """The split of this name; raises `MissingSplitError` if there is none."""
    own = match_split(split, splits)
    if own is None:
        raise missing_split(name, split, splits, fix)
    return own


def missing_split(name: object, split: str, splits: Iterable[str], fix: str) -> MissingSplitError:
    """The error for a split that does not exist."""
    return MissingSplitError(f"{name} has no split {split!r}, there are {', '.join(splits)}: {fix}")


class Folder:
    """One split of a folder of images. The classes are those of all splits, so that their numbers agree."""

    def __init__(self, root: Path, split: str):
        self.root = root
        splits = split_folders(root, split) or {"train": root}
        self.top = splits[find_split(root, split, splits, f"use --split with one of them, or create {root / split}")]
        self.classes = tuple(sorted({name for top in splits.values() for name in subfolders(top)}))
        loose = all_files(self.top, recursive=not self.classes)
        inside = [(file, label) for label, name in enumerate(self.classes) for file in all_files(self.top / name)]
        listed = inside if self.classes else [(file, -1) for file in loose]
        self.files = [(file, label) for file, label in listed if is_image(file)]
        self.problems = tuple(self.find_problems(loose, [*loose, *dict(inside)]))

    def find_problems(self, loose: list[Path], files: list[Path]) -> Iterator[str]:
        """Problems of the files beside the class folders, and of all files."""
        if not self.files:
            yield f"{self.top} contains no images: add .png, .jpg or .webp files, one folder per class"
        yield from filter(None, map(pickle_problem, files))
        for file in filter(is_image, loose if self.classes else []):
            yield f"{file} is beside the class folders ({self.classes[0]}, ...): move it into that of its class"

    def origin(self) -> Any:
        """What the content depends on."""
        return self.classes, [stamp(file, self.root) for file, _ in self.files], *self.problems

    def open(self, columns: Columns) -> Table:
        """The images class by class, files by name. Folders have no columns."""
        refuse_columns(f"{self.root} is a folder of images", columns)
        return Table(self.rows, self.classes, total=len(self.files), problems=self.problems)

    def rows(self) -> Iterator[Row]:
        """One row per file."""
        for index, (file, label) in enumerate(self.files):
            yield Row(index, str(file), partial(read_bytes, file), label)


def split_folders(root: Path, split: str) -> dict[str, Path]:
    """The folders that are splits, if there are any: a class may be called "train" too, but contains no folders."""
    below = subfolders(root)
    named = {name: root / name for name in below if name.casefold() in (*SPLITS, split.casefold())}
    return named if len(named) == len(below) or any(map(subfolders, named.values())) else {}


def subfolders(root: Path) -> list[str]:
    """Names of the folders in a folder, without hidden ones."""
    return sorted(each.name for each in root.iterdir() if each.is_dir() and not each.name.startswith("."))


def all_files(root: Path, recursive: bool = True) -> list[Path]:
    """The files in a folder by name, and in the folders below it; none if the folder does not exist."""
    if not root.is_dir():
        return []
    return sorted(each for each in (root.rglob("*") if recursive else root.iterdir()) if each.is_file())


def is_image(file: Path) -> bool:
    """Whether a file has the name of an image; hidden files do not count."""
    return file.suffix.lower() in IMAGES and not file.name.startswith(".")


def stamp(file: Path, root: Path) -> tuple[str, int, int]:
    """Name, size and time of a file: they change when the file does."""
    stat = file.stat()
    return str(file.relative_to(root)), stat.st_size, stat.st_mtime_ns


def read_bytes(file: Path) -> bytes:
    """The content of a file."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise UnreadableError(error.strerror or str(error)) from error
