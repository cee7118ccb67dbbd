"""Progress of long work: a bar on a terminal, a plain line now and then everywhere else."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column

EVERY = 30.0
"""Seconds between two lines where there is no terminal."""


WIDE = 180
"""Columns where there is no terminal."""


class Told:
    """How far a piece of work has come; subclasses show it."""

    def __init__(self, what: str, total: int, done: int = 0):
        self.what, self.total, self.done = what, total, done

    def advance(self, by: int = 1, what: str | None = None) -> None:
        """Some more is done; `what` replaces what is said about it."""
        self.done += by
        self.what = what or self.what
        self.show()

    def show(self) -> None:
        """Bring the display up to date."""

    def say(self, line: str) -> None:
        """A line that stays."""


class Bar(Told):
    """A bar with the time left."""

    def __init__(self, progress: Progress, what: str, total: int, done: int):
        super().__init__(what, total, done)
        self.progress = progress
        self.task = progress.add_task(what, total=total, completed=done)

    def show(self) -> None:
        self.progress.update(self.task, completed=self.done, description=self.what)

    def say(self, line: str) -> None:
        self.progress.console.print(line, highlight=False, markup=False)


class Lines(Told):
    """A line at most every `EVERY` seconds."""

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

    def say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


@contextmanager
def progress(what: str, total: int, done: int = 0, quiet: bool = False) -> Iterator[Told]:
    """Show how far work has come while it runs.

    Args:
        what: What is being done.
        total: How many pieces there are.
        done: How many were done before.
        quiet: Show nothing, for processes that stand beside the one that speaks.
    """
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield Told(what, total, done) if quiet else Lines(what, total, done)
        return
    # what is said comes last: where the terminal is narrow it is cut, and the time left is not
    said = TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis"))
    columns = (BarColumn(bar_width=20), MofNCompleteColumn(), TimeRemainingColumn(), said)
    with Progress(*columns, console=console, transient=True) as shown:
        yield Bar(shown, what, total, done)


@contextmanager
def tracked(what: str) -> Iterator[Callable[[int, int], None]]:
    """Progress of work whose size is not known beforehand: yields a function of the items done and of all items."""
    bars: list[Told] = []
    with ExitStack() as stack:

        def on_progress(done: int, total: int) -> None:
            if not bars:
                bars.append(stack.enter_context(progress(what, total)))
            bars[0].advance(done - bars[0].done)

        yield on_progress


def wide_console() -> Console:
    """The terminal, for tables; in a file or a pipe there is no edge, and nothing needs to wrap."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDE
    return console


def say(console: Console, line: str) -> None:
    """A line as it is: names of files and folders may look like markup."""
    console.print(line, markup=False, soft_wrap=True)


def readable(text: str) -> str:
    """A name on one line: files may be called anything, and a terminal obeys some letters."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def counted(number: int, what: str) -> str:
    """A count with its noun: 1 image, 1,200 images, 2 classes."""
    return f"{number:,} {what}" + ("" if number == 1 else "es" if what.endswith("s") else "s")


def minutes(seconds: float) -> str:
    """A span of time as people say it: 45 s, 12 min, 3 h 20 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    whole = round(seconds / 60)
    return f"{whole} min" if whole < 90 else f"{whole // 60} h {whole % 60} min"
