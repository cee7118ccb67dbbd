"""Traces on disk: safetensors files whose header has the configuration and provenance of the recording.

Nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
from safetensors import SafetensorError, safe_open

from cascaded.errors import InputError
from cascaded.traces.config import Provenance, RecordingConfig
from cascaded.traces.trace import Trace, join, join_provenance
from cascaded.traces.writer import ARRAYS, DIGEST, FORMAT, KINDS, METADATA, Form, Recording, digest_of, map_arrays
from cascaded.training.runs import read_config, weights_digest


def save_trace(trace: Trace, file: Path | str) -> None:
    """Write a trace that is in memory, completely or not at all."""
    arrays = {name: getattr(trace, name) for name in ARRAYS if getattr(trace, name) is not None}
    arrays = {name: _storable(values) for name, values in arrays.items()}
    form = {name: (values.dtype, values.shape) for name, values in arrays.items()}
    dtype = "float16" if arrays["logits"].dtype == np.float16 else "float32"
    config = replace(trace.config, embeddings=trace.embeddings is not None, dtype=dtype)
    recording = Recording(Path(file), form, config, trace.provenance)
    recording.write(0, **arrays)
    recording.finish()


def _storable(values: np.ndarray) -> np.ndarray:
    kind = np.float32 if values.dtype == np.float64 else np.int64 if values.dtype.kind == "i" else values.dtype
    return np.ascontiguousarray(values, dtype=kind)


_INTACT: set[tuple[int, ...]] = set()
"""Files whose digest this process has checked, by inode, size and time of change."""


def load_trace(file: Path | str) -> Trace:
    """A trace from its file, memory-mapped; refused if its values are not those that were written."""
    file = Path(file)
    header, form, start = _opened(file)
    arrays, stat = map_arrays(form, file, start, "r"), file.stat()
    key = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)
    if key not in _INTACT and header.digest != digest_of(arrays):
        raise InputError(f"{file} is not what was recorded, its digest differs: it is damaged, record it again")
    _INTACT.add(key)
    return Trace(config=header.config, provenance=header.provenance, **arrays)


@dataclass(frozen=True)
class Header:
    """The header of a trace file: everything but the values.

    Attributes:
        config: The resolved configuration of the recording.
        provenance: Network and images.
        steps: Number of time steps.
        items: Number of items: images times trials.
        digest: SHA-256 of all values.
    """

    config: RecordingConfig
    provenance: Provenance
    steps: int
    items: int
    digest: str


def read_header(file: Path | str) -> Header:
    """The header of a trace file; its values are not read."""
    return _opened(Path(file))[0]


def _opened(file: Path) -> tuple[Header, Form, int]:
    """The header and arrays of a file, checked by safetensors, and where the arrays begin."""
    try:
        with safe_open(file, "np") as opened:
            metadata = opened.metadata() or {}
        with file.open("rb") as raw:
            length = int.from_bytes(raw.read(8), "little")
            header = json.loads(raw.read(length))
    except (OSError, SafetensorError, ValueError, RecursionError) as error:
        way = "check the path" if isinstance(error, OSError) else "it is truncated or something else, record it again"
        raise InputError(f"{file} is no trace ({error}): {way}") from error
    if METADATA not in metadata or DIGEST not in metadata or "logits" not in header:
        raise InputError(f"{file} is a safetensors file but no trace: give one that cascaded record wrote")
    header.pop("__metadata__")
    if unknown := [each["dtype"] for each in header.values() if each["dtype"] not in KINDS]:
        raise InputError(f"{file} has values of type {unknown[0]}, a trace has {', '.join(KINDS)}: record it again")
    shape = header["logits"]["shape"]
    if "labels" not in header or not set(header) <= set(ARRAYS) or len(shape) != 3 or 0 in shape:
        raise InputError(f"{file} has the arrays {', '.join(header)} and logits of shape {shape}: record it again")
    by_place = sorted(header.items(), key=lambda each: each[1]["data_offsets"][0])
    form = {name: (np.dtype(KINDS[each["dtype"]]), tuple(each["shape"])) for name, each in by_place}
    config, provenance = _metadata(file, metadata[METADATA])
    return Header(config, provenance, shape[0], shape[1], metadata[DIGEST]), form, 8 + length


def _metadata(file: Path, text: str) -> tuple[RecordingConfig, Provenance]:
    """Configuration and provenance from the text in a file's header."""
    try:
        content = json.loads(text)
        version = content["format"]
        if version == FORMAT:
            return msgspec.convert((content["config"], content["provenance"]), tuple[RecordingConfig, Provenance])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"the header of {file} cannot be read ({error}): record it again") from error
    raise InputError(f"{file} is a trace of format {version}, this version reads format {FORMAT}: record it again")


# --- the traces of a run


@dataclass(frozen=True)
class TraceFile:
    """A trace on disk: one file, or one file per fold of a cross-validation.

    Attributes:
        files: The files.
        header: The header; that of all folds joined if there are several.
    """

    files: tuple[Path, ...]
    header: Header

    @property
    def name(self) -> str:
        """File name without suffix."""
        return self.files[0].stem

    @property
    def config(self) -> RecordingConfig:
        """The resolved configuration of the recording."""
        return self.header.config

    @property
    def provenance(self) -> Provenance:
        """Network and images."""
        return self.header.provenance

    @property
    def images(self) -> int:
        """Number of different images."""
        return self.header.items // (self.config.trials or 1)

    @property
    def digest(self) -> str:
        """SHA-256 of everything in the trace: values, configuration and provenance."""
        return hashlib.sha256(repr(self.header).encode()).hexdigest()

    def load(self) -> Trace:
        """The trace, with all folds joined."""
        traces = self.load_folds()
        return traces[0] if len(traces) == 1 else join(traces)

    def load_folds(self) -> list[Trace]:
        """The trace of every fold, with its own output layer and embeddings."""
        return [load_trace(file) for file in self.files]


def group_folds(runs: Sequence[Path]) -> list[tuple[Path, ...]]:
    """Group the runs of a complete cross-validation; every other run is a group of its own."""
    groups: dict[tuple[Path, int, int], list[Path]] = {}
    for run in runs:
        config = read_config(run)
        if config.fold is not None:
            groups.setdefault((run.parent.parent, config.fold[1], config.seed), []).append(run)
    complete = {run: tuple(each) for (_, folds, _), each in groups.items() if len(each) == folds for run in each}
    return list(dict.fromkeys(complete.get(run, (run,)) for run in runs))


def find_traces(run: Path | str | Sequence[Path]) -> list[TraceFile]:
    """The traces of a run's current weights. Give the runs of all folds to get the folds joined."""
    return scan_traces(run)[0]


def scan_traces(run: Path | str | Sequence[Path]) -> tuple[list[TraceFile], dict[str, str]]:
    """The traces of a run's current weights, and for each file that cannot be used, by its name, the reason."""
    runs = (Path(run),) if isinstance(run, (Path, str)) else tuple(run)
    usable, skipped = [], {}
    weights = [weights_digest(each) for each in runs]
    for name in sorted({file.name for each in runs for file in (each / "traces").glob("*.safetensors")}):
        found = _trace_file([each / "traces" / name for each in runs], weights)
        if isinstance(found, TraceFile):
            usable.append(found)
        else:
            skipped[Path(name).stem] = found
    return usable, skipped


def _trace_file(files: Sequence[Path], weights: Sequence[str | None]) -> TraceFile | str:
    """The trace of some files, one per fold, or the reason why it cannot be used."""
    present = [file for file in files if file.exists()]
    if len(present) < len(files):
        return f"{present[0].name} exists for {len(present)} of {len(files)} folds: record the other folds as well"
    try:
        headers = [read_header(file) for file in files]
    except InputError as error:
        return str(error)
    for file, header, now in zip(files, headers, weights, strict=True):
        there = header.provenance.weights
        if now is not None and there != now:
            return f"{file} has weights {there[:12]}, the network has {now[:12]}: record it with --overwrite"
    if len(files) == 1:
        return TraceFile(tuple(files), headers[0])
    if headers[0].config.split != "validation":
        return f"{files[0].name} has the same images in all folds and cannot be joined: analyze one fold"
    provenance, items = join_provenance([header.provenance for header in headers]), sum(each.items for each in headers)
    digest = hashlib.sha256("".join(header.digest for header in headers).encode()).hexdigest()
    return TraceFile(tuple(files), replace(headers[0], provenance=provenance, items=items, digest=digest))
