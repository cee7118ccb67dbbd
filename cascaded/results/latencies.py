"""A table of reaction times: the latency of every image in every network, in steps and in milliseconds of people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cascaded.analysis.latency import selection_latency
from cascaded.data.catalogue import SOURCES
from cascaded.data.folder import Folder
from cascaded.results.analyzed import Analyzed
from cascaded.results.gallery_images import find_images
from cascaded.results.human import whole_set
from cascaded.results.names import display_name
from cascaded.results.table import load, results_file
from cascaded.results.tasks import Settings
from cascaded.traces.store import TraceFile


def latency_table(runs: Sequence[Analyzed], settings: Settings) -> pd.DataFrame:
    """One row per network, recording and image; of images in a folder their file, otherwise their row in the data.

    Steps and milliseconds are empty where the image never settles. Milliseconds need the line of the analysis `human`,
    fitted to recordings with the same kernel and number of steps; they are empty where there is none.

    Args:
        runs: Runs with recordings.
        settings: Those of selection latency.
    """
    parts = [_rows(run, trace, settings) for run in runs for trace in run.traces if _is_still(trace)]
    columns = ["image", "model", "run", "data", "split", "noise", "latency_steps", "latency_ms", "confidence"]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=pd.Index([*columns, "prediction"]))
    return table[[*columns, "prediction", *(["category"] if "category" in table else [])]]


def _is_still(trace: TraceFile) -> bool:
    """Whether the same image was presented at every step: only then an image has one latency."""
    return trace.config.noise is None or trace.config.protocol == "still"


def _rows(run: Analyzed, file: TraceFile, settings: Settings) -> pd.DataFrame:
    trace, keys = file.load(), run.keys(file)
    latency = selection_latency(trace, unsettled_fraction=settings.unsettled_fraction)
    classes, steps = np.array(trace.provenance.classes), np.where(np.isinf(latency.steps), np.nan, latency.steps)
    offset, scale = _line(run, keys)
    names = {"category": classes[trace.labels]} if trace.provenance.in_distribution else {}
    return pd.DataFrame(
        {
            "image": _names(run, file, trace.indices),
            "model": display_name(keys["method"], keys["lam"], keys["schedule"]),
            **{name: keys[name] for name in ("run", "data", "split", "noise")},
            "latency_steps": steps,
            "latency_ms": offset + scale * steps,
            "confidence": latency.confidence,
            "prediction": classes[latency.selected],
            **names,
        }
    )


def _line(run: Analyzed, keys: dict[str, Any]) -> tuple[float, float]:
    """The line from steps to milliseconds of recordings that were made in the same way; nan where there is none."""
    if not results_file(run.folder, "human").exists():
        return np.nan, np.nan
    rows = load(results_file(run.folder, "human"))
    rows = rows[(rows["rule"] == "deadline") & (rows["unit"] == "steps") & (rows["manipulation"] == whole_set(rows))]
    for name in ("schedule", "kernel", "steps"):
        rows = rows[rows[name] == keys[name]]
    found = [rows.loc[rows["metric"] == metric, "value"] for metric in ("mapping_offset", "mapping_scale")]
    return tuple(float(each.iloc[0]) if len(each) else np.nan for each in found)  # pyright: ignore[reportReturnType]


def _names(run: Analyzed, file: TraceFile, indices: np.ndarray) -> list[str] | list[int]:
    """The files of images in a folder, if they are those that were recorded; otherwise rows of the data."""
    root, split = Path(str(file.config.data)), str(file.config.split)
    if str(root) in SOURCES or not root.is_dir() or any(root.glob("*.parquet")):
        return indices.tolist()
    find_images(run, file)  # refuses images that are not those of the recording
    own = str(root) == run.config.data and split == "validation"  # a part of its training images
    folder = Folder(root, "train" if own else split)
    files = [each.relative_to(folder.top).as_posix() for each, _ in folder.files]
    return [files[index] for index in indices]
