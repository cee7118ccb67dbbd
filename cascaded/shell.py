"""Command lines: commands that we print work when they are pasted, and dataclasses as options."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints


def program() -> str:
    """The word for `cascaded` in the shell that started this process.

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


def typed(command: str) -> str:
    """A stored command, `cascaded record ...`, or several (`&&`, `;`), as it is typed in this shell."""
    return re.sub(r"(^|&& |; )cascaded ", lambda match: f"{match[1]}{program()} ", command)


QUOTES = "'"


def help_default(text: str, metavar: str | None = None) -> Any:
    """For `Annotated`: what `--help` shows as the default if that is None or empty; any other default is shown."""
    import tyro

    def hint(default: str) -> str:
        return f"(default: {text if default.strip(QUOTES) in ('None', 'False', '', '()', '.') else default})"

    return tyro.conf.arg(metavar=metavar, help_behavior_hint=hint)


def to_args(config: Any, defaults: Any) -> list[str]:
    """The words of a command line that give a configuration; fields that have their default value are left out.

    Args:
        config: A dataclass that tyro parses.
        defaults: What the command starts from: the same dataclass.
    """
    words: list[str] = []
    hints = get_type_hints(type(config), include_extras=True)
    for field in fields(config):
        value = getattr(config, field.name)
        if value == getattr(defaults, field.name):
            continue
        option = field.name.replace("_", "-")
        written = [
            each for each in getattr(hints[field.name], "__metadata__", ()) if hasattr(each, "str_from_instance")
        ]
        if hints[field.name] is bool:
            words.append(f"--{option}" if value else f"--no-{option}")
        elif written:
            words += [f"--{option}", *written[0].str_from_instance(value)]
        else:
            words += [f"--{option}", *map(str, value if isinstance(value, tuple) else [value])]
    return words
