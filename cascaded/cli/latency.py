"""`cascaded latency`: the latency of early exit on this machine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated

from tyro.conf import DisallowNone

from cascaded.cli.usage import Runs, check_given
from cascaded.errors import InputError, at_least, between
from cascaded.progress import print_line, table, tracked, wide_console
from cascaded.shell import help_default

if TYPE_CHECKING:
    from pathlib import Path

    from cascaded.runtime.latency import Latency, Timing


def latency(
    runs: Runs,
    *,
    thresholds: tuple[float, ...] = (0.5, 0.7, 0.9, 0.99),
    batch_sizes: tuple[int, ...] = (1, 64),
    max_images: int = 256,
    baselines: Annotated[tuple[str, ...], help_default("none")] = (),
    device: str = "auto",
    exported: bool = True,
    threads: Annotated[int | None, DisallowNone, help_default("all cores")] = None,
) -> None:
    """Measure the latency of early exit on test images, under both schedules, relative to a full pass.

    Times the network with torch and, if the packages of cascaded[export] are installed, exported to ONNX Runtime, and
    says which one to use on this machine. Of a network that was trained to exit between blocks, the exits that pay off
    are chosen on validation images and timed as well. Writes RUN/latency.json and the figures RUN/latency.svg (accuracy
    against milliseconds) and RUN/latency-processors.svg (predicted for hardware that updates several blocks at once).
    Compare the ratios to the full pass: seconds depend on the machine and its load.

    Example: cascaded latency runs/td0/0 --thresholds 0.7 0.9 --batch-sizes 1 64

    Example: cascaded latency runs/td0/0 --baselines runs/narrow

    Args:
        runs: Folders of runs or saved networks, or folders above them.
        thresholds: Confidences above which an item exits.
        batch_sizes: Images per batch.
        max_images: Maximum number of images, the same number per class; validation images if there is no test split.
        baselines: Other trained networks, such as a smaller ordinary one, whose full pass is timed on the same images:
            run folders, saved networks, names from `cascaded models`, or OWNER/NAME on the Hugging Face hub.
        device: auto, cpu, cuda, cuda:1, mps.
        exported: Also time the exported network, on the CPU.
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
    from cascaded.hub.locate import locate
    from cascaded.runtime.exits import describe_exits
    from cascaded.runtime.latency import CHOSEN, record_latency
    from cascaded.runtime.recommend import recommend
    from cascaded.training.distributed import choose_device, use_threads
    from cascaded.training.load import load_run

    use_threads(threads)
    console = wide_console()
    if exported and (missing := missing_packages()):
        print_line(console, f"the exported network is not timed, {missing}: pip install 'cascaded[export]'")
        exported = False
    others = {name: load_run(locate(name), choose_device(device)) for name in baselines}
    for folder in folders:
        run = load_run(folder, choose_device(device))
        with tracked(f"{folder.as_posix()}: latency") as on_progress:
            found = record_latency(run, thresholds, batch_sizes, max_images, on_progress, exported, others)
        if found.split != "test":
            print_line(console, f"{folder} has no test split: its validation images were used")
        rows = [_cells(timing) for timing in found.timings]
        print_line(console, f"{folder}:")
        console.print(table(rows, "latency of predictions", set(rows[0]) - {"runtime", "rule", "stopped at each step"}))
        if found.exits is not None:
            print_line(console, f"{CHOSEN}: {describe_exits(found.exits)}")
        for sentence in recommend(found.timings):
            print_line(console, sentence)
        for file in (found.file, *_draw(found)):
            print_line(console, f"wrote {file}")


def missing_packages() -> str:
    """Why a network cannot be exported and run here; empty if it can."""
    try:
        import_module("onnx")
        import_module("onnxruntime")
    except (ImportError, RuntimeError) as error:
        return f"a package is not installed ({error})"
    return ""


def _draw(found: Latency) -> list[Path]:
    """Write the figures; returns their files."""
    from dataclasses import asdict

    import pandas as pd

    from cascaded.figures.files import save
    from cascaded.figures.timing import measured_time, predicted_time

    stem = found.file.with_suffix("")
    files = save(measured_time(pd.DataFrame([asdict(each) for each in found.timings])), stem, ["svg"])
    if found.processors:
        rows = [
            {"rule": row["rule"], "processors": row["processors"], "step": step, "milliseconds": 1000 * seconds} | more
            for row in found.processors
            for step, seconds in enumerate(row["seconds"], start=1)
            for more in [{"accuracy": row["accuracy"][step - 1]}]
        ]
        files["processors"] = save(predicted_time(pd.DataFrame(rows)), f"{stem}-processors", ["svg"])["svg"]
    return list(files.values())


def _cells(timing: Timing) -> dict[str, str]:
    return {
        "batch": str(timing.batch_size),
        "runtime": timing.runtime,
        "rule": f"{timing.rule} of {timing.network}" if timing.network else timing.rule,
        "threshold": "" if timing.threshold is None else f"{timing.threshold:g}",
        "accuracy": f"{timing.accuracy:.1%}",
        "mean step": f"{timing.steps:.2f}",
        "p50 ms": f"{1000 * timing.p50:.2f}",
        "p95 ms": f"{1000 * timing.p95:.2f}",
        "p99 ms": f"{1000 * timing.p99:.2f}",
        "typical ms": f"{1000 * timing.typical:.2f}",
        "ms per item": f"{1000 * timing.total:.2f}",
        "of full": f"{timing.time_of_full:.2f} x",
        "stopped at each step": " ".join(f"{100 * each:.0f}" for each in timing.stopped) + " %",
    }
