"""Decode image files: upright, gray or color, resized."""

from __future__ import annotations

import io
import random
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from cascaded.errors import first_line

if TYPE_CHECKING:  # Pillow is imported when something is decoded
    from PIL.Image import Image

Fit = Literal["resize", "random-crop"]
GRAY = ("1", "L", "LA", "La", "I", "I;16", "I;16B")

SIXTEEN = ("PNG", "PPM")
"""Formats in which white is 65535 also if Pillow opens them as mode I: any PPM, and PNG before Pillow 10.3."""


class UnreadableError(Exception):
    """Bytes that are not an image; the message is the reason."""


class Decoded(NamedTuple):
    """Three channels of pixels, and whether the image is gray."""

    pixels: np.ndarray
    gray: bool


def decode(encoded: bytes, size: int | None = None, fit: Fit = "resize", row: int = 0) -> Decoded:
    """Pixels (3, height, width) of an encoded image, rotated as its EXIF data says.

    Args:
        encoded: A PNG, JPEG, WebP or another format that Pillow reads.
        size: Height and width of the result; None keeps the size of the image.
        fit: "resize" resizes the shorter side to `size`, then crops the center; "random-crop" only crops, at a random
            position, and resizes images that are too small for that.
        row: Seed of the random position: the row of the image in its source, so that it is always cropped alike.
    """
    from PIL import Image, ImageOps

    try:
        with Image.open(io.BytesIO(encoded)) as opened:
            gray = opened.mode in GRAY
            image = color(ImageOps.exif_transpose(opened), opened.format)
    # Pillow's readers fail in many ways on damaged bytes: SyntaxError, struct.error, KeyError, bomb warnings ...
    except Exception as error:
        unknown = isinstance(error, Image.UnidentifiedImageError)
        raise UnreadableError("not an image" if unknown else first_line(error)) from error
    if size is not None and image.size != (size, size):
        image = fitted(image, size, fit, row)
    return Decoded(np.asarray(image).transpose(2, 0, 1), gray)


def color(image: Image, form: str | None) -> Image:
    """The image in RGB; refuses gray without a defined white: if its values end at 1 or 255, it would become black."""
    from PIL import Image

    if image.mode == "F" or (image.mode == "I" and form not in SIXTEEN):
        raise UnreadableError("32-bit or signed gray has no defined white: save it with 8 or 16 bits")
    if image.mode.startswith("I"):  # 16 bits per pixel: Pillow itself would clip them at 255
        levels = np.asarray(image).astype(np.int64) // 257
        image = Image.fromarray(levels.clip(0, 255).astype(np.uint8))
    if "transparency" in image.info:
        image = image.convert("RGBA")
    return image.convert("RGB")


def fitted(image: Image, size: int, fit: Fit, row: int) -> Image:
    """A square of this size, from the center of the image or from a random position."""
    from PIL import Image, ImageOps

    if fit == "random-crop" and min(image.size) >= size:
        draw = random.Random(row)
        left, top = (draw.randint(0, side - size) for side in image.size)
        return image.crop((left, top, left + size, top + size))
    return ImageOps.fit(image, (size, size), Image.Resampling.BILINEAR)
