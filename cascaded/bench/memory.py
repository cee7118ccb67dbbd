"""The peak memory of one contender's work, in a process of its own: `python -m cascaded.bench.memory JOB`."""

from __future__ import annotations

import ctypes
import gc
import json
import resource
import sys
from pathlib import Path

import torch

from cascaded.bench.compare import Setting, prepare

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def main(job: str) -> None:
    """Print how many bytes the work adds at its peak to what stands in memory before it."""
    described = json.loads(job)
    setting = Setting(**described["setting"])
    torch.set_num_threads(setting.threads)
    small = Setting(**described["setting"] | {"batch": 2})
    prepare(small, described["contender"])()  # what torch sets up on first use is not the contender's
    run = prepare(setting, described["contender"])
    gc.collect()
    before = _now()
    run()
    print(_peak() - before)


def _now() -> int:
    """Bytes in use; on Linux the peak starts anew here, elsewhere the peak so far stands in."""
    if not RESET.exists():
        return _peak()
    # memory that was freed but not given back would hide what the work takes
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)
    RESET.write_text("5")
    return _status("VmRSS")


def _peak() -> int:
    if STATUS.exists():
        return _status("VmHWM")
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _status(name: str) -> int:
    (line,) = (line for line in STATUS.read_text().splitlines() if line.startswith(name + ":"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main(sys.argv[1])
