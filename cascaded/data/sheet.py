"""A contact sheet: labelled rows of images, to look at what a network is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import UInt8
from torch import Tensor

from cascaded.errors import InputError

if TYPE_CHECKING:  # Pillow is imported when a sheet is drawn
    from PIL.Image import Image
    from PIL.ImageFont import FreeTypeFont, ImageFont

CELL, GAP, TEXT = 64, 4, 14  # pixels: about a cell's side, between cells, height of a letter
LABEL = 200  # pixels: the widest a label can be
INK = (60, 66, 75)


def contact_sheet(
    rows: Sequence[tuple[str, UInt8[Tensor, "columns channels height width"]]], scale: int | None = None
) -> Image:
    """Rows of images with a label at their left, on white; no pixel is smoothed.

    Args:
        rows: A label and its images. Rows may differ in length, and images in size from row to row.
        scale: How many pixels wide a pixel is drawn. None: so many that the largest image is about 64 px high.
    """
    from PIL import Image, ImageDraw, ImageFont

    for label, images in rows:
        check_row(label, images)
    if not rows or (scale is not None and scale < 1):
        raise InputError(
            f"{len(rows)} rows at scale {scale} make no sheet: give one row or more, and a scale of 1 or more"
        )
    if scale is None:
        scale = max(1, round(CELL / max(images.shape[-2] for _, images in rows)))
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
    """A row that can be drawn."""
    if images.dim() != 4 or 0 in images.shape or images.shape[1] not in (1, 3):
        raise InputError(
            f"row {label!r} has shape {tuple(images.shape)}: give (columns, channels, height, width), with 1 channel "
            "(grey) or 3 (colour)"
        )
    if images.dtype != torch.uint8:
        raise InputError(f"row {label!r} is {images.dtype}, a sheet takes bytes: (255 * images).round().byte()")


def strip(images: UInt8[Tensor, "columns channels h w"], scale: int) -> UInt8[Tensor, "height width 3"]:
    """Images side by side, enlarged, white between them."""
    columns = images.shape[0]
    large = images.cpu().repeat_interleave(scale, -2).repeat_interleave(scale, -1)
    framed = torch.nn.functional.pad(large.expand(columns, 3, *large.shape[-2:]), (0, GAP), value=255)
    return framed.permute(2, 0, 3, 1).flatten(1, 2)[:, :-GAP].contiguous()


def shortened(label: str, font: FreeTypeFont | ImageFont) -> str:
    """As much of a label as there is room for, on one line."""
    label = " ".join(label.split())
    if font.getlength(label) <= LABEL:
        return label
    while font.getlength(label + "…") > LABEL:
        label = label[:-1].rstrip()
    return label + "…"
