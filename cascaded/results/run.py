"""Run the analyses that the traces of a run allow; what was computed from the same traces is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from cascaded import PROTOCOL_VERSION
from cascaded.errors import InputError
from cascaded.results.analyzed import Analyzed, find_analyzed
from cascaded.results.registry import ANALYSES
from cascaded.results.table import load, read_provenance, results_file, to_table, write
from cascaded.results.tasks import TASKS, Settings


@dataclass(frozen=True)
class Failure:
    """An analysis of a trace that could not be computed, and why."""

    run: Path
    analysis: str
    trace: str
    reason: str


def run_analysis(
    analyzed: Analyzed, name: str, settings: Settings | None = None, *, overwrite: bool = False
) -> list[Failure]:
    """Compute the rows of an analysis and write them to RESULTS/NAME.parquet; rows of unchanged traces are kept.

    Args:
        analyzed: The run.
        name: Name of the analysis.
        settings: What the analysis is computed with.
        overwrite: Compute all rows anew.
    """
    settings = settings or Settings()
    file, tasks = results_file(analyzed.folder, name), TASKS[name](analyzed, settings)
    used = (*ANALYSES[name].settings, "draws", "seed")
    versions = {"version": ANALYSES[name].version, "protocol": PROTOCOL_VERSION}
    made_with = {**versions, "settings": {key: getattr(settings, key) for key in used}}
    kept = {} if overwrite else _kept(file, made_with)
    rows, sources, failures, start = [], {}, [], 0
    for task in tasks:
        try:
            same = task.name in kept and kept[task.name][0] == task.digests
            new = kept[task.name][1] if same else to_table(task.compute().assign(**analyzed.keys(*task.traces[:1])))
        except InputError as error:  # one trace that cannot be analyzed does not keep the others from it
            failures.append(Failure(analyzed.folder, name, task.name, str(error)))
            continue
        if len(new):
            rows.append(new)
            sources[task.name] = {"traces": task.digests, "rows": [start, start + len(new)]}
            start += len(new)
    if not rows:
        file.unlink(missing_ok=True)  # of weights that are gone
    elif {name: each["traces"] for name, each in sources.items()} != {name: each[0] for name, each in kept.items()}:
        write(analyzed.folder, name, pd.concat(rows, ignore_index=True), {**made_with, "computed_from": sources})
    return failures


def _kept(file: Path, made_with: dict[str, Any]) -> dict[str, tuple[dict[str, str], pd.DataFrame]]:
    """By task the traces that rows were computed from before, with the same settings, and these rows."""
    known = read_provenance(file) or {}
    if {key: known.get(key) for key in made_with} != made_with:
        return {}
    try:
        rows = load(file)
        return {name: (each["traces"], rows[slice(*each["rows"])]) for name, each in known["computed_from"].items()}
    except (InputError, KeyError, TypeError):  # damaged, or written by something else
        return {}


def run_analyses(
    places: Sequence[Path], names: Sequence[str] = (), settings: Settings | None = None, *, overwrite: bool = False
) -> list[Failure]:
    """Run analyses of all runs in or below some folders, and write their rows.

    Args:
        places: Folders of runs, or folders above them.
        names: Names of analyses; all by default.
        settings: What they are computed with.
        overwrite: Compute all rows anew.
    """
    runs_and_names = product(find_analyzed(places), names or ANALYSES)
    return [each for run, name in runs_and_names for each in run_analysis(run, name, settings, overwrite=overwrite)]
