"""The command line as a user types it: commands that we print work when they are pasted."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any


def program() -> str:
    """What to type for `cascaded` in the shell that started this process.

    `cascaded` itself if that name on the PATH is this installation; otherwise the path of its script, such as
    `.venv/bin/cascaded` after `make demo`; `python -m cascaded` with this interpreter if there is no script.
    """
    script = Path(sys.executable or "python").with_name("cascaded.exe" if os.name == "nt" else "cascaded")
    if not script.exists():
        return f"{shlex.quote(sys.executable or 'python')} -m cascaded"
    on_path = shutil.which("cascaded")
    if on_path is not None and os.path.samefile(on_path, script):
        return "cascaded"
    near = os.path.relpath(script) if script.is_relative_to(_here()) else str(script)
    return shlex.quote(near if os.sep in near else os.path.join(os.curdir, near))


def _here() -> Path:
    """The current folder; one that was deleted contains nothing."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path(os.devnull)


COMMANDS = "analyse|bench|crossval|data|demo|latency|models|predict|record|report|reproduce|sweep|train"


def typed(text: str) -> str:
    """Text that is stored or shared as `cascaded record ...`, with each command as it is typed in this shell."""
    return re.sub(rf"(?<![\w/.-])cascaded (?=(?:{COMMANDS})\b)", lambda _: f"{program()} ", text)


def help_default(text: str, metavar: str | None = None) -> Any:
    """For `Annotated`: the default that `--help` shows where the value itself, such as None, means nothing."""
    import tyro

    return tyro.conf.arg(metavar=metavar, help_behavior_hint=f"(default: {text})")
