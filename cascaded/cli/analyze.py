"""`cascaded analyze`: everything that the recorded traces allow, and how models compare."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from tyro.conf import Positional

from cascaded.errors import InputError
from cascaded.progress import counted, print_line, progress, wide_console
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
    analyzed = find_analyzed(runs)
    _check_traces(runs, analyzed, names)
    failures: list[Failure] = []
    with progress("analyzing", len(analyzed) * len(names)) as bar:
        for run in analyzed:
            bar.log(f"{run.name}: {counted(len(run.traces), 'trace')}{_which_split(run)}")
            for name in names:
                bar.advance(0, f"{run.name}: {name}")
                failures += run_analysis(run, name, settings, overwrite=overwrite)
                bar.advance(1)
            if galleries and "selection_latency" in names:
                _store_images(run, settings)
    rows = load([run.folder for run in analyzed])
    _print_tables(rows[rows.analysis.isin(names)], names)
    _print_files(runs, analyzed, names)
    if csv is not None:
        rows.drop(columns="draws").to_csv(csv, index=False)
        print_line(wide_console(), f"wrote {csv}")
    if failures:
        first, more = failures[0], f" ({len(failures)} in all)" if len(failures) > 1 else ""
        raise InputError(f"{first.run}: {first.analysis} of {first.trace} failed{more}, {first.reason}")


def _check_traces(runs: tuple[Path, ...], analyzed: list[Analyzed], names: list[str]) -> None:
    if not any(run.traces for run in analyzed) and names != ["run_time"]:
        skipped = [reason for run in analyzed for reason in run.skipped.values()]
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
            print_line(console, f"wrote {file.with_suffix('.png')}")
    except InputError as error:  # results do not need the images, galleries do
        print_line(console, f"no gallery of {run.name}: {error}")


def _print_files(places: tuple[Path, ...], analyzed: list[Analyzed], names: list[str]) -> None:
    """What was written, and the commands that record what is missing: one for all runs that miss the same."""
    from cascaded.results.registry import ANALYSES, missing_recordings
    from cascaded.results.table import results_file
    from cascaded.traces.config import RecordingConfig

    console, lacking = wide_console(), {}
    for run in analyzed:
        there = [name for name in names if results_file(run.folder, name).exists()]
        if there:
            print_line(console, f"wrote {run.folder / 'results'}/: {', '.join(there)}")
        for name in (name for name in names if name not in there):
            lacking.setdefault((name, missing_recordings(run.runs[0], name)), []).extend(run.runs)
    for (name, needs), own in lacking.items():
        every = len(own) == sum(len(run.runs) for run in analyzed)
        print_line(
            console, f"not measured: {name} ({ANALYSES[name].label})" + (f", {needs}" if isinstance(needs, str) else "")
        )
        for need in () if isinstance(needs, str) else needs:
            words = ["record", *map(str, places if every else own), *to_args(need, RecordingConfig())]
            words += ["--overwrite"] if need.embeddings else []  # the same recording may be there without them
            print_line(console, f"  {program()} {shlex.join(words)}")


def _print_tables(rows: pd.DataFrame, names: list[str]) -> None:
    """Estimates, one table per recording and one column per condition; then paired differences."""
    from cascaded.results.compare import differences, estimates
    from cascaded.results.metrics import METRICS

    rows = rows[rows.ood_data.isna() | (rows.ood_data == "mean")]
    console, order = wide_console(), {name: number for number, name in enumerate(names)}
    table = _named(estimates(rows)).sort_values("analysis", key=lambda column: column.map(order), kind="stable")
    setting = ["data", "split", "items", "time", "steps", "noise", "protocol"]
    for key, some in table.groupby(setting, dropna=False, sort=False):
        parts = [f"{each:g} steps" if isinstance(each, float) else str(each) for each in _present((*key[:2], *key[3:]))]
        console.print(_estimates_table(", ".join(parts), some))
    compared = differences(rows)
    judged = compared.metric.map(lambda name: METRICS[name].higher_is_better is not None)
    compared = compared[judged & (compared.interval_over != "none")]
    if len(compared):
        console.print(_differences_table(compared))


def _present(values: tuple[Any, ...]) -> list[Any]:
    return [each for each in values if each == each and each is not None]


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """Estimates with the names of their conditions, in the paper's order; shared names get the configuration."""
    from cascaded.results.names import NAMES, display_name

    columns = zip(table.method, table.lam, table.schedule, table.noise, strict=True)
    table = table.assign(name=[display_name(*each) for each in columns], place=table.method.map(list(NAMES).index))
    several = table.groupby("name").config.transform("nunique") > 1
    table.loc[several, "name"] += ", config " + table.config[several]
    return table.sort_values(["place", "lam"], kind="stable")


def _estimates_table(title: str, some: pd.DataFrame) -> Table:
    from rich.table import Table

    from cascaded.results.metrics import METRICS

    columns = list(dict.fromkeys(some.name))
    table, cells = Table("metric", *columns, title=title, title_justify="left"), {}
    for row in some.itertuples():
        metric = METRICS[row.metric]
        ends = [metric.format(each).split()[0] for each in (row.low, row.high)]
        interval = "" if row.interval_over == "none" else f" [{', '.join(ends)}]"
        cells.setdefault(_row_name(row), {})[row.name] = metric.format(row.value) + interval
    for name, values in cells.items():
        table.add_row(name, *(values.get(column, "") for column in columns))
    return table


def _row_name(row: Any) -> str:
    from cascaded.results.table import VARIANTS

    variant = _present(tuple(getattr(row, name) for name in VARIANTS))
    return f"{row.metric} ({', '.join(map(str, variant))})" if variant else row.metric


def _differences_table(differences: pd.DataFrame) -> Table:
    from rich.table import Table

    from cascaded.results.metrics import METRICS
    from cascaded.results.names import display_name

    table = Table("metric", "recording", "difference", "effect", "95 % interval", "over", title="paired differences")
    for row in differences.itertuples():
        metric = METRICS[row.metric]
        pair = [display_name(row.method_a, row.lam_a, row.schedule_a, row.noise)]
        pair += [display_name(row.method_b, row.lam_b, row.schedule_b, row.noise)]
        numbers = [metric.format_difference(each) for each in (row.effect, row.low, row.high)]
        recording = " ".join(map(str, _present((row.data, row.split, row.time, row.noise, row.protocol))))
        over = f"{row.n_seeds} seeds" if row.interval_over == "seeds" else "images"
        table.add_row(_row_name(row), recording, " - ".join(pair), numbers[0], f"{numbers[1]} to {numbers[2]}", over)
    return table
