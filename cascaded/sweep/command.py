"""`cascaded sweep`: models x lambdas x seeds."""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from cascaded.errors import InputError
from cascaded.learning.method import MethodName
from cascaded.learning.options import Options
from cascaded.sweep.plan import Job, State, plan

if TYPE_CHECKING:
    from rich.table import Table

    from cascaded.sweep.engines import Engine

LOOK = 0.5
"""Seconds between two looks at what is running."""


def sweep(
    options: Annotated[Options, tyro.conf.arg(name="")],
    *,
    models: tuple[MethodName, ...] = ("cascaded-td",),
    lam: tuple[str, ...] = (),
    seeds: tuple[int, ...] = (0,),
    out: Path = Path("runs"),
    engine: Literal["local", "ray"] = "local",
    address: str | None = None,
    jobs: int | None = None,
    dry_run: bool = False,
) -> None:
    """Train models x lambdas x seeds as independent runs; the same command again goes on with what is not done.

    Every run is kept in OUT/MODEL-lamLAMBDA/SEED, with what it said in log.txt. A run that fails does not stop others.

    Example: cascaded sweep --data cifar10 --models cascaded-td cascaded-ce --lam 0 0.5 1 --seeds 0 1 --out runs/cifar10

    Args:
        options: Data, network, recipe; the same for all runs.
        models: Which of the paper's models.
        lam: Lambdas of the TD models; each model's own by default. Models without one are trained once a seed.
        seeds: The same for every model.
        out: Where the runs are kept.
        engine: Processes of this machine, or a Ray cluster whose machines share OUT.
        address: Of the Ray cluster; the one of this machine by default.
        jobs: Runs at a time on this machine; as many as cores allow by default.
        dry_run: Only say what would be done.
    """
    asked = plan(models, lam, seeds, out)
    for job in asked:
        options.spec(job.model, job.lam, job.seed)  # what is wrong with a run is said before the first one starts
    if jobs is not None and jobs < 1:
        raise InputError(f"--jobs is {jobs}: give at least 1")
    states: dict[Job, State] = {job: job.state() for job in asked}
    places: dict[Job, str] = {}
    waiting = [job for job, state in states.items() if state == "waiting"]
    if waiting and not dry_run:
        slots = min(jobs or _cores(), len(waiting))
        threads = options.threads or (1 if engine == "ray" else max(1, _cores() // slots))
        _train_all(_engine(engine, slots, threads, address), waiting, replace(options, threads=None), states, places)
    _conclude(states, places, dry_run)


def _engine(name: str, slots: int, threads: int, address: str | None) -> Engine:
    from cascaded.sweep.engines import Local, Ray

    return Local(slots, threads) if name == "local" else Ray(threads, address)


def _train_all(
    engine: Engine, waiting: list[Job], options: Options, states: dict[Job, State], places: dict[Job, str]
) -> None:
    """Keep the engine busy until nothing is left."""
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    queue = list(waiting)
    try:
        with Live(console=console, transient=True, auto_refresh=False) as live:
            while queue or "running" in states.values():
                while queue and engine.has_room():
                    job = queue.pop(0)
                    engine.start(job, [*options.arguments(), *job.arguments()])
                    states[job] = "running"
                for job, outcome in engine.ended().items():
                    states[job], places[job] = ("failed" if outcome.code else "done"), outcome.place
                    if not console.is_terminal:
                        console.print(f"{job.folder}: {states[job]} {_told(job, states[job])}", highlight=False)
                if console.is_terminal:
                    live.update(_table(states, places), refresh=True)
                time.sleep(LOOK)
    finally:
        engine.stop()


def _conclude(states: dict[Job, State], places: dict[Job, str], dry_run: bool) -> None:
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console.width = 150  # in a file or a pipe nothing needs to wrap
    console.print(_table(states, places))
    counts = Counter(states.values())
    if counts["failed"]:
        failed = next(job for job, state in states.items() if state == "failed")
        raise InputError(
            f"{counts['failed']} of {len(states)} runs failed, the first in {failed.folder}: see log.txt there, put it "
            "right, and the same command goes on"
        )
    if dry_run:
        console.print("nothing was started: the same without --dry-run does it")
    elif counts["elsewhere"]:
        console.print(f"{counts['elsewhere']} runs are being trained by another process: the same command looks again")


def _table(states: dict[Job, State], places: dict[Job, str]) -> Table:
    from rich import box
    from rich.table import Table

    counts = Counter(states.values())
    title = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    for heading in ("run", "seed", "state", "", "where"):
        table.add_column(heading)
    colours = {"done": "green", "failed": "red", "running": "cyan"}
    for job, state in states.items():
        colour = colours.get(state, "")
        shown = f"[{colour}]{state}[/]" if colour else state
        table.add_row(job.name, str(job.seed), shown, _told(job, state), places.get(job, ""))
    return table


def _told(job: Job, state: State) -> str:
    from rich.markup import escape

    from cascaded.sweep.engines import LOG

    log = job.folder / LOG
    if state == "failed" and log.exists():
        return escape(log.read_text(errors="replace").strip().splitlines()[-1:][0])
    return job.told()


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
