"""Load images by name or path: on this machine first, then on the hub; decoded once, then mapped from a cache."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from filelock import FileLock

from cascaded.data.build import build, writing
from cascaded.data.cache import cache_file, cache_folder, fetch, latest, store
from cascaded.data.catalogue import SOURCES, Source, augmentation
from cascaded.data.columns import Columns
from cascaded.data.images import Images
from cascaded.data.open import Hub, Location, UnreachableError, local_splits, locate
from cascaded.errors import InputError
from cascaded.shell import program

__all__ = ["SOURCES", "Source", "augmentation", "load", "local_splits"]


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
        channels: 3 repeats the channel of grey images; None keeps the channels of the images.
        image_column: The column with the images; None detects it.
        label_column: The column with the labels; None detects it.
        classes: Only these classes, numbered in this order; None for all.
        cache: The folder of decoded images; None for $CASCADED_CACHE or ~/.cache/cascaded.
    """
    name = str(name_or_path)
    source = describe(name, image_size, image_column, label_column, classes)
    location = locate(source, split)
    request = {
        "name": name if name in SOURCES or isinstance(location, Hub) else str(Path(name).expanduser().resolve()),
        "split": split,
        "size": source.size,
        "fit": source.fit,
        "columns": [source.image, source.label, source.coarse],
        "classes": list(source.classes),
    }
    images = replace(load_cached(source, location, request, cache_folder(cache)), name=name)
    return images if channels is None else images.with_channels(channels)


def load_cached(source: Source, location: Location, request: dict[str, Any], folder: Path) -> Images:
    """Images that were decoded before, or else decoded now; if the hub is unreachable, its last version."""
    try:
        origin = location.origin()
    except UnreachableError:
        before = latest(folder, request)
        images = None if before is None else fetch(before)
        if images is None:
            raise
        return images
    file = cache_file(folder, request, origin)
    return fetch(file) or decode_into(file, source, location, request, origin)


def decode_into(file: Path, source: Source, location: Location, request: dict[str, Any], origin: Any) -> Images:
    """Decode images and store them in a file; of several processes that need the same, one decodes."""
    with writing(file.parent):
        file.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(f"{file}.lock")
        lock.acquire()
    try:
        images = fetch(file) if file.exists() else None
        if images is None:
            table = location.open(Columns(source.image, source.label, source.coarse))
            images = build(table, source, request["split"], file.parent)
            store(file, images, request, origin)
        return fetch(file) or images
    finally:
        lock.release()


def describe(
    name: str,
    image_size: int | None = None,
    image_column: str | None = None,
    label_column: str | None = None,
    classes: Sequence[str] | None = None,
) -> Source:
    """The source of this name, or a new one for a path or a data set on the hub, with the given options."""
    if image_size is not None and image_size < 1:
        raise InputError(f"image_size is {image_size}: give a number of pixels of at least 1")
    if isinstance(classes, str):
        raise InputError(f"classes is the string {classes!r}: give a list of names, such as [{classes!r}]")
    source = SOURCES.get(name)
    if source is None:
        source = Source(name, hub=None if Path(name).expanduser().exists() else hub_name(name), splits={})
    if source.choose and not classes:
        raise InputError(f"{name} has too many classes to load all: choose some with --classes, or use --data terriers")
    return replace(
        source,
        size=image_size or source.size,
        image=image_column or source.image,
        label=label_column or source.label,
        classes=tuple(classes) if classes else source.classes,
    )


def hub_name(name: str) -> str:
    """A name that can only be a data set on the hub."""
    owner, _, rest = name.partition("/")
    if rest and "/" not in rest and owner not in ("", ".", "..", "~") and Path(name).suffix.lower() != ".parquet":
        return name
    if "/" in name or os.sep in name or Path(name).suffix:
        raise InputError(f"there is no file or folder {name}: check the path")
    near = get_close_matches(name, SOURCES, n=1)
    fix = f"did you mean {near[0]}?" if near else f"see `{program()} data list` or give a path or OWNER/NAME on the hub"
    raise InputError(f"there is no data set {name!r}: {fix}")
