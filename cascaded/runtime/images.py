"""Images of the user: found, read safely, and resized to the input of a network."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageOps

from cascaded.data.decode import UnreadableError, decode
from cascaded.data.folder import IMAGES, read_bytes
from cascaded.errors import InputError

MAX_BYTES = 10**9
"""Larger files are not read into memory."""

SUFFIX = "-prediction.png"
"""File names of figures end with this."""

SOFTWARE = "cascaded predict"
"""Metadata in the figures, by which they are recognized."""

MAX_NAME = 40
"""Characters of an image's name that are kept in the name of its figure."""


@dataclass(frozen=True)
class UserImage:
    """An image that was read from a file, upright, transparent pixels on white."""

    file: Path
    pixels: UInt8[np.ndarray, "height width 3"]

    def resize(self, shape: Sequence[int]) -> UInt8[np.ndarray, "height width channels"]:
        """The center of the image, resized to a network's input.

        Args:
            shape: Channels (3, or 1 for gray), height and width.
        """
        channels, height, width = shape
        if channels not in (1, 3):
            raise InputError(
                f"the network expects images with {channels} channels, {self.file} can be converted to 1 (gray) or 3 "
                "(RGB): choose another --model"
            )
        image = ImageOps.fit(Image.fromarray(self.pixels), (width, height), Image.Resampling.BILINEAR)
        return np.array(image.convert("L" if channels == 1 else "RGB")).reshape(height, width, channels)


def read_image(file: Path) -> UserImage:
    """Read a PNG, JPEG, WebP or any other format that Pillow reads; of an animation the first frame."""
    try:
        if file.stat().st_size > MAX_BYTES:
            raise UnreadableError(f"it has more than {MAX_BYTES // 10**6} million bytes")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # damaged metadata does not matter
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            return decode_image(read_bytes(file), file)
    except UnreadableError as error:
        raise InputError(
            f"{file} cannot be read as an image ({str(error).rstrip('.')}): give a complete PNG, JPEG or WebP file of "
            "at most 89 million pixels"
        ) from error


def decode_image(encoded: bytes, file: Path) -> UserImage:
    """An image from the content of a file; raises `UnreadableError`."""
    return UserImage(file, on_white(decode(encoded).pixels.transpose(1, 2, 0), encoded))


def on_white(pixels: UInt8[np.ndarray, "height width 3"], encoded: bytes) -> UInt8[np.ndarray, "height width 3"]:
    """Blend transparent pixels with white, as a page shows them."""
    with Image.open(io.BytesIO(encoded)) as opened:
        if not opened.has_transparency_data or opened.mode.startswith("I"):  # 16-bit gray has no alpha in Pillow
            return pixels
        alpha = ImageOps.exif_transpose(opened).convert("RGBA").getchannel("A")
    page = Image.new("RGB", alpha.size, "white")
    page.paste(Image.fromarray(pixels), mask=alpha)
    return np.asarray(page)


def find_images(paths: Sequence[Path]) -> list[Path]:
    """Image files: files as given, and the images directly in folders, by name; without duplicates."""
    files: dict[Path, Path] = {}
    for path in paths:
        try:
            inside = _images_in(path) if path.is_dir() else [path]
            exists, is_regular = path.exists(), path.is_dir() or path.is_file()
        except OSError as error:
            raise InputError(f"{path} cannot be read ({error.strerror}): check the path and its permissions") from error
        if not is_regular:  # a device may never end
            problem = f"{path} is neither a file nor a folder" if exists else f"there is no file or folder {path}"
            raise InputError(f"{problem}: give the path of an image")
        if not inside:
            raise InputError(f"{path} contains no images: add .png, .jpg or .webp files, or give another folder")
        for file in inside:
            files.setdefault(file.resolve(), file)
    return list(files.values())


def _images_in(folder: Path) -> list[Path]:
    """The images in a folder, without hidden ones and figures of predictions."""
    files = (each for each in sorted(folder.iterdir()) if each.suffix.lower() in IMAGES and each.is_file())
    return [file for file in files if not file.name.startswith(".") and not is_figure(file)]


def is_figure(file: Path) -> bool:
    """Whether a file is a figure that `cascaded predict` wrote."""
    if not file.name.endswith(SUFFIX):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(file) as opened:
                return opened.info.get("Software") == SOFTWARE
    except Exception:  # not an image, or too large: Pillow raises many types
        return False


def figure_files(files: Sequence[Path], out: Path) -> dict[Path, Path]:
    """The figure's file for every image; equal names are numbered. Other files are never overwritten."""
    targets: dict[Path, Path] = {}
    names: set[str] = set()
    for file in files:
        stem = name = file.stem[:MAX_NAME]
        while name.casefold() in names:  # some file systems ignore case
            name = f"{stem}-{len(names) + 1}"
        names.add(name.casefold())
        targets[file] = out / f"{name}{SUFFIX}"
    try:
        if out.exists() and not out.is_dir():
            raise InputError(f"--out is {out}, which is a file: give a folder")
        for target in targets.values():
            if target.resolve() in {file.resolve() for file in files}:
                raise InputError(f"{target} is one of the images and would be overwritten: give a folder with --out")
            if target.exists() and not is_figure(target):
                raise InputError(f"{target} exists and is not a figure of this command: move it, or give another --out")
    except OSError as error:
        raise InputError(f"--out is {out}, which cannot be used ({error.strerror}): give another folder") from error
    return targets
