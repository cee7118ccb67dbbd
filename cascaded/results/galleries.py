"""Galleries: the fastest and the slowest images, drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from cascaded.data.sheet import contact_sheet
from cascaded.errors import InputError
from cascaded.files import write_whole
from cascaded.learning.feed import load_split
from cascaded.results.subjects import Subject

SHOWN = 10
"""Images of each kind in a row."""


def draw_gallery(subject: Subject, name: str, split: str, shown: str, result: dict[str, Any]) -> Path:
    """Draw a gallery beside the results: a row of the fastest and a row of the slowest of every class.

    Args:
        subject: Whose results they are; its own data is drawn.
        name: The trace's name.
        split: Which part of the data it is of.
        shown: The fingerprint of the images that were shown: others are not drawn.
        result: What `selection_latency` answered.
    """
    images = load_split(subject.spec, "train" if split == "validation" else split)
    if images.fingerprint() != shown:
        raise InputError(
            f"{name} is of images {shown[:12]}, {subject.spec.data} {split} holds {images.fingerprint()[:12]}: bring "
            "them back, or record it again"
        )
    rows_of = {int(row): place for place, row in enumerate(images.indices.tolist())}
    rows = []
    for label, ends in result["gallery"]["by class"].items():
        for kind in ("fastest", "slowest"):
            places = [rows_of[each["index"]] for each in ends[kind][:SHOWN] if each["index"] in rows_of]
            if places:
                rows.append((f"{images.classes[int(label)]}, {kind}", images.images[torch.tensor(places)]))
    if not rows:
        raise InputError(f"no image of {name} is in {subject.spec.data} {split}: the data has changed, record it again")
    file = subject.file.parent / "galleries" / f"{name}.png"
    write_whole(file, lambda part: contact_sheet(rows).save(part, format="PNG"))
    return file
