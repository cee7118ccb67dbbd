"""The fastest and the slowest images of a recording: small files beside the results, read without torch or the data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, Int64, UInt8

from cascaded.errors import InputError
from cascaded.files import read_tensors, write_tensors

IMAGES = 10
"""Fastest, and slowest, images in a gallery."""
THUMBNAIL = 64
"""Pixels of a thumbnail's side, at most."""
FORMAT = 2


@dataclass(frozen=True)
class Gallery:
    """The fastest and the slowest images of one recording.

    Attributes:
        keys: The key columns of the recording, as the results table has them.
        source: What it was made from: it is made again where this differs.
        classes: Class names.
        fastest: Images, from the fastest.
        slowest: Images, from the slowest.
        fastest_steps: Selection latency of each, in steps.
        slowest_steps: The same; infinite where an image never settles.
        fastest_labels: True class of each.
        slowest_labels: The same.
    """

    keys: dict[str, Any]
    source: str
    classes: tuple[str, ...]
    fastest: UInt8[np.ndarray, "images channels height width"]
    slowest: UInt8[np.ndarray, "images channels height width"]
    fastest_steps: Float32[np.ndarray, "images"]
    slowest_steps: Float32[np.ndarray, "images"]
    fastest_labels: Int64[np.ndarray, "images"]
    slowest_labels: Int64[np.ndarray, "images"]


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
    ends = (gallery.fastest, gallery.slowest)
    return gallery if all(each.dtype == np.uint8 and each.ndim == 4 for each in ends) else None


def thumbnails(images: UInt8[np.ndarray, "images channels height width"]) -> UInt8[np.ndarray, "images channels h w"]:
    """Images no larger than a thumbnail: means over squares of pixels."""
    k = -(-max(images.shape[-2:]) // THUMBNAIL)
    if k <= 1:
        return images
    n, channels, height, width = images.shape
    h, w = max(1, height // k), max(1, width // k)
    cut = images[..., : h * k, : w * k].reshape(n, channels, h, min(k, height), w, min(k, width))
    return cut.mean(axis=(3, 5)).round().astype(np.uint8)
