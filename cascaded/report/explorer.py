"""Networks at work, packed for the page: small enough to travel in it, exact enough to be read from it."""

from __future__ import annotations

import base64
import io
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Int, UInt8

from cascaded.exhibits.page import Explorer, Watched

MOST = 6_000_000
"""Characters that all explorers together may take."""

FEWEST = 4
"""Images that every explorer keeps, whatever they take."""

ALL = 10
"""Up to so many classes, all are kept; of more, for every image those that some network came to believe in most."""

Packed = dict[str, Any]


def packed(explorers: Sequence[Explorer], most: int = MOST) -> Packed:
    """What the page's script reads, as JSON can hold it.

    Every network is a matrix of bytes with a row a step: for all images their answers (two bytes each), how sure these
    are, the probabilities of the classes that are kept, how near each stage is, and the stages' maps. From row to row
    only differences are kept, which are mostly zeros once a network has settled, then deflated and written in base64.

    Args:
        explorers: What there is. Those without an image or a network are left out.
        most: Characters that they may take; where they take more, each keeps fewer images.

    Returns:
        `sets`, one an explorer, and `note`: a sentence on what was left out, or nothing.
    """
    explorers = [each for each in explorers if len(each.images) and each.models]
    there = sum(len(each.images) for each in explorers)
    share, sets = 1.0, [_one(each) for each in explorers]
    while (size := sum(map(_size, sets))) > most and any(len(each["labels"]) > FEWEST for each in sets):
        share *= 0.97 * most / size
        sets = [_one(_fewer(each, max(FEWEST, int(share * len(each.images))))) for each in explorers]
    kept = sum(len(each["labels"]) for each in sets)
    note = f"To keep this page small it holds {kept} of the {there} images, evenly over the classes."
    return {"sets": sets, "note": note if kept < there else ""}


def _one(explorer: Explorer) -> Packed:
    shown = shown_classes(explorer)
    sprite, columns = _sprite(explorer.images)
    return {
        "data": explorer.data,
        "classes": list(explorer.classes),
        "labels": [int(label) for label in explorer.labels],
        "shown": shown.tolist(),
        "sprite": sprite,
        "columns": columns,
        "size": list(explorer.images.shape[1:3]),
        "models": [_network(each, shown) for each in explorer.models],
    }


def _size(one: Packed) -> int:
    return len(one["sprite"]) + sum(len(each["frames"]) for each in one["models"])


def shown_classes(explorer: Explorer) -> Int[np.ndarray, "items kept"]:
    """The classes whose probabilities are kept of each image: all, or the true one and the likeliest at any time."""
    items, classes = len(explorer.images), explorer.models[0].probabilities.shape[-1]
    if classes <= ALL:
        return np.tile(np.arange(classes), (items, 1))
    peaks = np.max([each.probabilities.max(axis=0) for each in explorer.models], axis=0)
    peaks[np.arange(items), list(explorer.labels)] = np.inf
    return np.sort(np.argsort(-peaks, axis=1, kind="stable")[:, :ALL], axis=1)


def _network(watched: Watched, shown: Int[np.ndarray, "items kept"]) -> Packed:
    steps, _, stages, side, _ = watched.maps.shape
    probabilities = watched.probabilities
    answers = probabilities.argmax(axis=-1).astype("<u2")
    parts = (
        answers.view(np.uint8),
        _bytes(probabilities.max(axis=-1)),
        _bytes(np.take_along_axis(probabilities, np.broadcast_to(shown, (steps, *shown.shape)), axis=-1)),
        _bytes(watched.nearness),
        watched.maps,
    )
    frames = np.concatenate([part.reshape(steps, -1) for part in parts], axis=1)
    frames[1:] -= frames[:-1].copy()  # bytes wrap round, here and where they are added up again
    text = base64.b64encode(zlib.compress(frames.tobytes(), 9)).decode()
    return {"model": watched.model, "steps": steps, "stages": stages, "side": side, "frames": text}


def _bytes(shares: np.ndarray) -> UInt8[np.ndarray, "..."]:
    """Shares from 0 to 1 as bytes, to half a percent."""
    return (255 * np.nan_to_num(shares).clip(0, 1)).round().astype(np.uint8)


def _sprite(images: UInt8[np.ndarray, "items height width 3"]) -> tuple[str, int]:
    """All images in one picture, as an address that holds it, and how many are side by side."""
    from PIL import Image

    items, height, width, _ = images.shape
    columns = int(np.ceil(np.sqrt(items)))
    rows = -(-items // columns)
    sheet = np.zeros((rows * columns, height, width, 3), np.uint8)
    sheet[:items] = images
    sheet = sheet.reshape(rows, columns, height, width, 3).swapaxes(1, 2).reshape(rows * height, columns * width, 3)
    file = io.BytesIO()
    Image.fromarray(sheet).save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode(), columns


def _fewer(explorer: Explorer, items: int) -> Explorer:
    """The same with fewer images: the first of every class, then the second of every class, in their old order."""
    labels = np.array(explorer.labels)
    turn = np.zeros(len(labels), int)
    for label in np.unique(labels):
        turn[labels == label] = np.arange((labels == label).sum())
    kept = np.sort(np.lexsort((labels, turn))[:items])
    models = tuple(
        Watched(each.model, each.probabilities[:, kept], each.maps[:, kept], each.nearness[:, kept])
        for each in explorer.models
    )
    return replace(explorer, images=explorer.images[kept], labels=tuple(labels[kept].tolist()), models=models)
