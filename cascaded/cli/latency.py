"""`cascaded clock`: what stopping early is worth on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from tyro.conf import Positional

from cascaded.errors import InputError
from cascaded.shell import help_default, program

if TYPE_CHECKING:
    from rich.table import Table

    from cascaded.runtime.early_exit import Timing
    from cascaded.training.load import Trained


def clock(
    runs: Annotated[Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN...", help_behavior_hint="(required)")],
    *,
    thresholds: tuple[float, ...] = (0.5, 0.7, 0.9, 0.99),
    batches: tuple[int, ...] = (1, 64),
    limit: int = 256,
    device: str = "auto",
    threads: Annotated[int | None, help_default("all cores")] = None,
) -> None:
    """Time early exit on test images: items leave their batch once they are sure, under both schedules.

    Writes RUN/clock.json, which `cascaded analyse` puts beside steps and operations. Read the ratio to the full pass:
    seconds depend on the machine and the moment, so leave it alone meanwhile.

    Example: cascaded clock runs/td0/0 --thresholds 0.7 0.9 --batches 1 64

    Args:
        runs: Folders of runs, or folders that hold some.
        thresholds: Confidences above which an item has answered.
        batches: How many images start together.
        limit: How many test images, the same of every class; validation images where there is no test split.
        device: auto, cpu, cuda, cuda:1, mps.
        threads: Cores that torch uses.
    """
    if not runs:
        raise InputError(f"no run is given: say which, as in {program()} clock runs/td0/0")
    if not thresholds or not all(0 <= each <= 1 for each in thresholds):
        raise InputError(f"--thresholds is {list(thresholds)}: give confidences from 0 to 1")
    if not batches or min(batches) < 1 or limit < 1:
        raise InputError(f"--batches is {list(batches)} and --limit {limit}: give numbers of at least 1")
    from cascaded.training.runs import find_runs

    found = find_runs(runs)
    import torch

    from cascaded.files import write_json
    from cascaded.progress import say, wide_console
    from cascaded.training.distributed import choose_device, use_threads
    from cascaded.training.load import load_run

    use_threads(threads)
    console = wide_console()
    for folder in found:
        run = load_run(folder, choose_device(device))
        timings, items = clock_run(run, thresholds, batches, limit)
        about = {"threads": torch.get_num_threads(), "device": str(choose_device(device)), "items": items}
        told = {"format": 1, "weights": run.weights, **about, "timings": [each.to_json() for each in timings]}
        write_json(folder / "clock.json", told)
        console.print(_table(folder, timings))
        say(console, f"wrote {folder / 'clock.json'}")


def clock_run(
    run: Trained, thresholds: tuple[float, ...], batches: tuple[int, ...], limit: int
) -> tuple[list[Timing], int]:
    """Time one network, with a progress bar; how many images that was, where there are fewer than the limit."""
    from cascaded.progress import counted, progress
    from cascaded.runtime.early_exit import clock as take_times
    from cascaded.traces.select import limit_images, select_images

    images, items = select_images(run)
    items = limit_images(images, items, limit)
    schedules = ("serial",) if run.net.heads == "shallow_deep" else ("serial", "cascaded")
    device = next(run.net.parameters()).device
    shown, labels = run.normalised(images.images[items].to(device)), images.labels[items]
    rounds = len(batches) * (1 + len(schedules) * len(thresholds))
    with progress(f"{run.folder.as_posix()}: clock", rounds * len(items)) as bar:
        if images.split != "test":
            bar.say(f"{images.name} has no test split: {counted(len(items), 'validation image')} are timed")
        options = {"thresholds": thresholds, "batches": batches, "schedules": schedules}
        return take_times(run.net, shown, labels, told=bar.advance, **options), len(items)


def _table(folder: Path, timings: list[Timing]) -> Table:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, title=escape(f"{folder}: time to an answer"), title_justify="left")
    headings = ("batch", "rule", "leaves above", "accuracy", "mean step", "p50 ms", "p95 ms", "ms an item", "of full")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "rule" else "right")
    for each in timings:
        above = "" if each.threshold is None else f"{each.threshold:g}"
        spans = [f"{1000 * span:.2f}" for span in (each.p50, each.p95, each.total)]
        row = [str(each.batch), each.rule, above, f"{each.accuracy:.1%}", f"{each.steps:.2f}"]
        table.add_row(*row, *spans, f"{each.against_full:.2f} x")
    return table
