"""Where data come from: Parquet files, a folder of images, or the hub. Each can say what its content depends on."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from cascaded.data.columns import Columns
from cascaded.data.folder import Folder, named, refuse_pickle, stamp
from cascaded.data.table import Stream, Table, library, reading
from cascaded.errors import InputError, MissingSplitError

TIMEOUT = 10.0
"""Seconds until the hub counts as out of reach."""


class Place(Protocol):
    """A split at some place."""

    def origin(self) -> Any:
        """What the content depends on, as JSON; a cache that was made from the same is still good."""
        ...

    def open(self, asked: Columns) -> Table:
        """Find columns and classes, ready to read."""
        ...


class UnreachableError(InputError):
    """The hub does not answer; what was decoded before can still be used."""


@dataclass(frozen=True)
class Parquet:
    """Files with the rows of one split, and beside them those of all splits, for the names of the classes."""

    files: tuple[Path, ...]
    every: tuple[Path, ...]
    part: slice = field(default_factory=lambda: slice(None))

    def origin(self) -> Any:
        return [stamp(file, file.parent) for file in (*self.files, *self.every)], str(self.part)

    def open(self, asked: Columns) -> Table:
        import pyarrow.parquet as pq

        for file in {*self.files, *self.every}:
            check_parquet(file)
        what = str(self.files[0] if len(self.files) == 1 else self.files[0].parent)
        with reading(what):
            rows = {file: pq.read_metadata(file).num_rows for file in {*self.files, *self.every}}
            own, every = ([file for file in files if rows[file]] for files in (self.files, self.every))
            if not own:  # the library stumbles over files without rows
                return Table(lambda: iter(()))
            total = sum(rows[file] for file in own)
            return Stream(what, parquet(own), [parquet(every)], asked, self.part, total).table()


@dataclass(frozen=True)
class Hub:
    """A data set on the Hugging Face hub, streamed: only this split is fetched, and only what is kept is stored."""

    name: str
    config: str | None = None
    split: str = "train"
    part: slice = field(default_factory=lambda: slice(None))
    way_out: str = "connect, or use --data digits"

    def revision(self) -> str:
        """Which version is there now: one short question, so that being offline is noticed at once."""
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

        try:
            return str(HfApi().dataset_info(self.name, timeout=TIMEOUT).sha)
        except (RepositoryNotFoundError, HFValidationError) as error:
            raise InputError(
                f"the hub shows no data set {self.name!r}: check the name, and if it is private or gated accept its "
                f"terms at https://huggingface.co/datasets/{self.name} and run hf auth login"
            ) from error
        except Exception as error:  # the libraries below fail in many ways; none of them gave an answer
            told = "offline mode" if "offline" in str(error).lower() else str(error).strip().split("\n")[0]
            raise UnreachableError(
                f"{self.name} is on the hub, which cannot be reached ({told}): {self.way_out}"
            ) from error

    def origin(self) -> Any:
        return self.name, self.config, self.split, str(self.part), self.revision()

    def open(self, asked: Columns) -> Table:
        revision, datasets = self.revision(), library()
        try:
            splits = datasets.load_dataset(self.name, self.config, revision=revision, streaming=True)
        except datasets.exceptions.DatasetNotFoundError as error:
            raise InputError(
                f"{self.name} cannot be opened on the hub: accept its terms at https://huggingface.co/datasets/"
                f"{self.name} and run hf auth login"
            ) from error
        except Exception as error:
            told = " ".join(str(error).split())
            raise InputError(f"{self.name} cannot be opened ({told}): name a part as OWNER/NAME:PART") from error
        own = named(self.split, list(splits))
        if own is None:
            raise MissingSplitError(
                f"{self.name} has no split {self.split!r}, there are {', '.join(splits)}: say one of them with --split"
            )
        known = (splits[own].info.splits or {}).get(own)
        total = known.num_examples if known else None
        return Stream(self.name, splits[own], list(splits.values()), asked, self.part, total, fetch).table()


def fetch(path: str) -> bytes:
    """A file of the hub that a row only names."""
    if not path.startswith("hf://"):
        raise InputError(f"{path} is not on the hub: its data set cannot be read")
    with library().utils.file_utils.xopen(path, "rb") as file:
        return file.read()


def parquet(files: Iterable[Path]) -> Any:
    """Rows of Parquet files, streamed."""
    import glob
    import tempfile

    listed = [glob.escape(str(file)) for file in files]
    with tempfile.TemporaryDirectory() as scratch:  # the library leaves lock files, even when it streams
        return library().load_dataset(
            "parquet", data_files={"train": listed}, split="train", streaming=True, cache_dir=scratch
        )


def check_parquet(file: Path) -> None:
    """A file that is Parquet from its first to its last four bytes, before anything else reads it."""
    try:
        with file.open("rb") as opened:
            start = opened.read(4)
            opened.seek(-min(4, file.stat().st_size), os.SEEK_END)
            end = opened.read(4)
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}): check the path") from error
    if start != b"PAR1" or end != b"PAR1":
        raise InputError(f"{file} is not Parquet, whatever its name says: it is cut short or something else")


def data_folder() -> Path | None:
    """The folder that the environment variable CASCADED_DATA names; None if it is not set or empty."""
    given = os.environ.get("CASCADED_DATA")
    if not given:
        return None
    folder = Path(given).expanduser()
    if not folder.is_dir():
        wrong = "is a file" if folder.exists() else "does not exist"
        raise InputError(f"CASCADED_DATA is {given}, which {wrong}: set it to a folder of data sets, or unset it")
    return folder


def parquet_splits(folder: Path) -> dict[str, tuple[Path, ...]]:
    """The Parquet files of a folder by split: `train-00000-of-00001.parquet` or `train.parquet` is of train."""
    splits: dict[str, tuple[Path, ...]] = {}
    for file in sorted(folder.glob("*.parquet")):
        split = file.stem.split("-")[0]
        splits[split] = (*splits.get(split, ()), file)
    return splits


def at_path(path: Path, split: str) -> Place:
    """A split of one's own data: a Parquet file, a folder of such, or a folder of images."""
    refuse_pickle(path)
    if path.is_dir():
        splits = parquet_splits(path)
        if not splits:
            return Folder(path, split)
    elif path.suffix.lower() == ".parquet":
        check_parquet(path)
        own = path.stem.split("-")[0]
        splits = {own if named(own, ["train", "test", "validation"]) else "train": (path,)}
    else:
        raise InputError(f"{path} is neither a folder nor a .parquet file: give one of these")
    own = named(split, list(splits))
    if own is None:
        raise MissingSplitError(
            f"{path} has no split {split!r}, there are {', '.join(splits)}: say one of them with --split, or add "
            f"{split}-00000.parquet to its folder"
        )
    return Parquet(splits[own], tuple(file for files in splits.values() for file in files))
