"""Where a split of a data set is: in Parquet files, in a folder of images, in this package, or on the hub."""

from __future__ import annotations

import glob
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cascaded.data.catalogue import SOURCES, Part, Source
from cascaded.data.columns import Columns
from cascaded.data.dataset import dataset_table, library, reading
from cascaded.data.embedded import EMBEDDED, Embedded
from cascaded.data.folder import (
    Folder,
    data_folder,
    find_split,
    match_split,
    missing_split,
    pickle_problem,
    split_folders,
    stamp,
)
from cascaded.data.table import Table
from cascaded.errors import InputError, first_line

TIMEOUT = 10.0
"""Seconds until the hub counts as unreachable."""


class UnreachableError(InputError):
    """The hub does not answer; cached images can still be used."""


@dataclass(frozen=True)
class Parquet:
    """Files with the rows of one split, and those of all splits, for the names of the classes."""

    files: tuple[Path, ...]
    every: tuple[Path, ...]
    part: Part

    def origin(self) -> Any:
        """What the content depends on, as JSON: images that were cached from the same origin are current."""
        return [stamp(file, file.parent) for file in (*self.files, *self.every)], str(self.part)

    def open(self, columns: Columns) -> Table:
        """Find columns and classes, ready to read."""
        import pyarrow.parquet as pq

        what = str(self.files[0] if len(self.files) == 1 else self.files[0].parent)
        with reading(what):
            rows = {file: pq.read_metadata(file).num_rows for file in {*self.files, *self.every}}
            own, every = ([file for file in files if rows[file]] for files in (self.files, self.every))
            if not own:  # `datasets` fails on files without rows
                return Table(lambda: iter(()))
            total = sum(rows[file] for file in own)
            return dataset_table(what, [stream_parquet(own), stream_parquet(every)], columns, self.part, total)


@dataclass(frozen=True)
class Hub:
    """A data set on the Hugging Face hub, streamed: only this split is downloaded, and only what is used is stored."""

    name: str
    config: str | None
    part: Part
    fix: str

    def revision(self) -> str:
        """The current version: one short request, so that being offline is noticed at once."""
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

        try:
            return str(HfApi().dataset_info(self.name, timeout=TIMEOUT).sha)
        except (RepositoryNotFoundError, HFValidationError) as error:
            raise InputError(f"there is no data set {self.name!r} on the hub: check the name, {self.terms}") from error
        except Exception as error:  # the libraries below fail in many ways; none of them gave an answer
            reason = "offline mode" if "offline" in str(error).lower() else first_line(error)
            message = f"{self.name} is on the hub, which cannot be reached ({reason}): {self.fix}"
            raise UnreachableError(message) from error

    @property
    def terms(self) -> str:
        """How to get access to a data set that is private or gated."""
        return f"or accept its terms at https://huggingface.co/datasets/{self.name} and run hf auth login"

    def origin(self) -> Any:
        return self.name, self.config, str(self.part), self.revision()

    def open(self, columns: Columns) -> Table:
        revision = self.revision()
        try:
            splits = library().load_dataset(self.name, self.config, revision=revision, streaming=True)
        except Exception as error:
            fix = f"name a configuration as OWNER/NAME:CONFIG, {self.terms}"
            raise InputError(f"{self.name} cannot be opened ({' '.join(str(error).split())}): {fix}") from error
        own = find_split(self.name, self.part.split, splits)
        known = (splits[own].info.splits or {}).get(own)
        total = known.num_examples if known else None
        return dataset_table(self.name, [splits[own], *splits.values()], columns, self.part, total, fetch)


Location = Parquet | Hub | Folder | Embedded


def fetch(path: str) -> bytes:
    """A file of the hub that a row only names."""
    if not path.startswith("hf://"):
        raise InputError(f"{path} is not on the hub: its data set cannot be read")
    with library().utils.file_utils.xopen(path, "rb") as file:
        return file.read()


def stream_parquet(files: Iterable[Path]) -> Any:
    """The rows of Parquet files, streamed."""
    escaped = [glob.escape(str(file)) for file in files]
    with tempfile.TemporaryDirectory() as scratch:  # the library leaves lock files, even when it streams
        return library().load_dataset(
            "parquet", data_files={"train": escaped}, split="train", streaming=True, cache_dir=scratch
        )


def parquet_splits(folder: Path) -> dict[str, tuple[Path, ...]]:
    """The Parquet files of a folder by split: `train-00000-of-00001.parquet` and `train.parquet` are of train."""
    splits: dict[str, tuple[Path, ...]] = {}
    for file in sorted(folder.glob("*.parquet")):
        split = file.stem.split("-")[0]
        splits[split] = (*splits.get(split, ()), file)
    return splits


def parquet(splits: dict[str, tuple[Path, ...]], part: Part) -> Parquet:
    """A part of one of several splits in Parquet files."""
    return Parquet(splits[part.split], tuple(file for files in splits.values() for file in files), part)


def local_splits(source: Source) -> dict[str, tuple[Path, ...]]:
    """The Parquet files of a source below $CASCADED_DATA, by split."""
    root = data_folder()
    return parquet_splits(root / (source.folder or source.name)) if root else {}


def splits_of(source: Source) -> list[str]:
    """The splits that can be checked: of a path all, train first; of a named source one, train if there is one."""
    if source.name in SOURCES:
        return ["train" if "train" in source.splits else next(iter(source.splits))]
    path = Path(source.name).expanduser()
    splits = list(parquet_splits(path) or split_folders(path, "train")) if path.is_dir() else []
    return ["train", *(split for split in splits if split.casefold() != "train")]


def locate(source: Source, split: str) -> Location:
    """Where a split of a source is: a path, below $CASCADED_DATA, in this package, or else on the hub."""
    if source.name in SOURCES:
        return locate_named(source, split)
    if source.hub is None:
        return locate_path(Path(source.name).expanduser(), split)
    name, _, config = source.hub.partition(":")
    fix = f"connect, or give a path that exists ({source.name} does not exist here), or use --data digits"
    return Hub(name, config or None, Part(split), fix)


def locate_named(source: Source, split: str) -> Location:
    """A split of a source that has a name."""
    files, part = local_splits(source), source.splits.get(split)
    own = [] if part is None else [replace(part, split=match_split(part.split, files) or part.split)]
    # a file of this very name, unless it serves another split; else the part of the source's own split; else a synonym
    shared = part is not None and (part.take != "all" or is_shared(source, split, files))
    candidates = own if shared else [Part(split), *own, Part(match_split(split, files) or split)]
    for candidate in candidates:
        if candidate.split in files:
            return parquet(files, candidate)
    if part is None:
        fix = "use cascaded.data.hold_out on train" if split.startswith("val") else "use one of them"
        raise missing_split(source.name, split, dict.fromkeys([*files, *source.splits]), fix)
    if source.hub is None:
        return replace(EMBEDDED[source.name], split=split)
    there = f" (it contains {', '.join(files)})" if files else ""
    folder = f"$CASCADED_DATA/{source.folder or source.name}/{there}"
    needed = split if part.take == "all" else part.split
    fix = f"connect, or put {needed}-*.parquet into {folder}, or use --data digits"
    return Hub(source.hub, source.config, part, fix)


def is_shared(source: Source, split: str, files: Iterable[str]) -> bool:
    """Whether the file of this name serves another split, so that each must take its own part only."""
    others = {name: part for name, part in source.splits.items() if name != split and name not in files}
    return any(match_split(part.split, files) == split for part in others.values())


def locate_path(path: Path, split: str) -> Location:
    """A split of a Parquet file, of a folder of such, or of a folder of images."""
    if problem := pickle_problem(path):
        raise InputError(problem)
    if path.is_dir():
        splits = parquet_splits(path)
        if not splits:
            return Folder(path, split)
    elif path.suffix.lower() == ".parquet":
        own = path.stem.split("-")[0]
        splits = {own if match_split(own, ["train", "test", "validation"]) else "train": (path,)}
    else:
        raise InputError(f"{path} is neither a folder nor a .parquet file: give one of these")
    fix = f"use --split with one of them, or add {split}-00000.parquet to its folder"
    return parquet(splits, Part(find_split(path, split, splits, fix)))
