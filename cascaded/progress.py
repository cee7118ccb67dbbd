"""Progress of long work, a bar on a terminal and plain lines elsewhere; and text for terminals."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

EVERY = 30.0
"""Seconds between two lines without a terminal."""
WIDE = 180
"""Columns without a terminal."""


class Display:
    """The progress of some work; this one shows nothing, subclasses show it."""

    def __init__(self, what: str, total: int, done: int = 0):
        self.what, self.total, self.done = what, total, done

    def advance(self, by: int = 1, what: str | None = None) -> None:
        """Count items as done; `what` replaces the description."""
        self.done += by
        self.what = what or self.what
        self.show()

    def show(self) -> None:
        """Update the display."""

    def log(self, line: str) -> None:
        """Print a line above the progress."""


class Bar(Display):
    """A progress bar with the remaining time."""

    def __init__(self, progress: Progress, what: str, total: int, done: int):
        super().__init__(what, total, done)
        self.progress = progress
        self.task = progress.add_task(what, total=total, completed=done)

    def show(self) -> None:
        self.progress.update(self.task, completed=self.done, description=self.what)

    def log(self, line: str) -> None:
        self.progress.console.print(line, highlight=False, markup=False)


class Lines(Display):
    """One line every `EVERY` seconds at most."""

    def __init__(self, what: str, total: int, done: int):
        super().__init__(what, total, done)
        self.first, self.began, self.last = done, time.monotonic(), time.monotonic()

    def show(self) -> None:
        now = time.monotonic()
        if now - self.last < EVERY or self.done <= self.first:
            return
        self.last = now
        left = (now - self.began) / (self.done - self.first) * (self.total - self.done)
        print(f"{self.what}: {self.done}/{self.total}, {minutes(left)} left", file=sys.stderr, flush=True)

    def log(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


@contextmanager
def progress(what: str, total: int, done: int = 0, quiet: bool = False) -> Iterator[Display]:
    """Show the progress of some work while it runs.

    Args:
        what: Description of the work.
        total: Number of items.
        done: Number of items that were done before.
        quiet: Show nothing, for all processes but the main one.
    """
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield Display(what, total, done) if quiet else Lines(what, total, done)
        return
    # the description comes last: a narrow terminal cuts it off, and not the remaining time
    description = TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis"))
    columns = (BarColumn(bar_width=20), MofNCompleteColumn(), TimeRemainingColumn(), description)
    with Progress(*columns, console=console, transient=True) as bars:
        yield Bar(bars, what, total, done)


@contextmanager
def tracked(what: str) -> Iterator[Callable[[int, int], None]]:
    """Progress of work whose size is not known beforehand: yields a function of the items done and of all items."""
    bars: list[Display] = []
    with ExitStack() as stack:

        def on_progress(done: int, total: int) -> None:
            if not bars:
                bars.append(stack.enter_context(progress(what, total)))
            bars[0].advance(done - bars[0].done)

        yield on_progress


def wide_console() -> Console:
    """A console for tables; in a file or a pipe lines are long and do not wrap."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDE
    return console


def table(rows: Sequence[Mapping[str, str]], title: str = "", numbers: Collection[str] = ()) -> Table:
    """A table for a terminal.

    Args:
        rows: The cells of every row, by the heading of their column; rich markup is allowed.
        title: Printed above it.
        numbers: Headings of columns that are right-aligned.
    """
    made = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left")
    headings = list(dict.fromkeys(heading for row in rows for heading in row))
    for heading in headings:
        made.add_column(heading, justify="right" if heading in numbers else "left")
    for row in rows:
        made.add_row(*(row.get(heading, "") for heading in headings))
    return made


def print_line(console: Console, line: str) -> None:
    """Print a line unchanged: names of files and folders may look like markup."""
    console.print(line, markup=False, soft_wrap=True)


def readable(text: str) -> str:
    """A name on one line, without control characters, which a terminal would obey."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def counted(number: int, what: str) -> str:
    """A count with its noun: 1 image, 1,200 images, 2 classes."""
    return f"{number:,} {what}" + ("" if number == 1 else "es" if what.endswith("s") else "s")


def minutes(seconds: float) -> str:
    """A duration in words: 45 s, 12 min, 3 h 20 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    whole = round(seconds / 60)
    return f"{whole} min" if whole < 90 else f"{whole // 60} h {whole % 60} min"
