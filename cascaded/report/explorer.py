"""The explorer's data: predictions and activations per step, packed to fit into the page."""

from __future__ import annotations

import base64
import io
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float32, Int, UInt8
from PIL import Image

MAX_CHARS = 6_000_000
"""Characters that all explorers together may take."""

MIN_IMAGES = 4
"""Images that every explorer keeps, whatever they take."""

MAX_CLASSES = 10
"""Up to this many classes, all are kept; of more, those that some network found most likely at some step."""

Packed = dict[str, Any]


@dataclass(frozen=True)
class ExplorerNetwork:
    """Predictions and activations of one network.

    Attributes:
        name: As everywhere on the page.
        color: `#rrggbb`.
        probabilities: Per step, image and class.
        maps: Activations of the stem and every block as small grey images, the stem first.
        convergence: How close each of them is to its final value, from 0 to 1.
    """

    name: str
    color: str
    probabilities: Float32[np.ndarray, "time items classes"]
    maps: UInt8[np.ndarray, "time items stages side side"]
    convergence: Float32[np.ndarray, "time items stages"]


@dataclass(frozen=True)
class Explorer:
    """Some images of one data set, and the networks that were recorded on all of them."""

    data: str
    classes: tuple[str, ...]
    images: UInt8[np.ndarray, "items height width 3"]
    labels: tuple[int, ...]
    networks: tuple[ExplorerNetwork, ...]


def packed(explorers: Sequence[Explorer], max_chars: int = MAX_CHARS) -> Packed:
    """The explorers as JSON for the page's script.

    Every network is a matrix of bytes with one row per step: for all images the predictions (two bytes each), their
    confidence, the probabilities of the classes that are kept, the convergence of each stage, and the stages' maps.
    Rows are stored as differences from the row before, which are mostly zeros once a network has settled, then
    deflated and written in base64.

    Args:
        explorers: Those without an image or a network are left out.
        max_chars: Characters that they may take; if they take more, each keeps fewer images.

    Returns:
        `sets`, one per explorer, and `note`: a sentence on what was left out, or "".
    """
    explorers = [each for each in explorers if len(each.images) and each.networks]
    there = sum(len(each.images) for each in explorers)
    share, sets = 1.0, [_pack(each) for each in explorers]
    while (size := sum(map(_size, sets))) > max_chars and any(len(each["labels"]) > MIN_IMAGES for each in sets):
        share *= 0.97 * max_chars / size
        sets = [_pack(_fewer(each, max(MIN_IMAGES, int(share * len(each.images))))) for each in explorers]
    kept = sum(len(each["labels"]) for each in sets)
    note = f"To keep this page small it contains {kept} of the {there} recorded images, evenly over the classes."
    return {"sets": sets, "note": note if kept < there else ""}


def _pack(explorer: Explorer) -> Packed:
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
        "models": [_pack_network(each, shown) for each in explorer.networks],
    }


def _size(one: Packed) -> int:
    return len(one["sprite"]) + sum(len(each["frames"]) for each in one["models"])


def shown_classes(explorer: Explorer) -> Int[np.ndarray, "items kept"]:
    """The classes whose probabilities are kept per image: all, or the true one and the likeliest at any step."""
    items, classes = len(explorer.images), explorer.networks[0].probabilities.shape[-1]
    if classes <= MAX_CLASSES:
        return np.tile(np.arange(classes), (items, 1))
    peaks = np.max([each.probabilities.max(axis=0) for each in explorer.networks], axis=0)
    peaks[np.arange(items), list(explorer.labels)] = np.inf
    return np.sort(np.argsort(-peaks, axis=1, kind="stable")[:, :MAX_CLASSES], axis=1)


def _pack_network(network: ExplorerNetwork, shown: Int[np.ndarray, "items kept"]) -> Packed:
    steps, _, stages, side, _ = network.maps.shape
    probabilities = network.probabilities
    predictions = probabilities.argmax(axis=-1).astype("<u2")
    parts = (
        predictions.view(np.uint8),
        _bytes(probabilities.max(axis=-1)),
        _bytes(np.take_along_axis(probabilities, np.broadcast_to(shown, (steps, *shown.shape)), axis=-1)),
        _bytes(network.convergence),
        network.maps,
    )
    frames = np.concatenate([part.reshape(steps, -1) for part in parts], axis=1)
    frames[1:] -= frames[:-1].copy()  # bytes wrap around, here and in the script that adds them up
    text = base64.b64encode(zlib.compress(frames.tobytes(), 9)).decode()
    return {"model": network.name, "steps": steps, "stages": stages, "side": side, "frames": text}


def _bytes(fractions: np.ndarray) -> UInt8[np.ndarray, "..."]:
    """Fractions from 0 to 1 as bytes, to half a percent."""
    return (255 * np.nan_to_num(fractions).clip(0, 1)).round().astype(np.uint8)


def _sprite(images: UInt8[np.ndarray, "items height width 3"]) -> tuple[str, int]:
    """All images in one PNG, as a data URL, and the number of columns."""
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
    turn = pd.Series(labels).groupby(labels).cumcount()
    kept = np.sort(np.lexsort((labels, turn))[:items])
    arrays = ("probabilities", "maps", "convergence")
    networks = tuple(
        replace(each, **{name: getattr(each, name)[:, kept] for name in arrays}) for each in explorer.networks
    )
    return replace(explorer, images=explorer.images[kept], labels=tuple(labels[kept].tolist()), networks=networks)
