"""Contact sheets: labelled rows of images."""

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
    from PIL.ImageFont import FreeTypeFont, ImageFont

CELL, GAP, TEXT = 64, 4, 14  # pixels: approximate side of a cell, distance between cells, height of a letter
LABEL = 200  # pixels: largest width of a label
INK = (60, 66, 75)
COLUMNS, ROWS = 10, 40
"""Images per row, and classes on a sheet; of more classes, this many are drawn."""


def contact_sheet(
    rows: Sequence[tuple[str, UInt8[Tensor, "columns channels height width"]]], scale: int | None = None
) -> Image:
    """Rows of images with a label at their left, on white; pixels are not smoothed.

    Args:
        rows: A label and its images. Rows may differ in length and in the size of their images.
        scale: Side of a drawn pixel. None: the largest image becomes about 64 pixels high.
    """
    from PIL import Image, ImageDraw, ImageFont

    for label, images in rows:
        check_row(label, images)
    if not rows or (scale is not None and scale < 1):
        raise InputError(f"there are {len(rows)} rows at scale {scale}: give at least one row and a scale from 1")
    scale = scale or max(1, round(CELL / max(images.shape[-2] for _, images in rows)))
    font = ImageFont.load_default(TEXT)
    labels = [shortened(label, font) for label, _ in rows]
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


def check_row(label: str, images: Tensor) -> None:
    """Check the shape and type of a row."""
    if images.dim() != 4 or 0 in images.shape or images.shape[1] not in (1, 3):
        raise InputError(
            f"row {label!r} has shape {tuple(images.shape)}: give (columns, channels, height, width), with 1 channel "
            "(grey) or 3 (colour)"
        )
    if images.dtype != torch.uint8:
        raise InputError(f"row {label!r} is {images.dtype}, a sheet needs bytes: use (255 * images).round().byte()")


def strip(images: UInt8[Tensor, "columns channels h w"], scale: int) -> UInt8[Tensor, "height width 3"]:
    """Images side by side, enlarged, with white between them."""
    large = images.cpu().repeat_interleave(scale, -2).repeat_interleave(scale, -1)
    framed = torch.nn.functional.pad(large.expand(len(images), 3, *large.shape[-2:]), (0, GAP), value=255)
    return framed.permute(2, 0, 3, 1).flatten(1, 2)[:, :-GAP].contiguous()


def shortened(label: str, font: FreeTypeFont | ImageFont) -> str:
    """A label on one line, cut to the largest width."""
    label = " ".join(label.split())
    if font.getlength(label) <= LABEL:
        return label
    while font.getlength(label + "…") > LABEL:
        label = label[:-1].rstrip()
    return label + "…"


def class_sheet(images: Images, seed: int) -> Image:
    """Some images of each class, one row per class; without labels some of all images."""
    order = torch.randperm(len(images), generator=Generator().manual_seed(seed))
    if not images.classes:
        return contact_sheet([("", row) for row in images.images[order[: COLUMNS**2]].split(COLUMNS)])
    last = len(images.classes) - 1
    rows = []
    for number in torch.linspace(0, last, min(ROWS, last + 1)).round().long().tolist():
        items = order[images.labels[order] == number][:COLUMNS]
        if len(items):
            rows.append((images.classes[number].split(",")[0], images.images[items]))
    return contact_sheet(rows)


def noise_sheet(images: Images, seed: int) -> Image:
    """Two images under each noise over some steps, one row per noise."""
    two = limit(images, min(2, len(images)), seed)
    steps = COLUMNS // len(two)
    rows = [("clean", two.images.repeat_interleave(steps, 0))]
    for name, noise in NOISES.items():
        frames = noise.film(two.images.float() / 255, steps, Generator().manual_seed(seed))
        rows.append((name, (frames.transpose(0, 1).flatten(0, 1) * 255).round().clamp(0, 255).to(torch.uint8)))
    return contact_sheet(rows)
