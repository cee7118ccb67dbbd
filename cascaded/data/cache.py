"""Decoded images on disk: safetensors, written atomically, and mapped into memory instead of read."""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from cascaded.data.images import Images
from cascaded.errors import CascadedWarning, InputError
from cascaded.files import write_whole

FORMAT = 2


def cache_folder(given: Path | None = None) -> Path:
    """The folder of decoded images: the given one, or $CASCADED_CACHE, or ~/.cache/cascaded."""
    folder = given or os.environ.get("CASCADED_CACHE")
    try:
        return Path(folder) if folder else Path.home() / ".cache" / "cascaded"
    except RuntimeError as error:  # a user without a home, as in some containers
        raise InputError("there is no home folder for decoded images: set CASCADED_CACHE to a folder") from error


def cache_file(folder: Path, request: dict[str, Any], origin: Any) -> Path:
    """The file of a request; its name contains a digest of the request and of the origin of the images."""
    content = json.dumps([FORMAT, request, origin], sort_keys=True)
    key = hashlib.sha256(content.encode()).hexdigest()[:16]
    return folder / f"{stem(request['name'], request['split'])}-{key}.safetensors"


def latest(folder: Path, request: dict[str, Any]) -> Path | None:
    """The newest file for a request, made from any version of the source."""
    files = folder.glob(f"{stem(request['name'], request['split'])}-*.safetensors")
    for file in sorted(files, key=lambda file: file.stat().st_mtime, reverse=True):
        if (header(file) or {}).get("request") == json.loads(json.dumps(request)):
            return file
    return None


def stem(name: str, split: str) -> str:
    """The first part of file names."""
    short = Path(name).name if Path(name).is_absolute() or name.startswith(".") else name.replace("/", "--")
    return re.sub(r"[^\w.-]", "_", f"{short}-{split}")


def store(file: Path, images: Images, request: dict[str, Any]) -> None:
    """Write images and their metadata."""
    from safetensors.torch import save_file

    tensors = {name: value for name, value in vars(images).items() if isinstance(value, torch.Tensor)}
    fields = {name: value for name, value in vars(images).items() if isinstance(value, (str, tuple))}
    metadata = {"format": FORMAT, "fields": fields, "layout": layout(tensors), "request": request}
    try:
        write_whole(file, lambda part: save_file(tensors, part, {"cascaded": json.dumps(metadata)}))
    except InputError as error:
        raise unwritable(file.parent, error.__cause__ or error) from error


def layout(tensors: dict[str, Any]) -> dict[str, list[Any]]:
    """Types and shapes."""
    return {name: [str(tensor.dtype), *tensor.shape] for name, tensor in tensors.items()}


def unwritable(folder: Path, error: BaseException) -> InputError:
    """The error for a cache that is full, read-only or no folder."""
    reason = getattr(error, "strerror", None) or error
    return InputError(f"{folder} cannot be written ({reason}): free some space or set CASCADED_CACHE to another folder")


def fetch(file: Path) -> Images | None:
    """The images in a file, mapped; None, with a warning, if it is damaged."""
    from safetensors import safe_open

    if not file.exists():
        return None
    metadata = header(file)
    if metadata is not None:
        with safe_open(file, "pt") as opened:
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        with suppress(InputError, KeyError, TypeError, AttributeError):  # a file of something else
            if layout(tensors) == metadata["layout"]:
                fields = {key: tuple(x) if isinstance(x, list) else x for key, x in metadata["fields"].items()}
                return Images(**{**tensors, **fields})
    warnings.warn(f"{file} is damaged: the images are decoded again", CascadedWarning, stacklevel=2)
    return None


def header(file: Path) -> dict[str, Any] | None:
    """The metadata of a file; None if it is damaged."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, "pt") as opened:
            metadata = json.loads((opened.metadata() or {})["cascaded"])
            return metadata if metadata["format"] == FORMAT else None
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, RecursionError):
        return None
