"""Files that are complete or do not exist, whenever the process is killed; and dataclasses from JSON."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from errno import EROFS
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import msgspec

from cascaded.errors import InputError

T = TypeVar("T")


def write_whole(file: Path, write: Callable[[Path], object]) -> None:
    """Write a file that is complete or does not exist: under another name first, flushed to the disk, then renamed.

    Args:
        file: The file. Its folder is made if there is none.
        write: Writes the content to the path that it is given.
    """
    part = _part_of(file)
    try:
        new = not file.parent.exists()
        file.parent.mkdir(parents=True, exist_ok=True)
        _remove_unfinished(file)
        write(part)
        part.chmod(0o666 & ~_umask())  # safetensors keeps its files to the user alone
        flush(part)
        part.replace(file)
        flush(file.parent)
        if new:
            flush(file.parent.parent)  # which has the name of the new folder
    except BaseException as error:
        _delete(part)
        # safetensors reports a full disk as an error of its own, not as OSError
        if isinstance(error, OSError) or type(error).__name__ == "SafetensorError":
            raise not_written(file, error) from error
        raise


def write_folder(folder: Path, write: Callable[[Path], T]) -> T:
    """Write a folder that is complete or does not exist: under another name first, flushed to the disk, then renamed.

    Args:
        folder: The folder, which does not exist or is empty.
        write: Writes the files to the folder that it is given; what it returns is returned.
    """
    part = _part_of(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_unfinished(folder)
        part.mkdir()
        result = write(part)
        for file in part.iterdir():
            flush(file)
        flush(part)
        if folder.exists():
            folder.rmdir()
        part.rename(folder)
        flush(folder.parent)
    except BaseException as error:
        _delete(part)
        if isinstance(error, OSError):
            raise not_written(folder, error) from error
        raise
    return result


def not_written(path: Path, error: BaseException) -> InputError:
    """The error for a file or folder that cannot be written, from the system's or, on a full disk, a library's own."""
    is_denied = isinstance(error, PermissionError) or getattr(error, "errno", None) == EROFS
    fix = "make it writable" if is_denied else "make room"
    reason = getattr(error, "strerror", None) or error
    return InputError(f"{path} cannot be written ({reason}): {fix}, or choose another folder")


def check_writable(folder: Path, size: int = 4 << 20) -> None:
    """Write a file of some bytes into a folder and remove it: a full disk or a read-only folder is an `InputError`."""
    file = folder / f".probe.{platform.node()}.{os.getpid()}"
    try:
        write_whole(file, lambda part: part.write_bytes(bytes(size)))
    except InputError as error:
        raise not_written(folder, error.__cause__ or error) from error
    file.unlink()


def write_json(file: Path, content: Any) -> None:
    """Write indented JSON, completely or not at all."""
    write_whole(file, lambda part: part.write_text(json.dumps(content, indent=2) + "\n"))


def read_json(file: Path) -> Any:
    """The content of a JSON file."""
    try:
        return json.loads(file.read_text())
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}): check the path") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is not JSON ({error}): it is damaged or another kind of file") from error


def write_tensors(file: Path, tensors: Mapping[str, Any], metadata: Mapping[str, Any]) -> None:
    """Write arrays, or tensors on the CPU, and metadata (JSON) as safetensors, whole or not at all."""
    import numpy as np
    from safetensors.numpy import save_file

    arrays = {name: np.asarray(each, order="C") for name, each in tensors.items()}
    text = {"cascaded": msgspec.json.encode(metadata).decode()}
    write_whole(file, lambda part: save_file(arrays, part, text))


def read_tensors(
    file: Path | str, fix: str = "check the path", *, framework: str = "np", values: bool = True
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Metadata and arrays that `write_tensors` wrote. Nothing is unpickled.

    Args:
        file: The file.
        fix: How to get a good one, for the error message.
        framework: `np` for arrays, `pt` for tensors, which are mapped into memory instead of read.
        values: Read the arrays; else the metadata only.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework) as opened:
            metadata = json.loads((opened.metadata() or {}).get("cascaded", "{}"))
            names = opened.keys() if values else ()
            return dict(metadata), {name: opened.get_tensor(name) for name in names}
    except (OSError, SafetensorError, ValueError, TypeError, RecursionError) as error:
        raise InputError(f"{file} cannot be read ({error}): {fix}") from error


def sha256(file: Path) -> str:
    """SHA-256 of a file's content."""
    with file.open("rb") as opened:
        digest = hashlib.sha256()
        while block := opened.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _umask() -> int:
    """The umask, which the system returns only when it is changed."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def flush(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk."""
    if path.is_dir() and os.name == "nt":  # Windows cannot open folders
        return
    opened = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _part_of(path: Path) -> Path:
    """The name under which this process writes a file or a folder until it is complete."""
    return path.with_name(f".{path.name}.{platform.node()}.{os.getpid()}.part")


def _remove_unfinished(file: Path) -> None:
    """Remove the unfinished files and folders of killed processes of this machine."""
    for part in file.parent.glob(f".{file.name}.{platform.node()}.*.part"):
        number = part.name.split(".")[-2]
        if number.isdigit() and not _is_alive(int(number)):
            _delete(part)


def _is_alive(process: int) -> bool:
    if os.name == "nt":  # os.kill would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _delete(part: Path) -> None:
    try:
        if part.is_dir():
            shutil.rmtree(part)
        part.unlink(missing_ok=True)
    except OSError:
        return  # the folder cannot be accessed: nothing was written there


# --- dataclasses from JSON


def from_json(content: Any, kind: type[T]) -> T:
    """A dataclass from what JSON gave: unknown keys and other types are refused with a `ValueError`."""
    _check_keys(content, kind)
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error


def _check_keys(content: Any, kind: Any) -> None:
    """That there are no keys that a dataclass, or one within it, does not have: msgspec ignores them."""
    if not (is_dataclass(kind) and isinstance(content, Mapping)):
        return
    hints = get_type_hints(kind)
    if unknown := sorted(set(content) - set(hints)):
        raise ValueError(f"unknown key {', '.join(unknown)}: written by a newer version of cascaded, update this one")
    for name, value in content.items():
        _check_keys(value, hints[name])
