"""The fastest and slowest images of a recording, and some that never settle.

Small files beside the results, which are read without torch or the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, Int64, UInt8

from cascaded.errors import InputError
from cascaded.files import read_tensors, write_tensors

IMAGES = 10
"""Images in a row of a gallery, at most."""
THUMBNAIL = 64
"""Pixels of a thumbnail's side, at most."""
FORMAT = 3


@dataclass(frozen=True)
class Gallery:
    """The fastest and the slowest images of one recording, and some that never settle.

    Attributes:
        keys: The key columns of the recording, as the results table has them.
        source: What it was made from: it is made again where this differs.
        classes: Class names.
        images: The images of all rows, one after the other.
        row: Which of `EXTREMES` each is one of, by number.
        steps: Selection latency of each; infinite where an image never settles.
        labels: True class of each.
    """

    keys: dict[str, Any]
    source: str
    classes: tuple[str, ...]
    images: UInt8[np.ndarray, "images channels height width"]
    row: Int64[np.ndarray, "images"]
    steps: Float32[np.ndarray, "images"]
    labels: Int64[np.ndarray, "images"]


def gallery_file(run: Path, trace: str) -> Path:
    """Where the gallery of a trace is stored."""
    return run / "results" / "galleries" / f"{trace}.safetensors"


def write_gallery(file: Path, gallery: Gallery) -> None:
    """Write a gallery, completely or not at all."""
    arrays = {name: each for name, each in vars(gallery).items() if isinstance(each, np.ndarray)}
    keys = {name: getattr(gallery, name) for name in ("keys", "source", "classes")}
    write_tensors(file, arrays, {"gallery": FORMAT, **keys})


def read_galleries(run: Path) -> list[Gallery]:
    """The galleries of a run; files that cannot be read are left out."""
    galleries = [read_gallery(file) for file in sorted((run / "results" / "galleries").glob("*.safetensors"))]
    return [gallery for gallery in galleries if gallery is not None]


def read_gallery(file: Path) -> Gallery | None:
    """A gallery from its file; None where there is none, or it cannot be read."""
    try:
        metadata, arrays = read_tensors(file)
        if metadata["gallery"] != FORMAT:
            return None
        gallery = Gallery(metadata["keys"], metadata["source"], tuple(metadata["classes"]), **arrays)
    except (InputError, TypeError, KeyError):
        return None
    return gallery if gallery.images.dtype == np.uint8 and gallery.images.ndim == 4 else None


def thumbnails(images: UInt8[np.ndarray, "*images height width"]) -> UInt8[np.ndarray, "*images h w"]:
    """Images no larger than a thumbnail: means over squares of pixels."""
    k = -(-max(images.shape[-2:]) // THUMBNAIL)
    if k <= 1:
        return images
    *rest, height, width = images.shape
    h, w = max(1, height // k), max(1, width // k)
    cut = images[..., : h * k, : w * k].reshape(*rest, h, min(k, height), w, min(k, width))
    return cut.mean(axis=(-3, -1)).round().astype(np.uint8)
