"""Images by name: look at this machine first, then on the hub; decode once, then map what was decoded."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from filelock import FileLock

from cascaded.data.augment import Augment
from cascaded.data.cache import cache_file, cache_folder, fetch, latest, store
from cascaded.data.catalogue import SOURCES, Part, Source
from cascaded.data.clutter import ClutteredDigits
from cascaded.data.collect import collect, room
from cascaded.data.columns import Columns
from cascaded.data.digits import Digits
from cascaded.data.folder import divisions, named
from cascaded.data.images import Images
from cascaded.data.patches import Photographs
from cascaded.data.places import Hub, Parquet, Place, UnreachableError, at_path, data_folder, parquet_splits
from cascaded.data.sample import Cifar10Sample
from cascaded.errors import InputError, MissingSplitError
from cascaded.shell import program

__all__ = ["SOURCES", "Source", "augmentation", "load"]

EMBEDDED: dict[str, Callable[[str], Place]] = {
    "digits": Digits,
    "cluttered-digits": ClutteredDigits,
    "photographs": Photographs,
    "cifar10-sample": Cifar10Sample,
}
"""What comes with a package and needs no files."""


def load(
    name_or_path: str | Path,
    split: str = "train",
    *,
    size: int | None = None,
    channels: int | None = None,
    image: str | None = None,
    label: str | None = None,
    classes: Sequence[str] | None = None,
    cache: Path | None = None,
) -> Images:
    """Images and labels, decoded the first time and mapped from the cache after that.

    Args:
        name_or_path: A name such as "cifar10" (`cascaded data list` shows all), a Parquet file, a folder of Parquet
            files or of images, or the OWNER/NAME of a data set on the Hugging Face hub.
        split: Which part of it.
        size: Height and width to bring all images to; None takes the source's own.
        channels: 3 repeats the one channel of grey images; None keeps the channels that the images have.
        image: The column with the images, where it cannot be found.
        label: The column with the labels, where it cannot be found.
        classes: Only these, numbered in this order; None takes all.
        cache: Where decoded images are kept; None takes $CASCADED_CACHE or ~/.cache/cascaded.
    """
    name = str(name_or_path)
    source = described(name, size, image, label, classes)
    place = placed(source, split)
    request = {
        "name": name if name in SOURCES or isinstance(place, Hub) else str(Path(name).expanduser().resolve()),
        "split": split,
        "size": source.size,
        "fit": source.fit,
        "columns": [source.image, source.label, source.coarse],
        "classes": list(source.classes),
    }
    images = cached(source, place, request, cache_folder(cache))
    images = replace(images, name=name)  # one folder may go by several paths
    return images if channels is None else images.with_channels(channels)


def cached(source: Source, place: Place, request: dict[str, Any], folder: Path) -> Images:
    """What was decoded before, or, the first time, what is decoded now."""
    try:
        origin = place.origin()
    except UnreachableError:
        before = latest(folder, request)
        images = None if before is None else fetch(before)
        if images is None:
            raise
        return images
    file = cache_file(folder, request, origin)
    images = fetch(file)
    return decoded(source, place, request, origin, file) if images is None else images


def decoded(source: Source, place: Place, request: dict[str, Any], origin: Any, file: Path) -> Images:
    """What is decoded now and kept in a file; of several processes that need the same, one decodes."""
    with room(file.parent):
        file.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(f"{file}.lock")
        lock.acquire()
    try:
        images = fetch(file) if file.exists() else None
        if images is None:
            table = place.open(Columns(source.image, source.label, source.coarse))
            images = collect(table, source, request["split"], file.parent)
            store(file, images, request, origin)
        return fetch(file) or images
    finally:
        lock.release()


def augmentation(name: str | Path, size: int) -> Augment:
    """How to augment a source's images; for anything without a name, what the paper does to CIFAR, in proportion."""
    known = SOURCES.get(str(name))
    if known is not None and size == (known.size or size):
        return known.augment
    usual = known.augment if known is not None else Augment()
    return Augment(pad=size // 8, flip=usual.flip, cutout=size // 4 if usual.cutout else 0)


def described(
    name: str, size: int | None, image: str | None, label: str | None, classes: Sequence[str] | None
) -> Source:
    """The source of this name, or one made up for a path or for something on the hub, with what was asked for."""
    if size is not None and size < 1:
        raise InputError(f"size is {size}: give a number of pixels of at least 1")
    if isinstance(classes, str):
        raise InputError(f"classes is the string {classes!r}: give a list of names, such as [{classes!r}]")
    source = SOURCES.get(name)
    if source is None:
        source = Source(name, "", {}, Augment(), None if exists(name) else hub_name(name))
    if source.choose and not classes:
        raise InputError(f"{name} has a thousand classes, too many to load: name some with --classes, or take terriers")
    return replace(
        source,
        size=size or source.size,
        image=image or source.image,
        label=label or source.label,
        classes=tuple(classes) if classes else source.classes,
    )


def exists(name: str) -> bool:
    """Whether a name is a path to something."""
    return Path(name).expanduser().exists()


def hub_name(name: str) -> str:
    """A name that can only be one on the hub."""
    owner, _, rest = name.partition("/")
    if rest and "/" not in rest and owner not in ("", ".", "..", "~") and Path(name).suffix.lower() != ".parquet":
        return name
    if "/" in name or os.sep in name or Path(name).suffix:
        raise InputError(f"there is no file or folder {name}: check the path")
    near = get_close_matches(name, SOURCES, n=1)
    way = f"say {near[0]}?" if near else f"see `{program()} data list`, or give a path or OWNER/NAME on the hub"
    raise InputError(f"there is no data set {name!r}: {way}")


def placed(source: Source, split: str) -> Place:
    """Where a split of a source is: on this machine, or else on the hub."""
    if source.name not in SOURCES:
        if source.hub is None:
            return at_path(Path(source.name).expanduser(), split)
        name, _, config = source.hub.partition(":")
        way = f"connect, or give a path that exists ({source.name} is none here), or use --data digits"
        return Hub(name, config or None, split, way_out=way)
    here = local_splits(source)
    part = source.splits.get(split)
    # a file of this very name, else the part of the source's own split, else a synonym
    ways = [(split, part.rows if part and shares(source, split, list(here)) else slice(None))]
    ways += [(named(part.split, list(here)), part.rows)] if part else []
    for there, rows in [*ways, (named(split, list(here)), slice(None))]:
        if there in here:
            return Parquet(here[there], tuple(file for files in here.values() for file in files), rows)
    if part is None:
        raise no_split(source, split, list(here))
    if source.hub is None:
        return embedded(source, split)
    return on_hub(source, split, part, list(here))


def splits_at(source: Source) -> list[str]:
    """The splits of one's own data, train first; of data with a name, and on the hub, train alone."""
    if source.name in SOURCES or source.hub is not None:
        return ["train"]
    path = Path(source.name).expanduser()
    there = list(parquet_splits(path) or divisions(path, "train")) if path.is_dir() else []
    return ["train", *(split for split in there if split.casefold() != "train")]


def embedded(source: Source, split: str) -> Place:
    """What is made here; its columns have no names to ask for."""
    for kind, column in (("image", source.image), ("label", source.label)):
        if column is not None:
            raise InputError(f"{source.name} has no column {column!r}, it is made here: leave --{kind} out")
    return EMBEDDED[source.name](split)


def shares(source: Source, split: str, here: list[str]) -> bool:
    """Whether a file has to do for another split as well, so that each may have its own rows of it alone."""
    others = {name: part for name, part in source.splits.items() if name != split and name not in here}
    return any(named(part.split, here) == split for part in others.values())


def local_splits(source: Source) -> dict[str, tuple[Path, ...]]:
    """The Parquet files of a source below $CASCADED_DATA, by split."""
    root = data_folder()
    return parquet_splits(root / (source.folder or source.name)) if root else {}


def on_hub(source: Source, split: str, part: Part, here: list[str]) -> Hub:
    """The hub's copy, and what to do where it is out of reach."""
    folder = f"$CASCADED_DATA/{source.folder or source.name}/"
    found = f" ({', '.join(here)} found there)" if here else ""
    way = f"connect, or put {split}-*.parquet into {folder}{found}, or use --data digits"
    return Hub(source.hub or "", source.config, part.split, part.rows, way)


def no_split(source: Source, split: str, here: list[str]) -> MissingSplitError:
    """A split that a source does not have."""
    there = list(dict.fromkeys([*here, *source.splits]))
    way = "hold some of train out with cascaded.data.hold_out" if split.startswith("val") else "say one of them"
    return MissingSplitError(f"{source.name} has no split {split!r}, there are {', '.join(there)}: {way}")
