"""Files that are whole or not there, whenever the process is killed, and files that are what they were."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from reprlib import repr as shortened
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from cascaded.errors import InputError

DIGEST = "sha256"
T = TypeVar("T")


def write_whole(file: Path, write: Callable[[Path], object]) -> None:
    """Write a file so that its name only ever stands for all of it: beside it first, to the disk, then renamed.

    Args:
        file: The file to be. Its folder is made where there is none.
        write: Writes everything to the path that it is handed.
    """
    part = file.with_name(f".{file.name}.{platform.node()}.{os.getpid()}.part")
    try:
        new = not file.parent.exists()
        file.parent.mkdir(parents=True, exist_ok=True)
        _clear_up(file)
        write(part)
        part.chmod(0o666 & ~_umask())  # safetensors keeps its files to the user alone
        flush(part)
        part.replace(file)
        flush(file.parent)
        if new:
            flush(file.parent.parent)  # where the folder's own name stands
    except BaseException as error:
        _forget(part)
        # safetensors reports a full disk as an error of its own, not as OSError
        if isinstance(error, OSError) or type(error).__name__ == "SafetensorError":
            told = getattr(error, "strerror", None) or str(error)
            raise InputError(f"{file} cannot be written ({told}): make room, or choose another place") from error
        raise


def check_writable(folder: Path, size: int = 4 << 20) -> None:
    """Write a file of some bytes into a folder and remove it: a full disk or a read-only folder is an `InputError`."""
    file = folder / f".probe.{platform.node()}.{os.getpid()}"
    try:
        write_whole(file, lambda part: part.write_bytes(bytes(size)))
    except InputError as error:
        reason = getattr(error.__cause__, "strerror", None) or error.__cause__
        raise InputError(f"{folder} cannot be written ({reason}): make room, or choose another folder") from error
    file.unlink()


def write_json(file: Path, content: Any) -> None:
    """Write JSON as people read it, whole or not at all."""
    write_whole(file, lambda part: part.write_text(json.dumps(content, indent=2) + "\n"))


def read_json(file: Path) -> Any:
    """What a JSON file says."""
    try:
        return json.loads(file.read_text())
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}): check the path") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is not JSON ({error}): it is damaged or something else") from error


def with_digest(content: dict[str, Any]) -> dict[str, Any]:
    """The same content and its digest, by which `check_digest` finds damage."""
    rest = {name: value for name, value in content.items() if name != DIGEST}
    # as it is read back: keys are texts there
    told = json.dumps(json.loads(json.dumps(rest)), sort_keys=True)
    return {**rest, DIGEST: hashlib.sha256(told.encode()).hexdigest()}


def is_changed(content: dict[str, Any]) -> bool:
    """Whether content differs from what its digest was computed of."""
    return DIGEST in content and with_digest(content)[DIGEST] != content[DIGEST]


def check_digest(file: Path, content: dict[str, Any], way: str) -> None:
    """That content has the digest it was written with; an older version wrote none."""
    if is_changed(content):
        raise InputError(f"{file} was changed after cascaded wrote it, its digest differs: {way}")


@contextmanager
def parsing(file: Path, way: str) -> Iterator[None]:
    """Values are made from a file's JSON: a key or a type that does not fit becomes one sentence.

    Args:
        file: The file, for the message.
        way: How to get a good one, for the message.
    """
    try:
        yield
    except InputError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        told = f"{type(error).__name__}: {error}"
        raise InputError(f"{file} was changed, it is not what cascaded writes ({told}): {way}") from error


def sha256(file: Path) -> str:
    """The digest of a file's content."""
    with file.open("rb") as opened:
        digest = hashlib.sha256()
        while block := opened.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _umask() -> int:
    """What new files are kept from; the system tells only when it is changed."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def flush(path: Path) -> None:
    """Have a file, or the names in a folder, on the disk itself before going on."""
    if path.is_dir() and os.name == "nt":  # Windows opens no folders
        return
    opened = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _clear_up(file: Path) -> None:
    """Remove what processes of this machine that were killed have left of the same file."""
    for part in file.parent.glob(f".{file.name}.{platform.node()}.*.part"):
        number = part.name.split(".")[-2]
        if number.isdigit() and not _is_alive(int(number)):
            _forget(part)


def _is_alive(process: int) -> bool:
    if os.name == "nt":  # where asking would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _forget(part: Path) -> None:
    try:
        part.unlink(missing_ok=True)
    except OSError:
        return  # the folder itself is out of reach: nothing was written there


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


def check_types(told: Mapping[str, Any], kind: type) -> None:
    """That every field of a dataclass that is told has its type; raises ValueError with the first that has not."""
    hints = get_type_hints(kind)
    for field in fields(kind):
        if field.name in told and not fits(told[field.name], hints[field.name]):
            raise ValueError(f"{field.name} is {shortened(told[field.name])}, not {field.type}")


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type: lists stand for tuples, whole numbers for numbers, and numbers are finite."""
    parts = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return any(fits(value, each) for each in parts)
    if get_origin(hint) is Literal:
        return isinstance(value, str)  # the dataclass says which there are
    if get_origin(hint) is tuple:
        if not isinstance(value, (list, tuple)):
            return False
        hints = parts[:1] * len(value) if parts[-1] is ... else parts
        return len(hints) == len(value) and all(map(fits, value, hints))
    if get_origin(hint) is dict:
        pairs = value.items() if isinstance(value, dict) else [(None, None)]
        return all(fits(name, parts[0]) and fits(each, parts[1]) for name, each in pairs)
    if is_dataclass(hint):
        return isinstance(value, Mapping)
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return type(value) is hint and (hint is not int or abs(value) < 2**63)  # True is an int to isinstance
