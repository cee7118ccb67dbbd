"""`cascaded latency`: the latency of early exit on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from tyro.conf import DisallowNone

from cascaded.cli.usage import Runs, check_given
from cascaded.errors import InputError, at_least, between
from cascaded.progress import print_line, table, tracked, wide_console
from cascaded.shell import help_default

if TYPE_CHECKING:
    from cascaded.runtime.latency import Timing


def latency(
    runs: Runs,
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
    if not thresholds:
        raise InputError("--thresholds is empty: give at least one")
    for each in thresholds:
        between(0, 1, **{"--thresholds": each})
    check_given(runs, "run", "latency runs/td0/0")
    folders = find_runs(runs)
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
        rows = [_cells(timing) for timing in timings]
        print_line(console, f"{folder}:")
        console.print(table(rows, "latency of predictions", set(rows[0]) - {"rule"}))
        print_line(console, f"wrote {file}")


def _cells(timing: Timing) -> dict[str, str]:
    return {
        "batch": str(timing.batch_size),
        "rule": timing.rule,
        "threshold": "" if timing.threshold is None else f"{timing.threshold:g}",
        "accuracy": f"{timing.accuracy:.1%}",
        "mean step": f"{timing.steps:.2f}",
        "p50 ms": f"{1000 * timing.p50:.2f}",
        "p95 ms": f"{1000 * timing.p95:.2f}",
        "ms per item": f"{1000 * timing.total:.2f}",
        "of full": f"{timing.time_of_full:.2f} x",
    }
