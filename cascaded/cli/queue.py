"""`cascaded reproduce --status` and `--pause`: both read the files of the queue, without torch."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console

from cascaded.errors import InputError
from cascaded.paper.status import PAUSE, QueueFile, counts, progress_of, seconds_left
from cascaded.progress import counted, minutes, print_line, table
from cascaded.shell import program
from cascaded.training.runs import is_locked

NEXT = 5
"""How many of the next networks are listed."""
POLL_SECONDS = 0.2
PAUSE_SECONDS = 600.0
"""How long `--pause` waits for a queue to stop."""


def show_status(out: Path, where: str, console: Console) -> None:
    """Print what of the queue is done, running, failed and next.

    Args:
        out: The folder of the reproduction.
        where: Scale and folder, as on the command line.
        console: Where to print.
    """
    queue = QueueFile.read(out)
    if queue is None:
        raise InputError(f"there is no queue in {out}: {program()} reproduce all {where} starts one")
    left, lines = seconds_left(queue), []
    for stage, seconds in left.items():
        own = counts([entry for entry in queue.entries if entry.stage == stage])
        lines.append({"stage": str(stage), **{state: str(n) for state, n in own.items()}, "left": minutes(seconds)})
    total = {state: str(n) for state, n in counts(queue.entries).items()}
    lines.append({"stage": "all", **total, "left": minutes(sum(left.values()))})
    console.print(table(lines, f"the queue in {out}: {counted(len(queue.entries), 'network')}", {*total, "left"}))
    for entry in queue.entries:
        if entry.state == "running":
            print_line(console, f"running: {entry.name}, {progress_of(entry)}")
    for entry in queue.entries:
        if entry.state == "failed":
            print_line(console, f"failed: {entry.name}, {entry.message}")
    waiting = [entry.name for entry in queue.entries if entry.state == "waiting"]
    if waiting:
        print_line(console, f"next: {', '.join(waiting[:NEXT])}")
    if not is_locked(out):
        print_line(console, f"the queue is not running; to resume it: {queue.command}" if waiting else "all is done")


def pause_queue(out: Path, where: str, console: Console) -> None:
    """Ask the running queue to stop, and wait until it has.

    Args:
        out: The folder of the reproduction.
        where: Scale and folder, as on the command line.
        console: Where to print.
    """
    if not is_locked(out):
        raise InputError(f"no queue is running in {out}: {program()} reproduce all {where} starts one")
    (out / PAUSE).touch()
    print_line(console, "the queue is stopping: networks in training save their state")
    end = time.monotonic() + PAUSE_SECONDS
    while is_locked(out):
        if time.monotonic() > end:
            raise InputError(
                f"the queue in {out} is still running after {minutes(PAUSE_SECONDS)}: look at it with {program()} "
                f"reproduce --status {where}, or end its process and start it again"
            )
        time.sleep(POLL_SECONDS)
    (out / PAUSE).unlink(missing_ok=True)  # the queue had just ended
    queue = QueueFile.read(out)
    print_line(console, "paused" + ("" if queue is None else f"; to resume: {queue.command}"))
