"""Write a trace while it is recorded, so that an interrupted recording resumes.

The size of everything is known before the first image is presented. So the file is laid out at once, under another
name, and filled in place, chunk by chunk; a small file beside it records how many items are done. A complete file gets
its digest and its name. A recording that is killed at any moment resumes after the last chunk that was saved.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from cascaded.errors import InputError
from cascaded.files import flush, read_json, write_json
from cascaded.traces.config import Provenance, RecordingConfig

FORMAT = 2
METADATA, DIGEST = "cascaded", "sha256"  # entries of the header besides the shapes of the arrays
KINDS = {"I64": np.int64, "F32": np.float32, "F16": np.float16}
NAMES = {np.dtype(kind): name for name, kind in KINDS.items()}
ARRAYS = ("labels", "indices", "logits", "embeddings", "head")  # the 8-byte types first, so that all are aligned


Form = Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]
"""Type and shape of each array of a trace, known before it is recorded."""


def make_form(config: RecordingConfig, items: int, classes: int, features: int | None = None) -> Form:
    """The arrays of a trace of this size; `features` is the length of an embedding if they are stored."""
    real, whole = np.dtype(config.dtype), np.dtype(np.int64)
    logits = (real, (config.total_steps, items, classes))
    form = {"labels": (whole, (items,)), "indices": (whole, (items,)), "logits": logits}
    if features is not None:
        form |= {"embeddings": (real, (items, features)), "head": (np.dtype(np.float32), (classes, features))}
    return form


def make_header(form: Form, config: RecordingConfig, provenance: Provenance, digest: str = "") -> bytes:
    """The beginning of the file, padded for alignment; its length does not depend on the digest."""
    metadata = {"format": FORMAT, "config": config, "provenance": provenance}
    text = json.dumps(msgspec.to_builtins(metadata))
    header: dict[str, Any] = {"__metadata__": {METADATA: text, DIGEST: digest.ljust(64)}}
    end = 0
    for name, (kind, shape) in form.items():
        start, end = end, end + kind.itemsize * int(np.prod(shape))
        header[name] = {"dtype": NAMES[kind], "shape": list(shape), "data_offsets": [start, end]}
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    return len(encoded).to_bytes(8, "little") + encoded


def map_arrays(form: Form, file: Path, start: int, mode: str) -> dict[str, np.ndarray]:
    """The arrays, memory-mapped from a file in which they begin at `start`."""
    arrays = {}
    for name, (kind, shape) in form.items():
        arrays[name] = np.memmap(file, kind, mode, start, shape)  # pyright: ignore[reportCallIssue, reportArgumentType]
        start += arrays[name].nbytes
    return arrays


class Recording:
    """A trace that is being written.

    Args:
        file: Path of the finished trace.
        form: Its arrays.
        config: The resolved configuration.
        provenance: Network and images. An interrupted recording resumes only if both are the same.
        chunk: Number of items written at a time; has to be the same to resume, too.
    """

    def __init__(self, file: Path, form: Form, config: RecordingConfig, provenance: Provenance, chunk: int = 0):
        self.file, self.form, self.chunk = file, form, chunk
        self.config, self.provenance = config, provenance
        self.part, self.note = file.with_suffix(".part"), note_of(file)
        self.items = form["labels"][1][0]
        self.header = make_header(form, config, provenance)
        self.done = self._done_before()
        if not self.done:
            self._lay_out()
        self.arrays = map_arrays(form, self.part, len(self.header), "r+")

    def _done_before(self) -> int:
        """Number of items that an interrupted recording with the same header has saved."""
        if not (self.part.exists() and self.note.exists()):
            return 0
        try:
            note = read_json(self.note)
            same = note["header"] == self._key() and type(note["done"]) is int and 0 <= note["done"] <= self.items
        except (InputError, KeyError, TypeError):  # a damaged note: nothing is known to be recorded
            return 0
        return note["done"] if same and self.part.stat().st_size == self._size() else 0

    def _key(self) -> str:
        return hashlib.sha256(self.header + str(self.chunk).encode()).hexdigest()

    def _size(self) -> int:
        return len(self.header) + sum(kind.itemsize * int(np.prod(shape)) for kind, shape in self.form.values())

    def _lay_out(self) -> None:
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.note.unlink(missing_ok=True)  # first: it belongs to another file
            with self.part.open("wb") as opened:
                opened.write(self.header)
                if hasattr(os, "posix_fallocate"):  # a full disk is reported now, not as a crash later
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
        """Write items from `start` on; they are the second axis of logits and the first of all other arrays."""
        for name, values in parts.items():
            if name == "head":
                self.arrays[name][:] = values
            elif name == "logits":
                self.arrays[name][:, start : start + values.shape[1]] = values
            else:
                self.arrays[name][start : start + len(values)] = values

    def keep(self, done: int) -> None:
        """Flush everything so far to the disk, then record that it is done."""
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
            opened.write(make_header(self.form, self.config, self.provenance, digest))
        flush(self.part)
        self.part.replace(self.file)
        flush(self.file.parent)
        self.note.unlink(missing_ok=True)


def note_of(file: Path) -> Path:
    """The file that records how many items are done. It may outlive a recording that is killed at the very end."""
    return file.with_suffix(".part.json")


def digest_of(arrays: Mapping[str, np.ndarray]) -> str:
    """A digest of all values, computed step by step so that no array is read at once."""
    digest = hashlib.sha256()
    for name in ARRAYS:
        if name in arrays:
            for row in arrays[name] if arrays[name].ndim == 3 else [arrays[name]]:
                digest.update(np.ascontiguousarray(row).data)
    return digest.hexdigest()
