"""Processes that work side by side, say nothing, and end with the one that started them."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from threading import Thread
from typing import Any

from cascaded.errors import InputError
from cascaded.progress import cores, progress


@contextmanager
def workers(count: int | None, most: int) -> Iterator[Workers]:
    """Have some processes.

    Args:
        count: How many; None for as many as there are cores.
        most: How many there is work for.
    """
    count = min(count or cores(), most)
    threads = max(1, cores() // count)
    pool, others = ProcessPoolExecutor(count, get_context("spawn"), _begin, (threads,)), active_children()
    try:
        yield Workers(pool)
    except BaseException:
        for process in active_children():
            if process not in others:
                process.terminate()  # what they write is whole or not there
        raise
    finally:
        pool.shutdown(cancel_futures=True)


class Workers:
    """Processes that wait for work."""

    def __init__(self, pool: ProcessPoolExecutor):
        self.pool = pool

    def do(self, what: str, work: Callable[..., object], tasks: Sequence[tuple[Any, ...]]) -> None:
        """Call a function once for every task, in any order, with a progress bar.

        Args:
            what: What is being done.
            work: A function of a module, not of another function.
            tasks: Its arguments, time after time.
        """
        waiting = [self.pool.submit(work, *task) for task in tasks]
        try:
            with progress(what, len(tasks)) as bar:
                for done in as_completed(waiting):
                    done.result()
                    bar.advance()
        except KeyboardInterrupt as stopped:
            raise KeyboardInterrupt("interrupted: the same command goes on") from stopped
        except BrokenProcessPool as error:
            raise InputError("a process was ended from outside, for want of memory perhaps: try --jobs 1") from error


def _begin(threads: int) -> None:
    """What every process does first."""
    import torch

    torch.set_num_threads(threads)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then stops handing out work
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A process whose parent was killed would wait for work for ever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
