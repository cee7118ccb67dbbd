"""Galleries: the fastest and the slowest images, drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from cascaded.data.images import Images
from cascaded.data.sheet import contact_sheet
from cascaded.errors import InputError
from cascaded.files import write_whole
from cascaded.results.subjects import Subject
from cascaded.training.data import load_split

SHOWN = 10
"""Images of each kind in a row."""
THUMB = 64
"""Pixels of a thumbnail's side, at most."""
KINDS = ("fastest", "slowest")


def draw_gallery(subject: Subject, name: str, split: str, shown: str, result: dict[str, Any]) -> Path:
    """Draw a gallery beside the results: a row of the fastest and a row of the slowest of every class.

    Args:
        subject: Whose results they are; its own data is drawn.
        name: The trace's name.
        split: Which part of the data it is of.
        shown: The fingerprint of the images that were shown: others are not drawn.
        result: What `selection_latency` answered.
    """
    images = load_split(subject.config, "train" if split == "validation" else split)
    if images.fingerprint() != shown:
        raise InputError(
            f"{name} is of images {shown[:12]}, {subject.config.data} {split} holds {images.fingerprint()[:12]}: bring "
            "them back, or record it again"
        )
    rows = [
        (f"{images.classes[int(label)]}, {kind}", some)
        for label, ends in result["gallery"]["by class"].items()
        for kind in KINDS
        if len(some := pictures(images, ends[kind][:SHOWN]))
    ]
    if not rows:
        raise InputError(
            f"no image of {name} is in {subject.config.data} {split}: the data has changed, record it again"
        )
    file = subject.file.parent / "galleries" / f"{name}.png"
    write_whole(file, lambda part: contact_sheet(rows).save(part, format="PNG"))
    _keep_ends(ends_file(subject, name), images, result["gallery"]["overall"])
    return file


def pictures(images: Images, told: Sequence[Mapping[str, Any]]) -> UInt8[Tensor, "shown channels height width"]:
    """The images of a row of a gallery, by their rows in the source; what is not there is left out."""
    place_of = {row: place for place, row in enumerate(images.indices.tolist())}
    places = [place_of[each["index"]] for each in told if each["index"] in place_of]
    return images.images[torch.tensor(places, dtype=torch.long)]


def ends_file(subject: Subject, name: str) -> Path:
    """Where the fastest and the slowest images of all classes are kept, for those who have no data at hand."""
    return subject.file.parent / "galleries" / f"{name}-ends.safetensors"


def _keep_ends(file: Path, images: Images, overall: Mapping[str, Any]) -> None:
    from safetensors.torch import save_file

    ends = {kind: small(pictures(images, overall[kind])) for kind in KINDS}
    write_whole(file, lambda part: save_file(ends, part))


def small(images: UInt8[Tensor, "shown channels height width"]) -> UInt8[Tensor, "shown channels h w"]:
    """Images no larger than a thumbnail."""
    every = -(-max(images.shape[-2:]) // THUMB)
    if every <= 1:
        return images.contiguous()
    return torch.nn.functional.avg_pool2d(images.float(), every).round().to(torch.uint8)


def read_ends(file: Path) -> dict[str, UInt8[np.ndarray, "shown channels height width"]]:
    """The fastest and the slowest images, by kind; empty where they were not kept or cannot be read."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        found = load_file(file)
    except (OSError, SafetensorError, ValueError, TypeError, KeyError):  # types that NumPy does not have, too
        return {}
    known = {kind: found[kind] for kind in KINDS if kind in found}
    return known if all(each.dtype == np.uint8 and each.ndim == 4 for each in known.values()) else {}
