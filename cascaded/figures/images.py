"""Figures made of small images: the fastest and slowest ones, and the noises."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pandas as pd
from jaxtyping import UInt8

from cascaded.errors import InputError
from cascaded.figures.base import Figure, styled
from cascaded.figures.style import GRID, MUTED, SMALL, WIDTH

NOISES = Path(__file__).with_name("noises.png")
"""One row of square frames per noise; drawn by scripts/figures.py."""
NOISE_NAMES = ("clean", "focus", "perlin", "occlusion", "resolution", "translation", "rotation")
COLUMNS = 8
"""Images beside each other, at most: more leave no room for captions."""

Row = tuple[UInt8[np.ndarray, "_ channels height width"], Sequence[str]]


@styled()
def gallery(rows: Mapping[str, Row]) -> Figure:
    """Rows of small images, such as the fastest and the slowest ones, with a caption below each.

    Args:
        rows: By the label above a row: its images as bytes, and a caption for each (class and step).
    """
    if not any(len(images) for images, _ in rows.values()):
        raise InputError("there are no images to draw: run cascaded analyze where the data is at hand")
    lines = [(label, *line) for label, (images, captions) in rows.items() for line in _split(images, captions)]
    columns = max(len(images) for _, images, _ in lines)
    fig = Figure(figsize=(WIDTH, len(lines) * (WIDTH / columns + 0.3)), layout="constrained")
    axes = fig.subplots(len(lines), columns, squeeze=False)
    before = None
    for row, (label, images, captions) in zip(axes, lines, strict=True):
        for ax in row[len(images) :]:
            ax.set_axis_off()
        for ax, image, caption in zip(row, images, captions, strict=False):
            _put(ax, np.broadcast_to(image, (3, *image.shape[1:])).transpose(1, 2, 0))
            ax.set_xlabel(textwrap.fill(caption, int(WIDTH * 72 / columns / 4.2)), fontsize=SMALL - 1, color=MUTED)
        row[0].set_title(label if label != before else "")
        before = label
    captions = [(label, caption) for label, (_, captions) in rows.items() for caption in captions]
    fig.data = pd.DataFrame(captions, columns=pd.Index(["row", "caption"]))
    return fig


def _split(images: UInt8[np.ndarray, "images channels height width"], captions: Sequence[str]) -> list[Row]:
    """Lines of equal length, as long as there is room for."""
    count = max(1, -(-len(images) // COLUMNS))
    size = -(-len(images) // count)
    return [(images[start : start + size], captions[start : start + size]) for start in range(0, len(images), size)]


@styled()
def noises() -> Figure:
    """The six noises on one photograph, a row of frames per noise."""
    sheet = (matplotlib.image.imread(NOISES)[..., :3] * 255).round().astype(np.uint8)
    side = sheet.shape[0] // len(NOISE_NAMES)
    columns = sheet.shape[1] // side
    fig = Figure(figsize=(WIDTH, (WIDTH - 0.8) / columns * len(NOISE_NAMES)), layout="constrained")
    axes = fig.subplots(len(NOISE_NAMES), columns)
    for name, row, strip in zip(NOISE_NAMES, axes, np.split(sheet, len(NOISE_NAMES)), strict=True):
        for ax, frame in zip(row, np.split(strip, columns, axis=1), strict=True):
            _put(ax, frame)
        row[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=SMALL)
    fig.data = pd.DataFrame({"noise": NOISE_NAMES})
    return fig


def _put(ax: Any, pixels: UInt8[np.ndarray, "height width 3"]) -> None:
    ax.imshow(pixels, interpolation="none")
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set(visible=True, color=GRID, linewidth=0.6)
