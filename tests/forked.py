"""A process beside the tests that has torch already: one that is started anew imports it for seconds."""

from __future__ import annotations

import itertools
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from subprocess import Popen
from threading import Timer

PATIENCE = 300.0
"""Seconds to wait for what a process does: far longer than it takes on a busy machine, it only stops hangs."""


def forked(work: Callable[[], object]) -> int:
    """Do something in a process of its own, which says nothing and is not waited for.

    Its code is 0, or that of its SystemExit, or 1 if it raised anything else.

    Args:
        work: What to do there.
    """
    if child := os.fork():
        return child
    code = 1
    try:
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
        work()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        os._exit(code)


def limit_files(most: int) -> None:
    """Have writes to files beyond some bytes fail from now on, as on a full disk: for use in a forked process.

    Python's import system takes a write in part for a whole one, and would leave damaged bytecode for all other tests.
    """
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def is_going(child: int) -> bool:
    """Whether a process that was started here has not ended yet; its code can still be read."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def code_of(child: int, seconds: float = PATIENCE) -> int:
    """Wait for a process and return its exit code; if a signal ended it, the signal's number with a minus.

    A process that does not end in time is killed, and the test fails.
    """
    end = time.monotonic() + seconds
    while is_going(child):
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise AssertionError(f"process {child} did not end within {seconds:g} s, and was killed")
        time.sleep(0.005)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def wait_until(state: Callable[[], object], child: int | None = None, seconds: float = PATIENCE) -> None:
    """Wait for a state. The test fails if the process that is to bring it about ends first, or after some time.

    Args:
        state: Whether it is reached.
        child: The process that brings it about, if one was started for it; it is killed if the state is not reached.
        seconds: How long to wait.
    """
    end = time.monotonic() + seconds
    while not state():
        if child is not None and not is_going(child):
            assert state(), f"process {child} ended with code {code_of(child)} before what was waited for"
            return
        if time.monotonic() > end:
            if child is not None:
                os.kill(child, signal.SIGKILL)
                code_of(child)
            raise AssertionError(f"what was waited for did not happen within {seconds:g} s")
        time.sleep(0.01)


@contextmanager
def killed_in_time(process: Popen[str], seconds: float = PATIENCE) -> Iterator[None]:
    """Kill a process at the end, or when the time is up: whoever reads its output then reads nothing, and fails."""
    timer = Timer(seconds, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        process.kill()


def kill_at_call(owner: object, name: str, call: int, *, after: bool = False) -> None:
    """Have this process kill itself when a function is called for the n-th time: for use in a forked process.

    Args:
        owner: The module or class that has the function.
        name: The function.
        call: At which call, from 1.
        after: Whether the call is still carried out.
    """
    function, calls = getattr(owner, name), itertools.count(1)

    def counted(*given, **named):
        last = next(calls) == call
        if last and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = function(*given, **named)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, counted)
