"""The results table: one row per number and per point of a curve, with the same key columns everywhere.

A row is a number of one run. `x` is null where it is not a point of a curve. `draws` are the same number computed from
test items drawn with replacement; the same seed draws the same items in every run, so that runs can be compared draw by
draw (`cascaded.results.compare`). One Parquet file per run and analysis, RUN/results/ANALYSIS.parquet, holds the rows,
and in its metadata the provenance: what they were computed from.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from cascaded.errors import InputError
from cascaded.files import write_whole
from cascaded.shell import program

KEYS = ["run", "config", "data", "split", "items", "n_items", "method", "lam", "arch", "width", "seed", "fold"]
KEYS += ["train_noise", "schedule", "kernel", "time", "steps", "noise", "protocol", "version", "protocol_version"]
KEYS += ["analysis_version", "weights", "rounded_from"]
VARIANTS = ["rule", "unit", "measure", "detector", "reads", "ood_data", "noise_frames"]
VARIANTS += ["human", "manipulation", "level", "category", "answer"]
VALUES = ["analysis", "metric", "x", "value", "draws"]
NUMBERS = ["n_items", "lam", "fold", "steps", "analysis_version", "noise_frames", "level", "x", "value"]
"""Floating point, also where they are whole: null is nan. Width, seed and protocol_version are never null."""
WHOLE = ["n_items", "fold", "steps", "analysis_version", "noise_frames"]
"""Those of them that are whole: a CSV file has them without a decimal point."""
TYPES = {
    **dict.fromkeys(NUMBERS, pa.float64()),
    **dict.fromkeys(("width", "seed", "protocol_version"), pa.int64()),
    "draws": pa.list_(pa.float32()),
}
SCHEMA = pa.schema([(name, TYPES.get(name, pa.string())) for name in (*KEYS, *VARIANTS, *VALUES)])
COLUMNS = SCHEMA.names
DIGITS = 16
"""Hexadecimal digits of a digest in a row."""
PROVENANCE = b"cascaded.results"
"""The metadata key of a results file. A Parquet file without it holds something else."""


def write(run: Path, analysis: str, rows: pd.DataFrame, provenance: dict[str, Any]) -> Path:
    """Write the rows of one analysis of a run; a file that is there is replaced.

    Args:
        run: Folder of the run.
        analysis: Its name; the file is RUN/results/ANALYSIS.parquet.
        rows: Its rows with their key columns. Columns that are left out are null.
        provenance: What the rows were computed from and with, as JSON has it.
    """
    file = results_file(run, analysis)
    metadata = {PROVENANCE: json.dumps(provenance).encode()}
    table = _to_arrow(rows.assign(analysis=analysis)).replace_schema_metadata(metadata)
    write_whole(file, lambda part: parquet.write_table(table, part, compression="zstd", write_page_checksum=True))
    return file


def results_file(run: Path, analysis: str) -> Path:
    """Where the rows of one analysis of a run are stored."""
    return run / "results" / f"{analysis}.parquet"


def read_provenance(file: Path) -> dict[str, Any] | None:
    """What a results file was computed from; None where there is no such file, or it cannot be read."""
    try:
        return json.loads((parquet.read_schema(file).metadata or {})[PROVENANCE])
    except (OSError, pa.ArrowException, KeyError, ValueError, RecursionError):
        return None


def load(runs: str | PathLike[str] | Iterable[str | PathLike[str]], *analyses: str) -> pd.DataFrame:
    """The results of runs as one table.

    Args:
        runs: Folders of runs, folders above them, folders with results files, or results files.
        analyses: Names of analyses; all by default.
    """
    places = [Path(runs)] if isinstance(runs, (str, PathLike)) else [Path(each) for each in runs]
    files = [file for file in find_files(places) if not analyses or file.stem in analyses]
    if not files:
        where = shlex.join(map(str, places))
        raise InputError(f"there are no results in {where}: {program()} analyze {where} computes them")
    return _to_pandas(pa.concat_tables([_read(file) for file in files]))


def write_csv(rows: pd.DataFrame, file: Path) -> None:
    """Write the rows of a table as a CSV file, without the draws."""
    save_csv(rows.drop(columns="draws").assign(**rows[WHOLE].convert_dtypes()), file)


def save_csv(table: pd.DataFrame, file: Path) -> None:
    """Write a table as a CSV file, whole or not at all; compressed if its name ends in .gz."""
    compression = "gzip" if file.suffix == ".gz" else None
    write_whole(file, lambda part: table.to_csv(part, index=False, compression=compression))


def find_files(places: Iterable[Path]) -> list[Path]:
    """The results files in some folders and below them, each once; other Parquet files are passed over."""
    files: dict[Path, Path] = {}
    for place in places:
        if not place.exists():
            raise InputError(f"{place} does not exist: give the folder of a run, or one above it")
        for file in [place] if place.is_file() else sorted(place.rglob("*.parquet")):
            if read_provenance(file) is not None:
                files.setdefault(file.resolve(), file)
    return list(files.values())


def empty() -> pd.DataFrame:
    """A table without rows."""
    return _to_pandas(SCHEMA.empty_table())


def to_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with all columns, in their order and with their types; columns that are left out are null.

    Rows without `protocol_version` are of the first one.
    """
    return _to_pandas(_to_arrow(rows))


def _earlier(file: Path) -> dict[str, Any]:
    """What rows have in columns that there were not when they were written: null, or the provenance of their file."""
    known = read_provenance(file) or {}
    digests = known.get("weights") or []
    weights = digests[0][:DIGITS] if len(digests) == 1 and digests[0] else None
    named = {"analysis_version": known.get("version"), "weights": weights}
    return {**dict.fromkeys([*VARIANTS, "rounded_from"]), **named}


def _to_arrow(rows: pd.DataFrame) -> pa.Table:
    if unknown := [str(column) for column in rows.columns if column not in COLUMNS]:
        raise InputError(f"rows have a column {unknown[0]!r}, the table has {', '.join(COLUMNS)}: leave it out")
    if "protocol_version" not in rows:
        rows = rows.assign(protocol_version=1)
    rows = rows.reindex(columns=COLUMNS).astype(object)
    return pa.table([pa.Array.from_pandas(rows[field.name], type=field.type) for field in SCHEMA], schema=SCHEMA)


def _to_pandas(table: pa.Table) -> pd.DataFrame:
    """The same types whatever the rows: a column of nulls alone is one of numbers, too."""
    return table.to_pandas(ignore_metadata=True).astype(dict.fromkeys(NUMBERS, "float64"))


def _read(file: Path) -> pa.Table:
    try:
        table = parquet.ParquetFile(file, page_checksum_verification=True).read()
        if "protocol_version" not in table.column_names:  # written before rows had their versions
            first = pa.array([1] * len(table), pa.int64())
            table = table.append_column("version", pa.nulls(len(table))).append_column("protocol_version", first)
        for name, value in _earlier(file).items():
            if name not in table.column_names:
                table = table.append_column(name, pa.array([value] * len(table), SCHEMA.field(name).type))
        return table.select(COLUMNS).cast(SCHEMA).replace_schema_metadata(None)
    except (OSError, pa.ArrowException, KeyError) as error:
        way = f"{program()} analyze {shlex.quote(str(file.parent.parent))} --only {file.stem} --overwrite"
        raise InputError(f"{file} cannot be read as a results table of this version: {way} writes it again") from error
