"""`cascaded sweep`: models x lambdas x seeds."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from tyro.conf import DisallowNone

from cascaded.errors import InputError
from cascaded.progress import cores, wide_console
from cascaded.shell import help_default
from cascaded.training.config import Spec
from cascaded.training.method import MethodName
from cascaded.training.options import Options
from cascaded.training.recipe import FITTED
from cascaded.training.runs import read_spec
from cascaded.training.sweep import Job, State, plan

if TYPE_CHECKING:
    from rich.table import Table

    from cascaded.training.engines import Engine, Outcome

LOOK = 0.5
"""Seconds between two looks at what is running."""


def sweep(
    options: Annotated[Options, tyro.conf.arg(name="")],
    *,
    models: tuple[MethodName, ...] = ("cascaded-td",),
    lam: Annotated[tuple[str, ...], help_default("each model's own")] = (),
    seeds: tuple[int, ...] = (0,),
    folds: Annotated[int | None, DisallowNone, help_default("no folds")] = None,
    out: Path = Path("runs"),
    engine: Literal["local", "ray"] = "local",
    address: Annotated[str | None, DisallowNone, help_default("the cluster of this machine")] = None,
    jobs: Annotated[int | None, DisallowNone, help_default("as many as cores allow")] = None,
    dry_run: bool = False,
) -> None:
    """Train models x lambdas x seeds as independent runs; the same command again goes on with what is not done.

    Every run is kept in OUT/MODEL-lamLAMBDA/SEED, with what it said in log.txt. A run that fails does not stop others.

    Example: cascaded sweep --data cifar10 --models cascaded-td cascaded-ce --lam 0 0.5 1 --seeds 0 1 --out runs/cifar10

    Args:
        options: Data, network, recipe; the same for all runs.
        models: Which of the paper's models.
        lam: Lambdas of the TD models. Models without one are trained once per seed.
        seeds: The same for every model.
        folds: Hold each of so many folds of the training images out once, in a run of its own.
        out: Where the runs are kept.
        engine: Processes of this machine, or a Ray cluster whose machines share OUT.
        address: Address of the Ray cluster.
        jobs: Runs at a time on this machine.
        dry_run: Only say what would be done.
    """
    if jobs is not None and jobs < 1:
        raise InputError(f"--jobs is {jobs}: give at least 1")
    if folds is not None and options.fold is not None:
        raise InputError(
            f"--folds is {folds} and --fold {options.fold}: say --folds for all of them, or --fold for one"
        )
    asked = plan(models, lam, seeds, out, folds)
    begun = next((job for job in asked if (job.folder / "spec.json").exists()), None)
    if begun is not None:  # as the runs that are there have it
        own = read_spec(begun.folder).recipe
        options = replace(options, **{name: getattr(own, name) for name in FITTED if getattr(options, name) is None})
    elif not dry_run:  # a dry run needs no data: it may not be here yet
        options = _fitted(options, asked[0])
    train_jobs(dict.fromkeys(asked, options), engine=engine, address=address, jobs=jobs, dry_run=dry_run)


def train_jobs(
    asked: Mapping[Job, Options],
    *,
    engine: Literal["local", "ray"] = "local",
    address: str | None = None,
    jobs: int | None = None,
    dry_run: bool = False,
) -> None:
    """Train some runs, with a table of how far each is; raises `InputError` at the end if one has failed.

    Args:
        asked: The runs, each with its data, network and recipe; how it is computed is the same for all. Those that are
            done are left alone, and those that were interrupted go on.
        engine: Processes of this machine, or a Ray cluster.
        address: Of the cluster.
        jobs: Runs at a time on this machine.
        dry_run: Only say what would be done.
    """
    # what is wrong with a run is said before the first one starts
    states: dict[Job, State] = {job: job.state(_spec(options, job)) for job, options in asked.items()}
    outcomes: dict[Job, Outcome] = {}
    waiting = [job for job, state in states.items() if state == "waiting"]
    if waiting and not dry_run:
        made = _engine(engine, asked[waiting[0]], min(jobs or len(waiting), len(waiting)), address)
        exact = {job: asked[job].with_recipe(_spec(asked[job], job).recipe) for job in waiting}
        _train_all(made, {job: replace(each, threads=None) for job, each in exact.items()}, states, outcomes)
    _conclude(states, outcomes, dry_run)


def _spec(options: Options, job: Job) -> Spec:
    spec = options.spec(job.model, job.lam, job.seed)
    return replace(spec, fold=job.fold) if job.fold else spec


def _fitted(options: Options, job: Job) -> Options:
    """Options with batch size and epochs chosen once, so that they are the same for all runs."""
    from cascaded.training.fit import fit

    spec, lines = fit(_spec(options, job), options)
    for line in lines:
        print(line, file=sys.stderr)
    return options.with_recipe(spec.recipe)


def _engine(name: str, options: Options, runs: int, address: str | None) -> Engine:
    """What computes so many runs at a time; on this machine no more than it has cores or, if it has any, GPUs."""
    from cascaded.training.engines import Local, Ray

    on_gpu = options.device in ("auto", "cuda")
    if name == "ray":
        return Ray(options.threads or 1, on_gpu, address)
    import torch

    gpus = torch.cuda.device_count() if on_gpu else 0
    slots = min(runs, gpus or cores())
    return Local(slots, options.threads or max(1, cores() // slots), gpus)


def _train_all(
    engine: Engine, waiting: Mapping[Job, Options], states: dict[Job, State], outcomes: dict[Job, Outcome]
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
                    engine.start(job, [*waiting[job].arguments(), *job.arguments()])
                    states[job] = "running"
                for job, outcome in engine.ended().items():
                    states[job], outcomes[job] = ("failed" if outcome.code else "done"), outcome
                    if not console.is_terminal:
                        told = _told(job, states[job], outcome)
                        console.print(f"{job.folder}: {states[job]} {told}", highlight=False, soft_wrap=True)
                if console.is_terminal:
                    live.update(_table(states, outcomes), refresh=True)
                time.sleep(LOOK)
    except KeyboardInterrupt as stopped:
        raise KeyboardInterrupt("interrupted: the same command goes on") from stopped
    finally:
        engine.stop()


def _conclude(states: dict[Job, State], outcomes: dict[Job, Outcome], dry_run: bool) -> None:
    console = wide_console()
    console.print(_table(states, outcomes))
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
        console.print(f"trained by another process: {counts['elsewhere']} of {len(states)}; run this again to see them")


def _table(states: dict[Job, State], outcomes: dict[Job, Outcome]) -> Table:
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
        outcome = outcomes.get(job)
        table.add_row(job.name, str(job.seed), shown, _told(job, state, outcome), outcome.place if outcome else "")
    return table


def _told(job: Job, state: State, outcome: Outcome | None) -> str:
    """How far a run is or, if it failed, the last it said."""
    from rich.markup import escape

    from cascaded.training.engines import LOG

    if state != "failed" or outcome is None:
        return job.told()
    log = job.folder / LOG
    said = log.read_text(errors="replace").split("\n") if log.exists() else []
    return escape(next((line for line in reversed(said) if line.strip()), f"ended with code {outcome.code}"))
