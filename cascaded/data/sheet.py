"""Contact sheets: labeled rows of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import UInt8
from torch import Generator, Tensor

from cascaded.data.images import Images
from cascaded.data.noise import NOISES
from cascaded.data.split import limit
from cascaded.errors import InputError

if TYPE_CHECKING:  # Pillow is imported when a sheet is drawn
    from PIL.Image import Image

CELL, GAP, TEXT = 64, 4, 14  # pixels: approximate side of a cell, distance between cells, height of a letter
LETTERS = 28  # of a label, at most
INK = (60, 66, 75)
COLUMNS, ROWS = 10, 40
"""Images per row, and classes on a sheet; of more classes, this many are drawn."""


def contact_sheet(
    rows: Sequence[tuple[str, UInt8[Tensor, "columns channels height width"]]],
) -> Image:
    """Rows of images with a label at their left, on white; the largest image becomes about 64 pixels high.

    Args:
        rows: A label and its images, gray or color. Rows may differ in length and in the size of their images.
    """
    from PIL import Image, ImageDraw, ImageFont

    if not rows:
        raise InputError("there are 0 rows: give at least one")
    for label, images in rows:
        if images.dtype != torch.uint8 or images.dim() != 4 or 0 in images.shape or images.shape[1] not in (1, 3):
            raise InputError(
                f"row {label!r} has shape {tuple(images.shape)} and type {images.dtype}: give bytes, as of (255 * "
                "images).round().byte(), in the shape (columns, 1 or 3 channels, height, width)"
            )
    scale = max(1, round(CELL / max(images.shape[-2] for _, images in rows)))
    font = ImageFont.load_default(TEXT)
    labels = [shortened(" ".join(label.split())) for label, _ in rows]
    strips = [strip(images, scale) for _, images in rows]
    left = max(round(font.getlength(label)) for label in labels) + 3 * GAP
    height = sum(strip.shape[0] + GAP for strip in strips) + GAP
    sheet = Image.new("RGB", (left + max(strip.shape[1] for strip in strips) + GAP, height), "white")
    draw, top = ImageDraw.Draw(sheet), GAP
    for label, pixels in zip(labels, strips, strict=True):
        draw.text((GAP, top + pixels.shape[0] / 2), label, INK, font, anchor="lm")
        sheet.paste(Image.fromarray(pixels.numpy()), (left, top))
        top += pixels.shape[0] + GAP
    return sheet


def strip(images: UInt8[Tensor, "columns channels h w"], scale: int) -> UInt8[Tensor, "height width 3"]:
    """Images side by side, enlarged, with white between them."""
    large = images.cpu().repeat_interleave(scale, -2).repeat_interleave(scale, -1)
    framed = torch.nn.functional.pad(large.expand(len(images), 3, *large.shape[-2:]), (0, GAP), value=255)
    return framed.permute(2, 0, 3, 1).flatten(1, 2)[:, :-GAP].contiguous()


def shortened(label: str) -> str:
    """A label, cut to the largest length."""
    return label if len(label) <= LETTERS else label[: LETTERS - 1].rstrip() + "…"


def class_sheet(images: Images, seed: int) -> Image:
    """Some images of each class, one row per class; without labels some of all images."""
    order = torch.randperm(len(images), generator=Generator().manual_seed(seed))
    if not images.classes:
        return contact_sheet([("", row) for row in images.images[order[: COLUMNS**2]].split(COLUMNS)])
    present = images.labels.unique()
    rows = []
    for number in present[torch.linspace(0, len(present) - 1, min(ROWS, len(present))).round().long()].tolist():
        items = order[images.labels[order] == number][:COLUMNS]
        rows.append((images.classes[number].split(",")[0], images.images[items]))
    return contact_sheet(rows)


def noise_sheet(images: Images, seed: int) -> Image:
    """Two images under each noise over some steps, one row per noise."""
    two = limit(images, min(2, len(images)), seed)
    steps = COLUMNS // len(two)
    rows = [("clean", two.images.repeat_interleave(steps, 0))]
    mean = 255 * torch.tensor(images.statistics()[0]).view(-1, 1, 1)  # masked pixels get the mean color
    for name, noise in NOISES.items():
        frames = noise.film(two.images - mean, steps, Generator().manual_seed(seed)) + mean
        rows.append((name, frames.transpose(0, 1).flatten(0, 1).round().clamp(0, 255).to(torch.uint8)))
    return contact_sheet(rows)
