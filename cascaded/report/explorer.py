"""The explorer's data: recorded predictions and activations per step, packed to fit into the page."""

from __future__ import annotations

import base64
import io
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int, UInt8
from PIL import Image

from cascaded.analysis.outputs import softmax
from cascaded.errors import InputError
from cascaded.figures.style import color
from cascaded.results.names import display_name
from cascaded.traces.activations import Activations, load_activations
from cascaded.training.runs import weights_digest

MAX_CHARS = 6_000_000
"""Characters that all explorers together may take."""

MIN_IMAGES = 4
"""Images that every explorer keeps, whatever they take."""

MAX_CLASSES = 10
"""Up to this many classes, all are kept; of more, those that some network found most likely at some step."""

Packed = dict[str, Any]


Explorer = Mapping[str, Activations]
"""The networks that were recorded on the same images, by name."""


def find_activations(runs: Iterable[Path]) -> tuple[list[Activations], list[str]]:
    """The activations of the runs' current weights, one seed per network; and why others cannot be used."""
    found: dict[tuple[object, ...], Activations] = {}
    notes = []
    for file in (file for run in runs for file in sorted((run / "activations").glob("*.safetensors"))):
        try:
            own = load_activations(file)
        except InputError as error:
            notes.append(str(error))
            continue
        now, then = weights_digest(file.parent.parent), own.provenance.weights
        if now is not None and now != then:
            notes.append(f"{file} has weights {then[:12]}, the last checkpoint has {now[:12]}: record it again.")
        elif own.provenance.in_distribution:
            found.setdefault((_name(own), *_images(own)), own)
    return sorted(found.values(), key=_order), notes


def explorers(found: Sequence[Activations]) -> tuple[Explorer, ...]:
    """One explorer per set of images, the one with the most networks first."""
    sets: dict[tuple[object, ...], dict[str, Activations]] = {}
    for own in found:
        sets.setdefault(_images(own), {})[_name(own)] = own
    return tuple(sorted(sets.values(), key=len, reverse=True))


def explorer_color(own: Activations) -> str:
    """The color of a network, as in figures."""
    return color(own.provenance.method, last_lam(own.provenance.lam), own.config.schedule)


def _images(own: Activations) -> tuple[object, ...]:
    return own.config.data, own.config.split, own.provenance.images, own.provenance.items, own.provenance.classes


def _order(own: Activations) -> tuple[int, float]:
    """The two that differ most come first: TD with the lowest lambda, then cross-entropy at the last step."""
    lam = last_lam(own.provenance.lam)
    return 2 if lam == 1 else {"cascaded-td": 0, "cascaded-ce": 1}.get(own.provenance.method, 2), lam or 0.0


def last_lam(lam: float | tuple[float, ...] | None) -> float | None:
    """The lambda of a network; of a schedule of lambdas its last."""
    return lam[-1] if isinstance(lam, tuple) else lam


def _name(own: Activations) -> str:
    name = display_name(own.provenance.method, last_lam(own.provenance.lam), own.config.schedule)
    return name if own.config.time == "coarse" else f"{name}, {own.config.kernel}"


# --- packed for the page


def packed(explorers: Sequence[Explorer], max_chars: int = MAX_CHARS) -> Packed:
    """The explorers as JSON for the page's script.

    Every network is a matrix of bytes with one row per step: for all images the predictions (two bytes each), their
    confidence, the probabilities of the classes that are kept, the convergence of each stage, and the stages' maps.
    Rows are stored as differences from the row before, which are mostly zeros once a network has settled, then
    deflated and written in base64.

    Args:
        explorers: Those without a network are left out.
        max_chars: Characters that they may take; if they take more, each keeps fewer images.

    Returns:
        `sets`, one per explorer, and `note`: a sentence on what was left out, or "".
    """
    explorers = [each for each in explorers if each]
    there = sum(len(_first(each).labels) for each in explorers)
    share, sets = 1.0, [_pack(each) for each in explorers]
    while (size := sum(map(_size, sets))) > max_chars and any(len(each["labels"]) > MIN_IMAGES for each in sets):
        share *= 0.97 * max_chars / size
        sets = [_pack(_fewer(each, share)) for each in explorers]
    kept = sum(len(each["labels"]) for each in sets)
    note = f"To keep this page small it contains {kept} of the {there} recorded images, evenly over the classes."
    return {"sets": sets, "note": note if kept < there else ""}


def _first(explorer: Explorer) -> Activations:
    """The network whose images and labels are packed: those of the others are the same."""
    return next(iter(explorer.values()))


def _pack(explorer: Explorer) -> Packed:
    first = _first(explorer)
    peaks = np.max([softmax(own.logits).max(axis=0) for own in explorer.values()], axis=0)
    shown = shown_classes(peaks, first.labels)
    sprite, columns = _sprite(first.images)
    return {
        "data": f"{first.config.data} {first.config.split}",
        "classes": list(first.provenance.classes),
        "labels": first.labels.tolist(),
        "shown": shown.tolist(),
        "sprite": sprite,
        "columns": columns,
        "size": list(first.images.shape[2:]),
        "models": [_pack_network(name, own, shown) for name, own in explorer.items()],
    }


def _size(one: Packed) -> int:
    return len(one["sprite"]) + sum(len(each["frames"]) for each in one["models"])


def shown_classes(
    peaks: Float[np.ndarray, "items classes"], labels: Int[np.ndarray, "items"]
) -> Int[np.ndarray, "items kept"]:
    """The classes whose probabilities are kept per image: all, or the true one and the likeliest at any step."""
    items, classes = peaks.shape
    if classes <= MAX_CLASSES:
        return np.tile(np.arange(classes), (items, 1))
    peaks[np.arange(items), labels] = np.inf
    return np.sort(np.argsort(-peaks, axis=1, kind="stable")[:, :MAX_CLASSES], axis=1)


def _pack_network(name: str, own: Activations, shown: Int[np.ndarray, "items kept"]) -> Packed:
    steps, _, stages, side, _ = own.maps.shape
    probabilities = softmax(own.logits)
    predictions = probabilities.argmax(axis=-1).astype("<u2")
    parts = (
        predictions.view(np.uint8),
        _bytes(probabilities.max(axis=-1)),
        _bytes(np.take_along_axis(probabilities, np.broadcast_to(shown, (steps, *shown.shape)), axis=-1)),
        _bytes(own.convergence),
        own.maps,
    )
    frames = np.concatenate([part.reshape(steps, -1) for part in parts], axis=1)
    frames[1:] -= frames[:-1].copy()  # bytes wrap around, here and in the script that adds them up
    text = base64.b64encode(zlib.compress(frames.tobytes(), 9)).decode()
    return {"model": name, "steps": steps, "stages": stages, "side": side, "frames": text}


def _bytes(fractions: np.ndarray) -> UInt8[np.ndarray, "..."]:
    """Fractions from 0 to 1 as bytes, to half a percent."""
    return (255 * np.nan_to_num(fractions).clip(0, 1)).round().astype(np.uint8)


def _sprite(images: UInt8[np.ndarray, "items channels height width"]) -> tuple[str, int]:
    """All images in one PNG, as a data URL, and the number of columns."""
    items, _, height, width = images.shape
    columns = int(np.ceil(np.sqrt(items)))
    rows = -(-items // columns)
    sheet = np.zeros((rows * columns, height, width, 3), np.uint8)
    sheet[:items] = images.transpose(0, 2, 3, 1)
    sheet = sheet.reshape(rows, columns, height, width, 3).swapaxes(1, 2).reshape(rows * height, columns * width, 3)
    file = io.BytesIO()
    Image.fromarray(sheet).save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode(), columns


def _fewer(explorer: Explorer, share: float) -> Explorer:
    """A share of the images: the first of every class, then the second of every class, in their old order."""
    labels = _first(explorer).labels
    turn = pd.Series(labels).groupby(labels).cumcount()
    kept = np.sort(np.lexsort((labels, turn))[: max(MIN_IMAGES, int(share * len(labels)))])
    return {name: own.select(kept) for name, own in explorer.items()}
