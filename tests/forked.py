"""A process beside the tests that has torch already: one that is started anew imports it for seconds."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable


def forked(work: Callable[[], object]) -> int:
    """Do something in a process of its own, which says nothing and is not waited for.

    Its code is 0, or what it asked to exit with, or 1 where it raised anything else.

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
    except SystemExit as asked:
        code = asked.code if isinstance(asked.code, int) else int(asked.code is not None)
    finally:
        os._exit(code)


def is_going(child: int) -> bool:
    """Whether a process that was started here has not ended yet; its code can still be asked for."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def code_of(child: int) -> int:
    """Wait for a process and tell its code; of one that was killed, the signal with a minus."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
