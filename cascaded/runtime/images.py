"""One's own pictures: found, read the way the network's own images were, and brought to the form it takes."""

from __future__ import annotations

import hashlib
import io
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt8

from cascaded.data.decode import UnreadableError, decode
from cascaded.data.folder import IMAGES, read
from cascaded.errors import InputError

if TYPE_CHECKING:  # torch is imported when a picture is shown
    from torch import Tensor

BYTES = 10**9
"""More no picture has that Pillow would decode."""

ENDING = "-over-time.png"
"""How the names of drawn answers end."""

KEPT = 150
"""Bytes of a picture's name that its drawing keeps: of the 255 of a file's name, `write_whole` needs about 80."""

MAKER = "cascaded predict"
"""What a drawn answer says of its origin: the mark by which it is known again."""


@dataclass(frozen=True)
class Picture:
    """A picture that was read.

    Attributes:
        file: Where it is.
        pixels: Its colours, upright, on white where it is transparent.
    """

    file: Path
    pixels: UInt8[np.ndarray, "height width 3"]

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        height, width, _ = self.pixels.shape
        return width, height

    def seen(self, shape: Sequence[int]) -> UInt8[Tensor, "channels height width"]:
        """What a network sees of it: the middle, scaled, and without colours where it knows none.

        Args:
            shape: Channels, height and width of the images that the network takes.
        """
        import torch
        from PIL import Image, ImageOps

        channels, height, width = shape
        if channels not in (1, 3):
            raise InputError(
                f"this network takes images of {channels} channels, {self.file} can be made grey (1) or colour (3): "
                "choose another --model"
            )
        image = ImageOps.fit(Image.fromarray(self.pixels), (width, height), Image.Resampling.BILINEAR)
        levels = np.array(image.convert("L" if channels == 1 else "RGB")).reshape(height, width, channels)
        return torch.from_numpy(levels).permute(2, 0, 1)


def read_picture(file: Path) -> Picture:
    """Read a picture: a PNG, JPEG, WebP or anything else that Pillow knows; of a moving one the first frame."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # damaged notes beside the pixels are nobody's concern here
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            encoded = read_all(file)
            pixels = decode(encoded).pixels.transpose(1, 2, 0)
            return Picture(file, on_white(pixels, encoded))
    except UnreadableError as error:
        told = str(error).rstrip(".")
        raise InputError(
            f"{file} cannot be read as a picture ({told}): give a whole PNG, JPEG or WebP file, of at most 89 million "
            "pixels"
        ) from error


def read_all(file: Path) -> bytes:
    """The bytes of a file that could be a picture; films and archives are not read into memory first."""
    if file.stat().st_size > BYTES:
        raise UnreadableError(f"it has more than {BYTES // 10**6} million bytes")
    return read(file)


def on_white(pixels: UInt8[np.ndarray, "height width 3"], encoded: bytes) -> UInt8[np.ndarray, "height width 3"]:
    """A picture as a page shows it: `decode` takes the colours of what cannot be seen for what they are."""
    from PIL import Image, ImageOps

    with Image.open(io.BytesIO(encoded)) as opened:
        if not opened.has_transparency_data or opened.mode.startswith("I"):  # 16 bits of grey have no other form
            return pixels
        alpha = ImageOps.exif_transpose(opened).convert("RGBA").getchannel("A")
    page = Image.new("RGB", alpha.size, "white")
    page.paste(Image.fromarray(pixels), mask=alpha)
    return np.asarray(page)


def find_pictures(places: Sequence[Path]) -> list[Path]:
    """Files as they are given, and the pictures in folders, by name; each once."""
    found: dict[Path, Path] = {}
    for place in places:
        try:
            inside = pictures_in(place) if place.is_dir() else [place]
            is_there, is_usual = place.exists(), place.is_dir() or place.is_file()
        except OSError as error:
            raise InputError(f"{place} cannot be read ({error.strerror}): check the path and its rights") from error
        if not is_usual:  # a device may never end
            told = f"{place} is neither a file nor a folder" if is_there else f"there is no file or folder {place}"
            raise InputError(f"{told}: give the path of a picture")
        if not inside:
            raise InputError(f"{place} holds no pictures: put .png, .jpg or .webp files there, or give another folder")
        for file in inside:
            found.setdefault(file.resolve(), file)
    return list(found.values())


def pictures_in(folder: Path) -> list[Path]:
    """The pictures in a folder, hidden ones and drawn answers left out; whatever else is there is left alone."""
    files = (each for each in sorted(folder.iterdir()) if each.suffix.lower() in IMAGES and each.is_file())
    return [file for file in files if not file.name.startswith(".") and not is_drawn(file)]


def is_drawn(file: Path) -> bool:
    """Whether a file is an answer that was drawn here."""
    from PIL import Image

    if not file.name.endswith(ENDING):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is wrong with it is said when it is read
            with Image.open(file) as opened:
                return opened.info.get("Software") == MAKER
    except Exception:  # no picture, or too large a one: Pillow's readers fail in many ways
        return False


def targets(files: Sequence[Path], out: Path) -> dict[Path, Path]:
    """Where the answer to each picture is drawn; pictures of one name are numbered.

    Args:
        files: The pictures.
        out: The folder for their answers. What is there and was not drawn here is never written over.
    """
    names: dict[Path, Path] = {}
    taken: set[str] = set()
    for file in files:
        stem, number = short(file.stem), 1
        name = stem
        while name.casefold() in taken:  # some file systems take Dog and dog for the same
            number += 1
            name = f"{stem}-{number}"
        taken.add(name.casefold())
        names[file] = out / f"{name}{ENDING}"
    try:
        check_targets(names, out)
    except OSError as error:
        raise InputError(f"--out is {out}, which cannot be used ({error.strerror}): give another folder") from error
    return names


def short(stem: str) -> str:
    """As much of a name as there is room for; six letters of its digest tell it from others that begin alike."""
    encoded = os.fsencode(stem)
    if len(encoded) <= KEPT:
        return stem
    digest = hashlib.sha256(encoded).hexdigest()[:6]
    while len(os.fsencode(stem)) > KEPT - len(digest) - 1:
        stem = stem[:-1]
    return f"{stem}-{digest}"


def check_targets(names: dict[Path, Path], out: Path) -> None:
    """Nothing is drawn over a picture, or over what was not drawn here."""
    if out.exists() and not out.is_dir():
        raise InputError(f"--out is {out}, which is a file: give a folder")
    given = {file.resolve() for file in names}
    for target in names.values():
        if target.resolve() in given:
            raise InputError(f"{target} is one of the pictures and would be drawn over: give a folder with --out")
        if target.exists() and not is_drawn(target):
            raise InputError(f"{target} is there and was not drawn here: move it, or give another folder with --out")
