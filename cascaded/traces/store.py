"""Traces on disk: safetensors whose header tells the origin; written as they are recorded, mapped when read.

The length of everything is known before the first image is shown. So the file is laid out at once, under another name,
and filled in place, chunk by chunk; a small file beside it tells how far. When all is there it gets its digest and its
name. Killed at any moment, a recording goes on after the last chunk that was told. Nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from cascaded.errors import InputError
from cascaded.files import flush, read_json, write_json
from cascaded.traces.config import Origin
from cascaded.traces.trace import Trace

FORMAT = 1
ABOUT, DIGEST = "cascaded", "sha256"  # what the header holds besides shapes
KINDS = {"I64": np.int64, "F32": np.float32, "F16": np.float16}
NAMES = {np.dtype(kind): name for name, kind in KINDS.items()}
ARRAYS = ("labels", "indices", "logits", "embeddings", "head")  # those of eight bytes first: all are aligned


@dataclass(frozen=True)
class Form:
    """Shape and kind of each array of a trace, known before it is recorded."""

    arrays: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]

    @classmethod
    def of(cls, steps: int, items: int, classes: int, features: int | None = None, half: bool = False) -> Form:
        """The arrays of a trace of this size; `features` of them where embeddings are kept."""
        real, whole = np.dtype(np.float16 if half else np.float32), np.dtype(np.int64)
        arrays = {"labels": (whole, (items,)), "indices": (whole, (items,)), "logits": (real, (steps, items, classes))}
        if features is not None:
            arrays |= {"embeddings": (real, (items, features)), "head": (np.dtype(np.float32), (classes, features))}
        return cls(arrays)

    def header(self, origin: Origin, digest: str = "") -> bytes:
        """The beginning of the file, padded so that what follows is aligned; its length is the same with any digest."""
        told: dict[str, Any] = {
            "__metadata__": {
                ABOUT: json.dumps({"format": FORMAT, "origin": origin.to_json()}),
                DIGEST: digest.ljust(64),
            }
        }
        end = 0
        for name, (kind, shape) in self.arrays.items():
            start, end = end, end + kind.itemsize * int(np.prod(shape))
            told[name] = {"dtype": NAMES[kind], "shape": list(shape), "data_offsets": [start, end]}
        text = json.dumps(told).encode()
        text += b" " * (-len(text) % 8)
        return len(text).to_bytes(8, "little") + text

    def mapped(self, file: Path, start: int, mode: str) -> dict[str, np.ndarray]:
        """The arrays, mapped from a file in which they begin at `start`."""
        arrays = {}
        for name, (kind, shape) in self.arrays.items():
            arrays[name] = np.memmap(file, kind, mode, start, shape)  # pyright: ignore[reportCallIssue, reportArgumentType]
            start += arrays[name].nbytes
        return arrays


class Recording:
    """A trace that is being written.

    Args:
        file: What it will be called.
        form: The arrays it will have.
        origin: Where it comes from; a recording that was interrupted goes on only if this is the same.
        portions: How many items are written at a time; only if that is the same as well.
    """

    def __init__(self, file: Path, form: Form, origin: Origin, portions: int = 0):
        self.file, self.form, self.origin, self.portions = file, form, origin, portions
        self.part, self.note = file.with_suffix(".part"), note_of(file)
        self.items = form.arrays["labels"][1][0]
        self.header = form.header(origin)
        self.done = self._done_before()
        if not self.done:
            self._lay_out()
        self.arrays = form.mapped(self.part, len(self.header), "r+")

    def _done_before(self) -> int:
        """How many items an interrupted recording of the very same has left."""
        if not (self.part.exists() and self.note.exists()):
            return 0
        try:
            told = read_json(self.note)
            same = told["header"] == self._key() and type(told["done"]) is int and 0 <= told["done"] <= self.items
        except (InputError, KeyError, TypeError):  # a damaged note: nothing is known to be recorded
            return 0
        return told["done"] if same and self.part.stat().st_size == self._size() else 0

    def _key(self) -> str:
        return hashlib.sha256(self.header + str(self.portions).encode()).hexdigest()

    def _size(self) -> int:
        return len(self.header) + sum(kind.itemsize * int(np.prod(shape)) for kind, shape in self.form.arrays.values())

    def _lay_out(self) -> None:
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.note.unlink(missing_ok=True)  # first: what it told is of another file
            with self.part.open("wb") as opened:
                opened.write(self.header)
                if hasattr(os, "posix_fallocate"):  # a full disk shows now and not, as a crash, when it is mapped
                    os.posix_fallocate(opened.fileno(), 0, self._size())
                opened.truncate(self._size())
        except OSError as error:
            if self.part.exists():
                self.part.unlink()
            size = f"{self._size() / 2**20:,.1f} MiB"
            raise InputError(
                f"{self.file} cannot be written ({error.strerror}), it needs {size}: make room, or choose another place"
            ) from error

    def write(self, start: int, **parts: np.ndarray) -> None:
        """Fill in the items from `start` on; logits have them on their second axis, all others on their first."""
        for name, values in parts.items():
            if name == "head":
                self.arrays[name][:] = values
            elif name == "logits":
                self.arrays[name][:, start : start + values.shape[1]] = values
            else:
                self.arrays[name][start : start + len(values)] = values

    def keep(self, done: int) -> None:
        """Have everything so far on the disk, and only then say so."""
        for array in self.arrays.values():
            array.flush()  # pyright: ignore[reportAttributeAccessIssue]
        write_json(self.note, {"header": self._key(), "done": done})
        self.done = done

    def finish(self) -> None:
        """Give the file its digest and its name."""
        self.keep(self.items)
        digest = digest_of(self.arrays)
        self.arrays = {}
        with self.part.open("r+b") as opened:
            opened.write(self.form.header(self.origin, digest))
        flush(self.part)
        self.part.replace(self.file)
        flush(self.file.parent)
        self.note.unlink(missing_ok=True)


def note_of(file: Path) -> Path:
    """What tells how far a trace is while it is recorded. Killed at the very end, it may outlive the recording."""
    return file.with_suffix(".part.json")


def digest_of(arrays: Mapping[str, np.ndarray]) -> str:
    """A digest of all values; an array at a time, a step at a time, so that nothing is read whole."""
    digest = hashlib.sha256()
    for name in ARRAYS:
        if name in arrays:
            for row in arrays[name] if arrays[name].ndim == 3 else [arrays[name]]:
                digest.update(np.ascontiguousarray(row).data)
    return digest.hexdigest()


def save_trace(trace: Trace, file: Path | str) -> None:
    """Write a trace that is in memory: whole, or not at all."""
    arrays = {name: getattr(trace, name) for name in ARRAYS if getattr(trace, name) is not None}
    arrays = {name: _storable(values) for name, values in arrays.items()}
    recording = Recording(
        Path(file), Form({name: (values.dtype, values.shape) for name, values in arrays.items()}), trace.origin
    )
    recording.write(0, **arrays)
    recording.finish()


def _storable(values: np.ndarray) -> np.ndarray:
    kind = np.float32 if values.dtype == np.float64 else np.int64 if values.dtype.kind == "i" else values.dtype
    return np.ascontiguousarray(values, dtype=kind)


def load_trace(file: Path | str) -> Trace:
    """A trace from its file, mapped into memory; refused if it is not what was written."""
    file = Path(file)
    told, form, start = _opened(file)
    arrays = form.mapped(file, start, "r")
    if told[DIGEST] != digest_of(arrays):
        raise InputError(f"{file} is not what was recorded, its digest differs: it is damaged, record it again")
    return Trace(origin=_origin(file, told), **arrays)


@dataclass(frozen=True)
class Header:
    """What a trace tells of itself: where it came from, how large it is, and a digest of all its values."""

    origin: Origin
    steps: int
    items: int
    embeddings: bool
    half: bool
    digest: str


def read_header(file: Path | str) -> Header:
    """What a trace tells of itself; its values are not read."""
    told, form, _ = _opened(Path(file))
    kind, (steps, items, _) = form.arrays["logits"]
    half = kind == np.float16
    return Header(_origin(Path(file), told), steps, items, "embeddings" in form.arrays, half, told[DIGEST])


def _opened(file: Path) -> tuple[dict[str, str], Form, int]:
    """What a file says about itself, checked by safetensors; and where its arrays begin."""
    try:
        with safe_open(file, "np") as opened:
            told = opened.metadata() or {}
        with file.open("rb") as raw:
            length = int.from_bytes(raw.read(8), "little")
            header = json.loads(raw.read(length))
    except (OSError, SafetensorError, ValueError, RecursionError) as error:
        way = "check the path" if isinstance(error, OSError) else "it is truncated or something else, record it again"
        raise InputError(f"{file} is no trace ({error}): {way}") from error
    if ABOUT not in told or DIGEST not in told or "logits" not in header:
        raise InputError(f"{file} is a safetensors file but no trace: give one that cascaded record wrote")
    header.pop("__metadata__")
    if unknown := [each["dtype"] for each in header.values() if each["dtype"] not in KINDS]:
        raise InputError(f"{file} holds {unknown[0]}, a trace holds {', '.join(KINDS)}: record it again")
    shape = header["logits"]["shape"]
    if "labels" not in header or not set(header) <= set(ARRAYS) or len(shape) != 3 or 0 in shape:
        raise InputError(f"{file} holds {', '.join(header)} and logits of shape {shape}: give an unchanged trace")
    by_place = sorted(header.items(), key=lambda each: each[1]["data_offsets"][0])
    form = Form({name: (np.dtype(KINDS[each["dtype"]]), tuple(each["shape"])) for name, each in by_place})
    return told, form, 8 + length


def _origin(file: Path, told: Mapping[str, str]) -> Origin:
    try:
        about = json.loads(told[ABOUT])
        if about["format"] != FORMAT:
            raise InputError(f"{file} is a trace of format {about['format']}, this cascaded reads {FORMAT}: update it")
        return Origin.from_json(about["origin"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{file} does not tell where it came from ({error}): record it again") from error
