"""Run the analyses that the traces of a run allow; what was computed from the same traces is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from cascaded import PROTOCOL_VERSION
from cascaded.errors import InputError
from cascaded.results.analyzed import Analyzed, find_analyzed
from cascaded.results.registry import ANALYSES
from cascaded.results.table import load, read_provenance, results_file, to_table, write
from cascaded.results.tasks import TASKS, Settings, Task
from cascaded.training.rounded import trained_weights


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
    """Compute the rows of an analysis and write them to RESULTS/NAME.parquet.

    Rows of unchanged traces are kept, and so are rows of traces that were deleted since, as long as the weights are the
    same. Weights that are rounded count as those that they were rounded from: rows of these stay, and rows that are
    not there yet are added, with the digest of the rounded weights in the column `weights`.

    Args:
        analyzed: The run.
        name: Name of the analysis.
        settings: What the analysis is computed with.
        overwrite: Compute the rows of all traces anew.
    """
    settings = settings or Settings()
    most = _draws(name, settings)
    file, tasks = results_file(analyzed.folder, name), TASKS[name](analyzed, replace(settings, draws=most))
    made_with = provenance_of(name, settings)
    made_from = {"weights": [trained_weights(run) for run in analyzed.runs]}
    kept, is_current = _kept(file, made_with), _has_weights(file, made_from["weights"])
    if not tasks and is_current:
        return []  # all its traces were deleted
    named, of_rounded = {task.name for task in tasks}, is_current and analyzed.rounded_from is not None
    parts = {task: each for task, each in kept.items() if is_current and each[0] and task not in named}
    failures = []
    for task in tasks:
        try:
            known = None if overwrite else _known(kept.get(task.name), task, of_rounded)
            digests, new = known or (task.digests, _cut(_rows(analyzed, task, name), name, settings))
        except InputError as error:  # one trace that cannot be analyzed does not keep the others from it
            failures.append(Failure(analyzed.folder, name, task.name, str(error)))
            continue
        if len(new):
            parts[task.name] = digests, new
    if not parts:
        file.unlink(missing_ok=True)  # of weights that are gone
    elif overwrite or {task: each[0] for task, each in parts.items()} != {task: each[0] for task, each in kept.items()}:
        _write(analyzed.folder, name, parts, made_with | made_from)
    return failures


def _rows(analyzed: Analyzed, task: Task, name: str) -> pd.DataFrame:
    """The rows of a task with their key columns."""
    keys = analyzed.keys(*task.traces[:1]) | {"analysis_version": ANALYSES[name].version}
    return to_table(task.compute().assign(**keys))


def _draws(name: str, settings: Settings) -> int:
    """The most draws that a row of an analysis has."""
    return settings.claim_draws or settings.draws if ANALYSES[name].claimed else settings.draws


def _cut(rows: pd.DataFrame, name: str, settings: Settings) -> pd.DataFrame:
    """Points of curves, and metrics that no claim is about, keep their first draws only."""
    whole = rows["metric"].isin(ANALYSES[name].claimed) & rows["x"].isna()
    draws = [
        each if all_of_them or each is None else each[: settings.draws]
        for each, all_of_them in zip(rows["draws"], whole, strict=True)
    ]
    return rows.assign(draws=pd.Series(draws, rows.index, dtype=object))


Part = tuple[dict[str, str], pd.DataFrame]
"""The digests of the traces that rows were computed from, and these rows."""
Parts = dict[str, Part]
"""Parts by task."""


def _known(part: Part | None, task: Task, of_rounded: bool) -> Part | None:
    """The rows of these traces, if they were computed; of rounded weights, those of trained ones count."""
    if part is None:
        return None
    digests, rows = part
    of_trained = of_rounded and digests.keys() == task.digests.keys() and rows["rounded_from"].isna().all()
    return part if of_trained or digests == task.digests else None


def _write(folder: Path, name: str, parts: Parts, made_with: dict[str, Any]) -> None:
    sources, start = {}, 0
    for task, (digests, rows) in parts.items():
        sources[task] = {"traces": digests, "rows": [start, start := start + len(rows)]}
    table = pd.concat([rows for _, rows in parts.values()], ignore_index=True)
    write(folder, name, table, {**made_with, "computed_from": sources})


def provenance_of(name: str, settings: Settings) -> dict[str, Any]:
    """What the rows of an analysis depend on besides the traces: versions and settings."""
    used = (*ANALYSES[name].settings, "draws", "seed")
    if _draws(name, settings) != settings.draws:  # rows that were written before there was this setting stay current
        used = (*used, "claim_draws")
    versions = {"version": ANALYSES[name].version, "protocol": PROTOCOL_VERSION}
    return {**versions, "settings": {key: getattr(settings, key) for key in used}}


def _has_weights(file: Path, weights: list[str | None]) -> bool:
    """Whether results were computed from these weights; those that were deleted since are not compared."""
    then = (read_provenance(file) or {}).get("weights")
    if not isinstance(then, list) or len(then) != len(weights):
        return False
    return all(now in (None, before) for now, before in zip(weights, then, strict=True))


def _kept(file: Path, made_with: dict[str, Any]) -> Parts:
    """What was computed before with the same settings."""
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
