"""`cascaded demo`: trained networks on photographs, a network trained here, and a page about both."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import DisallowNone

from cascaded.cli.usage import check_folder
from cascaded.errors import InputError, at_least
from cascaded.progress import minutes, print_line, progress, table, wide_console
from cascaded.shell import help_default, program

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

TITLE = "Networks that predict at every step"
PARTS = {  # by training data
    "cifar10": "1 of 3: evaluating the networks that come with the package on photographs",
    "digits": "2 of 3: training a small network on handwritten digits, then evaluating it",
}


def demo(
    *,
    out: Path = Path("out/demo"),
    quick: bool = False,
    num_workers: Annotated[int | None, DisallowNone, help_default("one per core")] = None,
) -> None:
    """Evaluate networks on photographs, train a small one, and write a page: under three minutes on two cores.

    The networks that come with the package (CascadedTD with lambda 0 and 1, CascadedCE, Shallow-Deep) are evaluated on
    1,000 CIFAR-10 images: accuracy per step, speed against accuracy, noise, out-of-distribution images. Then a small
    network is trained on handwritten digits. OUT/report/index.html shows the results. If it is interrupted, run the
    same command again to resume.

    Example: cascaded demo --out out/demo

    Args:
        out: Folder of the runs and the page.
        quick: A test run: few images, and hardly anything is learned.
        num_workers: Processes at a time.
    """
    at_least(1, num_workers=num_workers)
    check_folder(out)
    from cascaded.paper.claims import evaluate
    from cascaded.paper.experiments import DEMO
    from cascaded.paper.queue import only_queue, plan, run_queue
    from cascaded.paper.reproduce import Reproduction, results_of, write_results
    from cascaded.paper.scales import DEMO_SCALE, QUICK_DEMO
    from cascaded.paper.status import RUNS
    from cascaded.report.sections import SECTIONS
    from cascaded.report.write import read_table, write_report

    console, start = wide_console(), time.monotonic()
    for data, message in PARTS.items():
        own = tuple(network for network in DEMO.networks if network.data == data)
        work = Reproduction(replace(DEMO, name=f"demo-{data}", networks=own), QUICK_DEMO if quick else DEMO_SCALE, out)
        print_line(console, message)
        with only_queue(out):
            ended = run_queue(plan([work], keep="traces"), out, f"{program()} demo", num_workers)
        if ended.paused:
            raise KeyboardInterrupt("interrupted: run the same command again to resume")
        if ended.failed:
            raise InputError("; ".join(f"{names} failed, {reason}" for names, reason in ended.failures.items()))
        for note in write_results(work).notes:
            print_line(console, f"note: {note}")
        console.print(accuracy_table(results_of(work)))
    print_line(console, "3 of 3: drawing the page")
    with progress("drawing the page", len(SECTIONS) + 1) as bar:
        claims = evaluate(read_table([out / RUNS]))
        page = write_report([out / RUNS], out / "report", TITLE, claims, lambda title: bar.advance(1, title))
    print_line(console, f"done in {minutes(time.monotonic() - start)}; open the page: {page.resolve().as_uri()}")
    print_line(
        console,
        f"next: train on your own images, one folder per class: {program()} train --data FOLDER --out runs/mine",
    )


def accuracy_table(df: pd.DataFrame) -> Table:
    """Test accuracy of every network at every step, in percent."""
    from cascaded.results.compare import bands
    from cascaded.results.names import display_name

    rows = df[(df["metric"] == "accuracy_per_step") & (df["analysis"] == "speed_accuracy") & (df["time"] == "coarse")]
    lines = []
    curves = bands(rows[rows["split"] == "test"])
    for (data, method, lam, schedule), own in curves.groupby(["data", "method", "lam", "schedule"], dropna=False):
        per_step = {f"{x:.0f}": f"{100 * value:.0f}" for x, value in zip(own["x"], own["value"], strict=True)}
        lines.append({"data": data, "network": display_name(method, lam, schedule), **per_step})
    steps = {heading for line in lines for heading in line if heading.isdigit()}
    return table(lines, "test accuracy in %, after step", steps)
