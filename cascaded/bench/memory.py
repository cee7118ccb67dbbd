"""Peak memory of one implementation, in a process of its own: `python -m cascaded.bench.memory JOB`."""

from __future__ import annotations

import ctypes
import gc
import json
import resource
import sys
from dataclasses import replace
from pathlib import Path

import torch

from cascaded.bench.compare import Setting, prepare

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def main(job: str) -> None:
    """Print the peak memory of one run in bytes, minus the memory in use before it."""
    parsed = json.loads(job)
    setting, implementation = Setting(**parsed["setting"]), parsed["implementation"]
    torch.set_num_threads(setting.threads)
    prepare(replace(setting, batch_size=2), implementation)()  # memory that torch allocates on first use
    run = prepare(setting, implementation)
    gc.collect()
    before = _now()
    run()
    print(_peak() - before)


def _now() -> int:
    """Bytes in use. On Linux this resets the peak; elsewhere the peak so far is returned."""
    if not RESET.exists():
        return _peak()
    # freed memory that was not returned to the system would hide what the run allocates
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
