"""Every command with its help: docs/commands.md.

Run: .venv/bin/python scripts/commands.py (a test fails if the page is out of date)
"""

from __future__ import annotations

import io
import os
from contextlib import redirect_stdout, suppress
from pathlib import Path
from unittest.mock import patch

from cascaded.cli import main as cli

PAGE = Path(__file__).parent.parent / "docs" / "commands.md"
TOP = """# Commands

*Made from `--help` by `scripts/commands.py`.*

| command | what it does |
| --- | --- |
{rows}

Bad input ends in one sentence with the fix and exit code 2; Ctrl-C in exit code 130: run the same command again to
resume. [Files](files.md) lists what each command writes.
"""


def printed(command: str) -> str:
    """The help of a command, at most 110 columns wide; a stream without an encoding gets no frames and no colors."""
    out = io.StringIO()
    with patch.dict(os.environ, COLUMNS="110"), redirect_stdout(out), suppress(SystemExit):
        cli.run([command, "--help"])
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def page() -> str:
    """The whole page."""
    rows = "\n".join(f"| [`{name}`](#{name}) | {purpose} |" for name, purpose in cli.COMMANDS.items())
    sections = (f"## {name}\n\n```text\n{printed(name).strip()}\n```\n" for name in cli.COMMANDS)
    return "\n".join([TOP.format(rows=rows), *sections])


if __name__ == "__main__":
    PAGE.write_text(page())
