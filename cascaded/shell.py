"""The command line as a user types it: commands that we print work when they are pasted."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path


def program() -> str:
    """What to type for `cascaded` in the shell that started this process.

    `cascaded` itself if that name on the PATH is this installation; otherwise the path of its script, such as
    `.venv/bin/cascaded` after `make demo`; `python -m cascaded` with this interpreter if there is no script.
    """
    script = Path(sys.executable).with_name("cascaded.exe" if os.name == "nt" else "cascaded")
    if not script.exists():
        return f"{shlex.quote(sys.executable)} -m cascaded"
    on_path = shutil.which("cascaded")
    if on_path is not None and os.path.samefile(on_path, script):
        return "cascaded"
    here = Path.cwd()
    return shlex.quote(str(script.relative_to(here) if script.is_relative_to(here) else script))
