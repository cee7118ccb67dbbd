"""`cascaded sweep`: methods x lambdas x seeds."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich.markup import escape
from tyro.conf import DisallowNone, Fixed, Suppress

from cascaded.cli.train import given_in, print_notes
from cascaded.cli.usage import value_of
from cascaded.errors import InputError, at_least
from cascaded.files import check_writable
from cascaded.progress import print_line, table, wide_console
from cascaded.shell import help_default, program
from cascaded.traces.config import RecordingConfig
from cascaded.training.config import DEFAULT_EXECUTION, FITTED, ExecutionConfig, RecipeName, RunConfig, recipe_for
from cascaded.training.method import MethodName
from cascaded.training.runs import has_config, is_done, read_config
from cascaded.training.sweep import Job, plan

if TYPE_CHECKING:
    from rich.table import Table

    from cascaded.training.engines import Status


@dataclass(frozen=True)
class SharedConfig(RunConfig):
    """What all runs of a sweep have in common; the other fields differ between them."""

    method: Annotated[MethodName, Fixed, Suppress] = "cascaded-td"
    lam: Annotated[None, Fixed, Suppress] = None
    fold: Annotated[None, Fixed, Suppress] = None
    fill_statistics: Annotated[bool, Fixed, Suppress] = False
    seed: Annotated[int, Fixed, Suppress] = 0


def sweep(
    config: Annotated[SharedConfig, tyro.conf.arg(name="")],
    execution: Annotated[ExecutionConfig, tyro.conf.arg(name="")] = DEFAULT_EXECUTION,
    *,
    recipe: RecipeName = "laptop",
    methods: tuple[MethodName, ...] = ("cascaded-td",),
    lam: Annotated[tuple[str, ...], help_default("each method's own")] = (),
    seeds: tuple[int, ...] = (0,),
    folds: Annotated[int | None, DisallowNone, help_default("no folds")] = None,
    out: Path = Path("runs"),
    engine: Literal["local", "ray"] = "local",
    address: Annotated[str | None, DisallowNone, help_default("the cluster of this machine")] = None,
    num_workers: Annotated[int | None, DisallowNone, help_default("as many as cores allow")] = None,
    dry_run: bool = False,
    kernel: str = "ews:0.9",
    steps: Annotated[int | None, DisallowNone, help_default("until the output is constant; 70 under ews")] = None,
    dtype: Literal["float32", "float16"] = "float32",
    given: Annotated[tuple[str, ...], Fixed, Suppress] = (),
) -> None:
    """Train methods x lambdas x seeds as independent runs. Run the same command again to resume what is not finished.

    Every run is kept in OUT/METHOD-lamLAMBDA/SEED, with its output in log.txt. A run that fails does not stop others.

    With --folds, every run is then recorded on the fold that it was not trained on, so that every training image is
    recorded once: `cascaded analyze OUT` joins the folds, and correlates latency with C-scores and centrality.

    Example: cascaded sweep --data cifar10 --methods cascaded-td cascaded-ce --lam 0 0.5 1 --seeds 0 1

    Args:
        config: What all runs have in common.
        execution: How each of them is computed.
        recipe: laptop: a narrow network within the hour on two cores; strong: a wider one in hours, in two phases (see
            docs/training.md); paper: the paper's training, for a GPU. Other options override its values.
        methods: Training methods.
        lam: Lambdas of the TD methods. Methods without one are trained once per seed.
        seeds: The same for every method.
        folds: Hold out each of this many folds of the training images once, in a run of its own.
        out: The folder of all runs.
        engine: Processes of this machine, or a Ray cluster whose machines share OUT.
        address: Address of the Ray cluster.
        num_workers: Runs at a time on this machine.
        dry_run: Only print what would be done.
        kernel: With --folds: delay kernel of the recordings. Serial networks have no delays and are recorded without.
        steps: With --folds: number of steps to record.
        dtype: With --folds: float16 halves the size of the recordings.
        given: Options that are not chosen from the number of images.
    """
    at_least(1, num_workers=num_workers)
    shared = RunConfig(**{field.name: getattr(config, field.name) for field in fields(RunConfig)})
    jobs = plan(shared, methods, lam, seeds, out, folds)
    started = next((job for job in jobs if has_config(job.folder)), None)
    if started is not None:  # as the runs that are there have it
        own = read_config(started.folder)
        shared = replace(shared, **{name: getattr(own, name) for name in FITTED if name not in given})
    elif not dry_run:  # a dry run needs no data: it may not be here yet
        from cascaded.training.fit import fit

        check_writable(out)
        shared, notes = fit(jobs[0].config, given if recipe == "laptop" else FITTED)  # the same for all runs
        print_notes(notes)
    jobs = plan(shared, methods, lam, seeds, out, folds)
    recording = RecordingConfig(split="validation", kernel=kernel, steps=steps, embeddings=True, dtype=dtype)
    if folds is not None:
        from cascaded.traces.protocols import check_config

        check_config(recording)
    if dry_run:
        from cascaded.training.engines import Status

        _conclude({job: Status(job.state(), job.progress()) for job in jobs})
        print("nothing was started: leave out --dry-run to start it")
        return
    _conclude(_run(jobs, execution, engine, address, num_workers))
    if folds is not None:
        _record_folds(jobs, recording, execution.device)
    if all(is_done(job.folder) for job in jobs):
        print(f"next: {program()} {'record' if folds is None else 'analyze'} {shlex.quote(str(out))}")


def _record_folds(jobs: Sequence[Job], recording: RecordingConfig, device: str) -> None:
    """Record every run on the fold that was held out of its training."""
    from cascaded.traces.record import record
    from cascaded.training.distributed import choose_device
    from cascaded.training.load import load_run

    if unfinished := [job.folder for job in jobs if not is_done(job.folder)]:
        raise InputError(
            f"{len(unfinished)} of {len(jobs)} folds are not trained to the end, the first in {unfinished[0]}, another "
            "process is training it: wait for it, then run the same command again"
        )
    for job in jobs:
        serial = job.config.get_method().schedule == "serial"
        own = replace(recording, kernel="osd", steps=None) if serial else recording
        for file, new in record(load_run(job.folder, choose_device(device)), own).items():
            print(f"wrote {file}" if new else f"exists already: {file}")


def prepare(words: Sequence[str]) -> Callable[..., None]:
    """The command with the defaults of the recipe that its words name."""
    recipe = recipe_for(value_of(words, "--recipe"), value_of(words, "--arch"))
    shared = SharedConfig(**{field.name: getattr(recipe, field.name) for field in fields(RunConfig)})
    return partial(sweep, config=shared, given=given_in(words))


def _run(
    jobs: Sequence[Job], execution: ExecutionConfig, engine: str, address: str | None, num_workers: int | None
) -> Mapping[Job, Status]:
    """Train all runs, with a table of their progress, or one line per run that has ended."""
    from rich.console import Console
    from rich.live import Live

    from cascaded.training.engines import Ray, run_jobs

    console = Console(stderr=True)

    def on_update(statuses: Mapping[Job, Status]) -> None:
        if console.is_terminal:
            live.update(_table(statuses), refresh=True)

    def on_end(job: Job, status: Status) -> None:
        if not console.is_terminal:
            print_line(console, f"{job.folder}: {status.state} {status.message}")

    with Live(console=console, transient=True, auto_refresh=False) as live:
        made = Ray(execution, address) if engine == "ray" else None
        return run_jobs(jobs, execution, made, num_workers, on_update, on_end)


def _conclude(statuses: Mapping[Job, Status]) -> None:
    """Print the table; runs that failed are an error."""
    from cascaded.training.engines import check_ended

    console = wide_console()
    console.print(_table(statuses))
    counts = Counter(status.state for status in statuses.values())
    check_ended(statuses)
    if counts["elsewhere"]:
        console.print(f"trained by another process: {counts['elsewhere']} of {len(statuses)}; run this again later")


def _table(statuses: Mapping[Job, Status]) -> Table:
    colors = {"done": "green", "failed": "red", "running": "cyan"}
    rows = [
        {
            "run": job.name,
            "seed": str(job.config.seed),
            "state": f"[{colors.get(status.state, 'default')}]{status.state}[/]",
            "progress": escape(status.message),
            "where": status.where,
        }
        for job, status in statuses.items()
    ]
    counts = Counter(status.state for status in statuses.values())
    return table(rows, ", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
