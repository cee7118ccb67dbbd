"""`cascaded latency`: the latency of early exit on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from tyro.conf import DisallowNone, Positional

from cascaded.errors import InputError, at_least
from cascaded.shell import help_default, program

if TYPE_CHECKING:
    from rich.table import Table

    from cascaded.runtime.latency import Timing


def latency(
    runs: Annotated[Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN...", help_behavior_hint="(required)")],
    *,
    thresholds: tuple[float, ...] = (0.5, 0.7, 0.9, 0.99),
    batch_sizes: tuple[int, ...] = (1, 64),
    max_images: int = 256,
    device: str = "auto",
    threads: Annotated[int | None, DisallowNone, help_default("all cores")] = None,
) -> None:
    """Measure the latency of early exit on test images, under both schedules, relative to a full pass.

    Writes RUN/latency.json. Compare the ratios to the full pass: seconds depend on the machine and its load.

    Example: cascaded latency runs/td0/0 --thresholds 0.7 0.9 --batch-sizes 1 64

    Args:
        runs: Folders of runs or saved networks, or folders above them.
        thresholds: Confidences above which an item exits.
        batch_sizes: Images per batch.
        max_images: Maximum number of images, the same number per class; validation images if there is no test split.
        device: auto, cpu, cuda, cuda:1, mps.
        threads: CPU threads.
    """
    from cascaded.training.runs import find_runs

    at_least(1, **{"--batch-sizes": min(batch_sizes, default=0), "--max-images": max_images})
    if not thresholds or not all(0 <= each <= 1 for each in thresholds):
        raise InputError(f"--thresholds is {list(thresholds)}: give confidences from 0 to 1")
    if not runs:
        raise InputError(f"no run is given: add one, as in {program()} latency runs/td0/0")
    folders = find_runs(runs)
    from cascaded.progress import print_line, tracked, wide_console
    from cascaded.runtime.latency import record_latency
    from cascaded.training.distributed import choose_device, use_threads
    from cascaded.training.load import load_run

    use_threads(threads)
    console = wide_console()
    for folder in folders:
        run = load_run(folder, choose_device(device))
        with tracked(f"{folder.as_posix()}: latency") as on_progress:
            file, split, timings = record_latency(run, thresholds, batch_sizes, max_images, on_progress)
        if split != "test":
            print_line(console, f"{folder} has no test split: its validation images were used")
        console.print(_table(folder, timings))
        print_line(console, f"wrote {file}")


def _table(folder: Path, timings: list[Timing]) -> Table:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, title=escape(f"{folder}: latency of predictions"), title_justify="left")
    headings = ("batch", "rule", "threshold", "accuracy", "mean step", "p50 ms", "p95 ms", "ms per item", "of full")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "rule" else "right")
    for each in timings:
        threshold = "" if each.threshold is None else f"{each.threshold:g}"
        spans = [f"{1000 * span:.2f}" for span in (each.p50, each.p95, each.total)]
        row = [str(each.batch_size), each.rule, threshold, f"{each.accuracy:.1%}", f"{each.steps:.2f}"]
        table.add_row(*row, *spans, f"{each.time_of_full:.2f} x")
    return table
