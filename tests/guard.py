"""What reading a file may not do: unpickle, allocate more than a bound, or warn of anything but damage."""

from __future__ import annotations

import resource
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cascaded.training.checkpoint import DamagedCheckpoint

MEMORY = 2**31
"""Bytes that reading a small file may map or allocate."""

_armed = False


class UnpickledError(BaseException):
    """A file was unpickled."""


def _audit(event: str, _: tuple[Any, ...]) -> None:
    if _armed and event == "pickle.find_class":
        raise UnpickledError


sys.addaudithook(_audit)


@contextmanager
def guarded() -> Iterator[None]:
    """Fail on an unpickled file, on a large allocation, and on any warning but that a file is damaged."""
    global _armed
    with warnings.catch_warnings(record=True) as caught, _bounded():
        warnings.simplefilter("always")
        _armed = True
        try:
            yield
        finally:
            _armed = False
    other = [f"{each.category.__name__}: {each.message}" for each in caught if not _is_of_damage(each)]
    assert not other, other


def _is_of_damage(warning: warnings.WarningMessage) -> bool:
    return issubclass(warning.category, DamagedCheckpoint) or "is damaged: the images are decoded again" in str(
        warning.message
    )


@contextmanager
def _bounded() -> Iterator[None]:
    """Larger allocations fail, with MemoryError or what a library makes of it; Linux alone says how much is mapped."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        yield
        return
    now = int(statm.read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
