"""`cascaded analyze`: everything that the recorded traces allow, and how models compare."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from cascaded.cli.usage import Runs, check_given
from cascaded.errors import InputError
from cascaded.progress import counted, print_line, progress, table, wide_console
from cascaded.shell import help_default, program, typed

if TYPE_CHECKING:
    import pandas as pd

    from cascaded.results.analyzed import Analyzed
    from cascaded.results.run import Failure


def analyze(
    runs: Runs,
    *,
    only: Annotated[tuple[str, ...], help_default("all that the traces allow")] = (),
    csv: Annotated[Path | None, tyro.conf.arg(metavar="FILE"), help_default("no file")] = None,
    latencies: Annotated[Path | None, tyro.conf.arg(metavar="FILE"), help_default("no file")] = None,
    unsettled_fraction: float = 0.1,
    epochs: int = 300,
    draws: int = 200,
    claim_draws: Annotated[int | None, tyro.conf.arg(metavar="INT"), help_default("as many as --draws")] = None,
    seed: int = 0,
    metacog_trials: int = 5,
    metacog_standardize: bool = False,
    human: Annotated[Path | None, tyro.conf.arg(metavar="CSV"), help_default("the answers in this package")] = None,
    overwrite: bool = False,
    galleries: bool = True,
) -> None:
    """Analyze recordings: speed and accuracy, latency, prototypicality, taxonomy, noise, OOD detection, stopping.

    Writes RUN/results/ANALYSIS.parquet, one row per number and per point of a curve; cascaded.results.load reads them
    into a pandas DataFrame. Prints estimates with 95 % intervals and, for several methods, paired differences. With
    fewer than three seeds, intervals are bootstrapped over test images and describe these networks only. Finished
    analyses are skipped.

    Analyses: speed_accuracy selection_latency prototypicality taxonomic_compliance persistent_noise transient_noise
    learned_stopper out_of_distribution human run_time.

    Example: cascaded analyze runs/td0 runs/ce --only speed_accuracy selection_latency

    Args:
        runs: Folders of runs, or folders above them.
        only: Names of analyses.
        csv: Also write the rows of all runs to a CSV file, without the bootstrap draws.
        latencies: Also write the selection latency of every image to a CSV file: image, model, latency in steps and,
            after the analysis `human`, in milliseconds, confidence, prediction.
        unsettled_fraction: Fraction of images that may never settle; chooses the threshold of selection latency.
        epochs: Epochs of the learned stopper and of the OOD classifiers.
        draws: Bootstrap draws over images; use 2000 for publication.
        claim_draws: Bootstrap draws of the numbers that claims of the paper are about, in small files: curves and other
            numbers keep --draws.
        seed: Seed of the bootstrap draws.
        metacog_trials: Trainings of every OOD classifier, from the same initial weights.
        metacog_standardize: Also train OOD classifiers on standardized features (rows `logits-standardized` and alike).
        human: Answers of people at deadlines, for the analysis `human`: a CSV file with the columns manipulation,
            observer, deadline_ms, level, category, answer, rt_ms.
        overwrite: Compute finished analyses again.
        galleries: Store the fastest and slowest images, where the data is at hand.
    """
    check_given(runs, "run", "analyze runs/td0/0")
    from cascaded.results.analyzed import find_analyzed
    from cascaded.results.registry import chosen_analyses
    from cascaded.results.run import run_analysis
    from cascaded.results.table import find_files, load, save_csv, write_csv
    from cascaded.results.tasks import Settings

    settings = Settings(
        unsettled_fraction, epochs, draws, claim_draws, seed, metacog_trials, metacog_standardize, human
    )
    names = chosen_analyses(only)
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
    if failures and not find_files([run.folder for run in analyzed]):
        raise _first(failures)
    rows = load([run.folder for run in analyzed])
    _print_tables(rows[rows.analysis.isin(names)], names)
    _print_files(runs, analyzed, names)
    if csv is not None:
        write_csv(rows, csv)
        print_line(wide_console(), f"wrote {csv}")
    if latencies is not None:
        from cascaded.results.latencies import latency_table

        save_csv(latency_table(analyzed, settings), latencies)
        print_line(wide_console(), f"wrote {latencies}")
    if failures:
        raise _first(failures)
    print_line(wide_console(), f"next: {program()} report {shlex.join(map(str, runs))}")


def _first(failures: list[Failure]) -> InputError:
    """The error for analyses that failed: the first one, and how many there are."""
    first, count = failures[0], f" ({len(failures)} in all)" if len(failures) > 1 else ""
    return InputError(f"{first.run}: {first.analysis} of {first.trace} failed{count}, {first.reason}")


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
    """What was written, and the commands that measure what is missing."""
    from cascaded.report.missing import missing_analyses
    from cascaded.results.table import results_file

    console = wide_console()
    for run in analyzed:
        if there := [name for name in names if results_file(run.folder, name).exists()]:
            print_line(console, f"wrote {run.folder / 'results'}/: {', '.join(there)}")
    for name in names:
        for missing in missing_analyses(analyzed, places, [name]):
            print_line(console, f"not measured: {name}, {missing.what}")
            if missing.command:
                print_line(console, f"  {typed(missing.command)}")


def _print_tables(rows: pd.DataFrame, names: list[str]) -> None:
    """Estimates, one table per recording and one column per condition; then paired differences."""
    from cascaded.results.compare import differences, estimates
    from cascaded.results.human import main_rows
    from cascaded.results.metrics import METRICS

    rows = main_rows(rows[rows.ood_data.isna() | (rows.ood_data == "mean")])
    console, numbers = wide_console(), _named(estimates(rows))
    numbers = numbers.sort_values("analysis", key=lambda column: column.map(names.index), kind="stable")
    setting = ["data", "split", "items", "time", "steps", "protocol_version", "noise", "protocol"]
    several = numbers.protocol_version.nunique() > 1
    for (data, split, _, time, steps, version, *noise), some in numbers.groupby(setting, dropna=False, sort=False):
        which = f"protocol version {version}" if several else ""
        about = _present(data, split, time, "" if steps != steps else f"{steps:g} steps", *noise, which)
        console.print(table(_estimates(some), ", ".join(about)))
    compared = differences(rows)
    judged = compared.metric.map(lambda name: METRICS[name].higher_is_better is not None)
    compared = compared[judged & (compared.interval_over != "none")]
    if len(compared):
        console.print(table([_difference(row) for row in compared.itertuples()], "paired differences"))


def _present(*values: Any) -> list[str]:
    """The values that are neither null nor empty."""
    return [str(each) for each in values if each == each and each not in (None, "")]


def _named(numbers: pd.DataFrame) -> pd.DataFrame:
    """Estimates with the names of their conditions, in the paper's order; shared names get the configuration."""
    from cascaded.results.names import NAMES, display_name

    columns = zip(numbers.method, numbers.lam, numbers.schedule, numbers.noise, strict=True)
    place = numbers.method.map(list(NAMES).index)
    numbers = numbers.assign(name=[display_name(*each) for each in columns], place=place)
    several = numbers.groupby("name").config.transform("nunique") > 1
    numbers.loc[several, "name"] += ", config " + numbers.config[several]
    several, version = numbers.groupby("analysis").analysis_version.transform("nunique") > 1, numbers.analysis_version
    numbers.loc[several, "name"] += ", analysis version " + version[several].astype("Int64").astype(str)
    return numbers.sort_values(["place", "lam"], kind="stable")


def _estimates(numbers: pd.DataFrame) -> list[dict[str, str]]:
    """A row of cells per metric, with a column per condition."""
    from cascaded.results.metrics import METRICS

    lines: dict[str, dict[str, str]] = {}
    for row in numbers.itertuples():
        metric, name = METRICS[row.metric], _metric_name(row)
        low, high = (metric.format(each).split()[0] for each in (row.low, row.high))
        interval = "" if row.interval_over == "none" else f" [{low}, {high}]"
        lines.setdefault(name, {"metric": name})[row.name] = metric.format(row.value) + interval
    return list(lines.values())


def _difference(row: Any) -> dict[str, str]:
    """The cells of a paired difference."""
    from cascaded.results.metrics import METRICS
    from cascaded.results.names import display_name

    effect, low, high = (METRICS[row.metric].format_difference(each) for each in (row.effect, row.low, row.high))
    first = display_name(row.method_a, row.lam_a, row.schedule_a, row.noise)
    second = display_name(row.method_b, row.lam_b, row.schedule_b, row.noise)
    return {
        "metric": _metric_name(row),
        "recording": " ".join(_present(row.data, row.split, row.time, row.noise, row.protocol)),
        "difference": f"{first} - {second}",
        "effect": effect,
        "95 % interval": f"{low} to {high}",
        "over": row.interval_over.replace("seeds", f"{row.n_seeds} seeds"),
    }


def _metric_name(row: Any) -> str:
    """A metric with its variants, such as `area (threshold)`."""
    from cascaded.results.human import OWN
    from cascaded.results.table import VARIANTS

    variants = _present(*(getattr(row, name) for name in VARIANTS if getattr(row, name) != OWN))
    return f"{row.metric} ({', '.join(variants)})" if variants else row.metric
