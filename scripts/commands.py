"""Every command with its purpose, an example and its options, from `--help`: docs/commands.md.

Run: .venv/bin/python scripts/commands.py (a test fails if the page is out of date)
"""

from __future__ import annotations

import io
import os
import re
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from unittest.mock import patch

from cascaded.cli import main as cli

PAGE = Path(__file__).parent.parent / "docs" / "commands.md"
BORDERS = "│╭╮╰╯─|"
SHARED = 10
"""If a command shares at least this many options in a row with an earlier one, the page refers to that one."""

TOP = """# Every command

*Made from `--help` by `scripts/commands.py`.*

| command | what it does |
| --- | --- |
{rows}

`cascaded COMMAND --help` prints the same. Bad input ends in one sentence with the fix and exit code 2; Ctrl-C in exit
code 130: run the same command again to resume. [Files](files.md) lists what each command writes.
"""


@dataclass(frozen=True)
class Help:
    """The help of a command.

    Attributes:
        usage: How it is called.
        about: What it does, as paragraphs.
        examples: Commands to copy.
        options: Maps a flag or name, as Markdown, to its description.
    """

    usage: str
    about: list[str]
    examples: list[str]
    options: dict[str, str]


def printed(command: str) -> str:
    """The help of a command, on lines wide enough to avoid wrapping."""
    out = io.StringIO()
    with patch.dict(os.environ, COLUMNS="4000"), redirect_stdout(out), suppress(SystemExit):
        cli.run([command, "--help"])
    return re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())


def parsed(text: str) -> Help:
    """Parse a help text: paragraphs first, then boxes of options."""
    head, *boxes = re.split(r"\n\W*(?:positional arguments|options)\W*\n", text)
    usage, *paragraphs = [" ".join(each.split()) for each in re.split(r"\n\s*\n", head.strip()) if each.strip()]
    about = [each for each in paragraphs if not each.startswith("Example:") and each.strip(BORDERS + " -")]
    examples = [each.removeprefix("Example:").strip() for each in paragraphs if each.startswith("Example:")]
    entries = [entry for box in boxes for entry in entries_of(box) if not entry[0].startswith("-h")]
    return Help(usage.removeprefix("usage: ").replace("[-h] ", ""), about, examples, dict(map(worded, entries)))


def entries_of(box: str) -> list[tuple[str, str]]:
    """Name and description of every option in a box; a description may begin on the line of its name or below it."""
    entries: list[tuple[str, str]] = []
    for line in box.splitlines():
        line = line.strip(BORDERS).rstrip()
        if not line.strip(" -"):
            continue
        if len(line) - len(line.lstrip()) <= 2:
            name, _, text = line.strip().partition("  ")
            entries.append((name, text.strip()))
        else:
            name, text = entries[-1]
            entries[-1] = (name, f"{text} {line.strip()}".strip())
    return entries


def worded(entry: tuple[str, str]) -> tuple[str, str]:
    """An option as Markdown: flag and type, then description and choices, and the default unless it is empty."""
    name, text = entry
    text, _, default = text.removesuffix(")").rpartition(" (default:") if "(default:" in text else (text, "", "")
    default = default.strip().strip("'")
    short, _, name = name.rpartition(", --") if re.match(r"-\w .+, --", name) else ("", "", name)
    if short:
        flag, text = worded((f"--{name}", entry[1]))
        return f"`{short.split()[0]}`, {flag}", text
    on, _, off = name.partition(", --no-")
    if off:
        return (f"`--[no-]{off}`", f"{text} Default: yes.") if default == "True" else (f"`{on}`", text)
    flag, _, kind = name.replace("{None}|", "").replace("{None,", "{").partition(" ")
    several = re.fullmatch(r"\[(.+) \[(?:\1 )?\.\.\.\]\]", kind)
    kind = f"{several[1]}..." if several else kind
    text = text.replace("(required)", "").strip()
    if choices := re.search(r"\{(.+?)\}", kind or flag):
        text += (
            (" One or more of " if several else " One of ")
            + ", ".join(f"`{each}`" for each in choices[1].split(","))
            + "."
        )
        flag, kind = (flag, "...") if several else (flag, "")
        flag = "ACTION" if flag.startswith("{") else flag
    if default not in ("", "None"):
        text += f" Default: {default}." if "`" in default else f" Default: `{default}`."
    return f"`{flag}` {kind}".strip(), text


def section(command: str, purpose: str, found: Help, before: dict[str, Help]) -> str:
    """The section of a command."""
    parts = [f"## {command}", *map(escaped, found.about or [purpose])]
    parts.append("```bash\n" + "\n".join(found.examples or [found.usage]) + "\n```")
    options = found.options
    for other, known in before.items():
        same = shared(options, known.options)
        if len(same) >= SHARED:
            first, last = (flag.split("`")[1] for flag in (same[0], same[-1]))
            parts.append(f"It accepts the options of [{other}](#{other}) from `{first}` to `{last}`, and these:")
            options = {flag: text for flag, text in options.items() if flag not in same}
            break
    rows = [f"| {flag} | {escaped(text)} |" for flag, text in options.items()]
    parts.append("\n".join(["| option | what it does |", "| --- | --- |", *rows]))
    return "\n\n".join(parts)


def shared(options: dict[str, str], known: dict[str, str]) -> list[str]:
    """The longest run of options that are identical in another command."""
    runs = groupby(options, lambda flag: known.get(flag) == options[flag])
    return max((list(flags) for same, flags in runs if same), key=len, default=[])


def escaped(text: str) -> str:
    """Escape `<` and `|`, which are markup in a Markdown table."""
    return text.replace("<", "&lt;").replace("|", "\\|")


def page() -> str:
    """The whole page."""
    known: dict[str, Help] = {}
    sections = []
    for command, purpose in cli.COMMANDS.items():
        found = parsed(printed(command))
        sections.append(section(command, purpose, found, known))
        known[command] = found
    rows = "\n".join(f"| [`{name}`](#{name}) | {escaped(purpose)} |" for name, purpose in cli.COMMANDS.items())
    return TOP.format(rows=rows) + "\n" + "\n\n".join(sections) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
