"""Load images by name or path: on this machine first, then on the hub; decoded once, then mapped from a cache."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from filelock import FileLock

from cascaded.data.build import build
from cascaded.data.cache import cache_file, cache_folder, fetch, latest, store, unwritable
from cascaded.data.catalogue import SOURCES, Source, augmentation
from cascaded.data.images import Images
from cascaded.data.open import Hub, Location, UnreachableError, locate
from cascaded.errors import InputError, at_least, unknown
from cascaded.shell import program

__all__ = ["SOURCES", "Source", "augmentation", "load"]


def load(
    name_or_path: str | Path,
    split: str = "train",
    *,
    image_size: int | None = None,
    channels: int | None = None,
    image_column: str | None = None,
    label_column: str | None = None,
    classes: Sequence[str] | None = None,
    cache: Path | None = None,
) -> Images:
    """Images and labels, decoded the first time and mapped from the cache after that.

    Args:
        name_or_path: A name such as "cifar10" (`cascaded data list` prints all), a Parquet file, a folder of Parquet
            files or of images, or the OWNER/NAME of a data set on the Hugging Face hub.
        split: The split to load.
        image_size: Height and width of the images; None for the source's own.
        channels: 3 repeats the channel of gray images; None keeps the channels of the images.
        image_column: The column with the images; None detects it.
        label_column: The column with the labels; None detects it.
        classes: Only these classes, numbered in this order; None for all.
        cache: The folder of decoded images; None for $CASCADED_CACHE or ~/.cache/cascaded.
    """
    name = str(name_or_path)
    source = describe(name, image_size, image_column, label_column, classes)
    location = locate(source, split)
    border = augmentation(name, source.size).border if source.size else 0
    source = replace(source, size=source.size and source.size + 2 * border)
    request = {
        "name": name if name in SOURCES or isinstance(location, Hub) else str(Path(name).expanduser().resolve()),
        "split": split,
        "size": source.size,
        "fit": source.fit,
        "columns": list(vars(source.columns).values()),
        "classes": list(source.classes),
    }
    images = replace(load_cached(source, location, request, cache_folder(cache)), name=name).with_border(border)
    return images if channels is None else images.with_channels(channels)


def load_cached(source: Source, location: Location, request: dict[str, Any], folder: Path) -> Images:
    """Images that were decoded before, or else decoded now; if the hub is unreachable, its last version."""
    try:
        origin = location.origin()
    except UnreachableError:
        if (file := latest(folder, request)) and (images := fetch(file)):
            return images
        raise
    file = cache_file(folder, request, origin)
    return fetch(file) or decode_into(file, source, location, request)


def decode_into(file: Path, source: Source, location: Location, request: dict[str, Any]) -> Images:
    """Decode images and store them in a file; of several processes that need the same, one decodes."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{file}.lock"):
            if images := fetch(file):
                return images
            images = build(location.open(source.columns), source, request["split"], file.parent)
            store(file, images, request)
            return fetch(file) or images
    except OSError as error:
        raise unwritable(file.parent, error) from error


def describe(
    name: str,
    image_size: int | None = None,
    image_column: str | None = None,
    label_column: str | None = None,
    classes: Sequence[str] | None = None,
) -> Source:
    """The source of this name, or a new one for a path or a data set on the hub, with the given options."""
    at_least(1, image_size=image_size)
    if isinstance(classes, str):
        raise InputError(f"classes is the string {classes!r}: give a list of names, such as [{classes!r}]")
    source = SOURCES.get(name) or Source(name, hub=hub_name(name), splits={})
    if source.choose and not classes:
        raise InputError(f"{name} has too many classes to load all: choose some with --classes, or use --data terriers")
    columns = source.columns
    columns = replace(columns, image=image_column or columns.image, label=label_column or columns.label)
    return replace(source, size=image_size or source.size, columns=columns, classes=tuple(classes or source.classes))


def hub_name(name: str) -> str | None:
    """A name that can only be a data set on the hub; None for a path that exists."""
    if Path(name).expanduser().exists():
        return None
    owner, _, rest = name.partition("/")
    if rest and "/" not in rest and owner not in ("", ".", "..", "~") and Path(name).suffix.lower() != ".parquet":
        return name
    if "/" in name or os.sep in name or Path(name).suffix:
        raise InputError(f"there is no file or folder {name}: check the path")
    raise unknown("data set", name, SOURCES, f"see `{program()} data list` or give a path or OWNER/NAME on the hub")
