"""`cascaded demo`: from nothing to a page about networks that were trained on this machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cascaded.demo.plan import DATA, FULL, QUICK, Plan, keep
from cascaded.errors import InputError
from cascaded.paper.stages import analyse_all, compare, record_all, train_all
from cascaded.progress import counted, minutes, print_line, wide_console
from cascaded.shell import help_default, program

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from cascaded.training.sweep import Job

TOLD = "analysis.txt"
"""What the analyses have to say, beside the runs: too much for a terminal."""


def demo(
    *,
    out: Path = Path("out/demo"),
    seeds: tuple[int, ...] = (0, 1),
    epochs: Annotated[int | None, help_default(f"{FULL.epochs}; {QUICK.epochs} with --quick")] = None,
    limit: Annotated[int | None, help_default(f"all images; {QUICK.limit} with --quick")] = None,
    quick: bool = False,
    jobs: Annotated[int | None, help_default("one per core")] = None,
) -> None:
    """See what cascaded networks do, on networks trained here: about five minutes on two cores.

    Trains small ResNets to read cluttered digits, four models with two seeds each: CascadedTD with lambda 0 and with
    lambda 1, CascadedCE, and the Shallow-Deep network. Then records what they say at every step, analyses it, and
    writes a page about it, OUT/report/index.html. Stop it at any moment: the same command goes on.

    Example: cascaded demo --out out/demo

    Args:
        out: Where everything is kept.
        seeds: Every model is trained once with each.
        epochs: Passes over the training images; fewer are faster, and worse.
        limit: Learn from so many images only, the same of every class.
        quick: Rehearse it in a minute: two networks, few images, and hardly anything is learned.
        jobs: Processes at a time.
    """
    if jobs is not None and jobs < 1:
        raise InputError(f"--jobs is {jobs}: give at least 1")
    if out.exists() and not out.is_dir():
        raise InputError(f"--out is {out}, which is a file: give a folder")
    changes = {name: value for name, value in {"epochs": epochs, "limit": limit}.items() if value is not None}
    plan, console, began = replace(QUICK if quick else FULL, **changes), wide_console(), time.monotonic()
    runs = plan.jobs(seeds, out / "runs")
    keep(plan, out)
    _train(runs, plan, jobs, console)
    _record_and_analyse(runs, plan, out, jobs, console)
    print_line(console, "4 of 4: drawing the page")
    from cascaded.cli.report import report

    report((out / "runs",), out=out / "report", title="Cascaded networks read cluttered digits")
    _conclude(runs, out, time.monotonic() - began, console)


def _train(runs: Sequence[Job], plan: Plan, jobs: int | None, console: Console) -> None:
    print_line(console, f"1 of 4: training {counted(len(runs), 'network')} to read {DATA}")
    train_all(runs, jobs)


def _record_and_analyse(runs: Sequence[Job], plan: Plan, out: Path, jobs: int | None, console: Console) -> None:
    from cascaded.training.workers import workers

    with workers(jobs, len(runs)) as pool:
        print_line(console, f"2 of 4: recording the outputs of {counted(len(runs), 'network')} at every step")
        pool.do("recording", record_all, [(job.folder, plan.shown(job)) for job in runs])
        print_line(console, f"3 of 4: analysing what they said; tables are in {out / TOLD}")
        pool.do("analysing", analyse_all, [(job.folder, plan.learned) for job in runs])
    compare(out / "runs", plan.learned, out / TOLD, console)


def _conclude(runs: Sequence[Job], out: Path, seconds: float, console: Console) -> None:
    """The one result to remember, where the page is, and what to do next."""
    console.print(accuracy_table([job.folder for job in runs]))
    print_line(console, f"done in {minutes(seconds)}; the page is {(out / 'report' / 'index.html').resolve().as_uri()}")
    print_line(console, f"next: open it in a browser; the trained networks are in {out / 'runs'}")
    print_line(console, "      to train on a folder of your own images:")
    print_line(console, f"      {program()} train --data FOLDER --out runs/mine")


def accuracy_table(folders: Sequence[Path]) -> Table:
    """Which share of the test images each model is right about after every step: the mean of its seeds."""
    from rich import box
    from rich.table import Table

    from cascaded.exhibits.names import spoken
    from cascaded.results.subjects import find_subjects
    from cascaded.training.runs import last_metrics

    by_model: dict[str, list[list[float]]] = {}
    for subject in find_subjects(folders):
        told = last_metrics(subject.runs[0]) or {}
        by_model.setdefault(spoken(subject.label), []).append(told["test"])
    table = Table(box=box.SIMPLE_HEAD, title="test images answered correctly, in %, after step", title_justify="left")
    table.add_column("model")
    for step in range(len(next(iter(by_model.values()))[0])):
        table.add_column(str(step + 1), justify="right")
    for model, accuracies in by_model.items():
        table.add_row(model, *(f"{100 * sum(each) / len(each):.0f}" for each in zip(*accuracies, strict=True)))
    return table
