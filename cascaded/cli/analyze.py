"""`cascaded analyze`: everything that the recorded traces allow, and how models compare."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from tyro.conf import Positional

from cascaded.errors import InputError
from cascaded.progress import counted, progress, say, wide_console
from cascaded.shell import help_default, program, to_args

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from cascaded.results.analyzed import Analyzed
    from cascaded.results.run import Failure


def analyze(
    runs: Annotated[Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN...", help_behavior_hint="(required)")],
    *,
    only: Annotated[tuple[str, ...], help_default("all that the traces allow")] = (),
    csv: Annotated[Path | None, tyro.conf.arg(metavar="FILE"), help_default("no file")] = None,
    unsettled_fraction: float = 0.1,
    epochs: int = 300,
    draws: int = 200,
    seed: int = 0,
    overwrite: bool = False,
    galleries: bool = True,
) -> None:
    """Analyze recordings: speed and accuracy, latency, prototypicality, taxonomy, noise, OOD detection, stopping.

    Writes RUN/results/ANALYSIS.parquet, one row per number and per point of a curve; cascaded.results.load reads them
    into a pandas DataFrame. Prints estimates with 95 % intervals and, for several methods, paired differences. With
    fewer than three seeds, intervals are bootstrapped over test images and describe these networks only. Finished
    analyses are skipped.

    Analyses: speed_accuracy selection_latency prototypicality taxonomic_compliance persistent_noise transient_noise
    learned_stopper out_of_distribution run_time.

    Example: cascaded analyze runs/td0 runs/ce --only speed_accuracy selection_latency

    Args:
        runs: Folders of runs, or folders above them.
        only: Names of analyses.
        csv: Also write the rows of all runs to a CSV file, without the bootstrap draws.
        unsettled_fraction: Fraction of images that may never settle; chooses the threshold of selection latency.
        epochs: Epochs of the learned stopper and of the OOD classifiers.
        draws: Bootstrap draws over images; use 2000 for publication.
        seed: Seed of their training, and of all draws.
        overwrite: Compute finished analyses again.
        galleries: Store the fastest and slowest images, where the data is at hand.
    """
    if not runs:
        raise InputError(f"no run is given: name one, as in {program()} analyze runs/td0/0")
    from cascaded.results.analyzed import find_analyzed
    from cascaded.results.registry import chosen_analyses
    from cascaded.results.run import run_analysis
    from cascaded.results.table import load
    from cascaded.results.tasks import Settings

    names, settings = chosen_analyses(only), Settings(unsettled_fraction, epochs, draws, seed)
    found = find_analyzed(runs)
    _check_traces(runs, found, names)
    failures: list[Failure] = []
    with progress("analyzing", len(found) * len(names)) as bar:
        for run in found:
            bar.say(f"{run.name}: {counted(len(run.traces), 'trace')}{_which_split(run)}")
            for name in names:
                bar.advance(0, f"{run.name}: {name}")
                failures += run_analysis(run, name, settings, overwrite=overwrite)
                bar.advance(1)
            if galleries and "selection_latency" in names:
                _store_images(run, settings)
    rows = load([run.folder for run in found])
    _print_tables(rows[rows.analysis.isin(names)])
    for run in found:
        _print_files(run, names)
    if csv is not None:
        rows.drop(columns="draws").to_csv(csv, index=False)
        say(wide_console(), f"wrote {csv}")
    if failures:
        first, more = failures[0], f" ({len(failures)} in all)" if len(failures) > 1 else ""
        raise InputError(f"{first.run}: {first.analysis} of {first.trace} failed{more}, {first.reason}")


def _check_traces(runs: tuple[Path, ...], found: list[Analyzed], names: list[str]) -> None:
    if not any(run.traces for run in found) and names != ["run_time"]:
        skipped = [reason for run in found for reason in run.skipped.values()]
        way = f"{program()} record {shlex.quote(str(runs[0]))} makes one"
        raise InputError(skipped[0] if skipped else f"no trace is recorded in {', '.join(map(str, runs))}: {way}")


def _which_split(run: Analyzed) -> str:
    from cascaded.results.registry import has_test_split

    if not run.traces or has_test_split(run.runs[0], run.traces):
        return ""
    return f" of the validation split, {run.config.data} has no test split"


def _store_images(run: Analyzed, settings: Any) -> None:
    from cascaded.results.gallery_images import write_galleries

    console = wide_console()
    try:
        for file in write_galleries(run, settings):
            say(console, f"wrote {file.with_suffix('.png')}")
    except InputError as error:  # results do not need the images, galleries do
        say(console, f"no gallery of {run.name}: {error}")


def _print_files(run: Analyzed, names: list[str]) -> None:
    """What was written, and the commands that record what is missing."""
    from cascaded.results.registry import ANALYSES, missing_recordings
    from cascaded.results.table import results_file
    from cascaded.traces.config import RecordingConfig

    console, folder = wide_console(), shlex.quote(str(run.runs[0]))
    there = [name for name in names if results_file(run.folder, name).exists()]
    if there:
        say(console, f"wrote {run.folder / 'results'}/: {', '.join(there)}")
    for name in (name for name in names if name not in there):
        needs = missing_recordings(run.runs[0], name)
        what = f"not measured: {name}, {ANALYSES[name].label}"
        if isinstance(needs, str) or not needs:
            say(console, f"{what}: {needs}" if needs else what)
            continue
        say(console, f"{what}; record it with")
        for need in needs:
            say(console, f"  {program()} record {folder} {shlex.join(to_args(need, RecordingConfig()))}".rstrip())


def _print_tables(rows: pd.DataFrame) -> None:
    """Estimates, one column per condition, and differences from the first condition."""
    from cascaded.results.compare import SETTING, differences, estimates

    rows = rows[rows.ood_data.isna() | (rows.ood_data == "mean")]
    console, place = wide_console(), [name for name in SETTING if name not in ("analysis", "metric")]
    of_runs = ["data", "split", "items", "time", "steps", "noise", "protocol"]
    for key, some in estimates(rows).groupby(of_runs, dropna=False, sort=False):
        title = ", ".join(
            f"{each:g} steps" if isinstance(each, float) else str(each) for each in _present(key[:2] + key[3:])
        )
        console.print(_table(title, some, place))
    found = differences(rows)
    if len(found):
        first = found[found.config_a == found.config_b]
        console.print(_differences(first if len(first) else found))


def _present(values: tuple[Any, ...]) -> list[Any]:
    return [each for each in values if each == each and each is not None]


def _table(title: str, some: pd.DataFrame, variants: list[str]) -> Table:
    from rich.table import Table

    from cascaded.results.metrics import METRICS
    from cascaded.results.names import display_name

    names = [display_name(row.method, row.lam, row.schedule, row.noise) for row in some.itertuples()]
    columns = list(dict.fromkeys(names))
    table = Table("metric", *columns, title=title, title_justify="left")
    cells: dict[str, dict[str, str]] = {}
    for name, row in zip(names, some.itertuples(), strict=True):
        metric = METRICS[row.metric]
        text = metric.format(row.value)
        if row.interval_over != "none":
            text += f" [{metric.format(row.low).split()[0]}, {metric.format(row.high).split()[0]}]"
        cells.setdefault(_row_name(row), {})[name] = text
    for name, values in cells.items():
        table.add_row(name, *(values.get(column, "") for column in columns))
    return table


def _row_name(row: Any) -> str:
    from cascaded.results.table import VARIANTS

    variant = _present(tuple(getattr(row, name) for name in VARIANTS))
    return f"{row.metric} ({', '.join(map(str, variant))})" if variant else row.metric


def _differences(found: pd.DataFrame) -> Table:
    from rich.table import Table

    from cascaded.results.metrics import METRICS
    from cascaded.results.names import display_name

    table = Table("metric", "data", "difference", "effect", "95 % interval", "over", title="paired differences")
    for row in found.itertuples():
        metric = METRICS[row.metric]
        a = display_name(row.method_a, row.lam_a, row.schedule_a, row.noise)
        b = display_name(row.method_b, row.lam_b, row.schedule_b, row.noise)
        low, high = (metric.format_difference(each) for each in (row.low, row.high))
        where = " ".join(map(str, _present((row.data, row.split, row.time, row.noise, row.protocol))))
        over = f"{row.n_seeds} {row.interval_over}" if row.interval_over == "seeds" else row.interval_over
        table.add_row(
            _row_name(row), where, f"{a} - {b}", metric.format_difference(row.effect), f"{low} to {high}", over
        )
    return table
