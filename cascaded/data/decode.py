"""From the bytes of an image file to pixels: upright, grey or colour, and of the size that was asked for."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:  # Pillow is imported when something is decoded
    from PIL.Image import Image

Fit = Literal["resize", "crop"]
GREY = ("1", "L", "LA", "La", "I", "I;16", "I;16B")

SIXTEEN = ("PNG", "PPM")
"""Formats whose grey is white at 65535 also where Pillow opens it as mode I: any PPM, and PNG before Pillow 10.3."""


class UnreadableError(Exception):
    """Bytes that are not an image; what says so is the message."""


class Decoded(NamedTuple):
    """Three channels of pixels, and whether one would do."""

    pixels: np.ndarray
    grey: bool


def decode(encoded: bytes, size: int | None = None, fit: Fit = "resize") -> Decoded:
    """Pixels (3, height, width) of an encoded image, turned the way its camera was held.

    Args:
        encoded: A PNG, JPEG, WebP or anything else that Pillow knows.
        size: Height and width of the result; None keeps those of the image.
        fit: "resize" scales the shorter side to `size` and cuts what is over off the longer one; "crop" cuts the middle
            out as it is, and scales only images that are too small for that.
    """
    from PIL import Image, ImageOps

    try:
        with Image.open(io.BytesIO(encoded)) as opened:
            grey = opened.mode in GREY
            check_white(opened)
            image = colour(ImageOps.exif_transpose(opened))
    # Pillow's readers fail in many ways on damaged bytes: SyntaxError, struct.error, KeyError, bomb warnings ...
    except Exception as error:
        told = "not an image" if isinstance(error, Image.UnidentifiedImageError) else str(error).strip().split("\n")[0]
        raise UnreadableError(told or type(error).__name__) from error
    if size is not None and image.size != (size, size):
        image = fitted(image, size, fit)
    return Decoded(np.asarray(image).transpose(2, 0, 1), grey)


def check_white(image: Image) -> None:
    """Refuse grey that ends nowhere in particular: from 0 to 1 or to 255 it would come out black."""
    if image.mode == "F" or (image.mode == "I" and image.format not in SIXTEEN):
        raise UnreadableError("its grey has 32 bits or a sign, and so no agreed white: save it with 8 or 16 bits")


def colour(image: Image) -> Image:
    """Red, green and blue."""
    from PIL import Image

    if image.mode.startswith("I"):  # 16 bits a pixel: Pillow itself would clip them at 255
        levels = np.asarray(image).astype(np.int64) // 257
        image = Image.fromarray(levels.clip(0, 255).astype(np.uint8))
    if "transparency" in image.info:
        image = image.convert("RGBA")
    return image.convert("RGB")


def fitted(image: Image, size: int, fit: Fit) -> Image:
    """A square of this size, from the middle of the image."""
    from PIL import Image, ImageOps

    if fit == "crop" and min(image.size) >= size:
        left, top = ((side - size) // 2 for side in image.size)
        return image.crop((left, top, left + size, top + size))
    return ImageOps.fit(image, (size, size), Image.Resampling.BILINEAR)
