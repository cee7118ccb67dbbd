"""The claims ledger: every claim of the paper, held against all that was reproduced."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from cascaded.errors import InputError
from cascaded.exhibits.claimed import CLAIMS
from cascaded.exhibits.page import ClaimLine
from cascaded.files import check_types, parsing, read_json, write_json
from cascaded.paper.reproduce import RUNS, place_of
from cascaded.paper.scales import ScaleName
from cascaded.paper.stages import COMPARISON, trained_in
from cascaded.shell import program, typed

if TYPE_CHECKING:
    from rich.table import Table

FORMAT = 1
FILE = "claims.json"
PUBLISHED = Path(__file__).parents[2] / "results"
"""Results that the repository holds, a folder per scale; an installed package comes without them."""
ITEMS_FOR = {
    "C1": "table-lambda",
    "C2": "speed-accuracy",
    "C3": "prototypicality",
    "C4": "taxonomy",
    "C5": "noise-persistent noise-transient",
    "C6": "ood",
    "C7": "stopping",
}
"""Which items measure a claim."""


def published(scale: str) -> Path | None:
    """The folder of the repository's own results at a scale, relative to here if it is below; None where it is not."""
    folder, here = PUBLISHED / scale, Path.cwd()
    if not (folder / FILE).exists():
        return None
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def is_reproduced(out: Path) -> bool:
    """Whether anything in a folder was compared, so that there are claims to show."""
    return any((out / RUNS).glob(f"*/{COMPARISON}"))


def ledger(out: Path, scale: str) -> list[ClaimLine]:
    """Every measurement behind every claim, of all runs that were reproduced in a folder.

    Args:
        out: Where they were.
        scale: At which scale, for the commands that would measure what was not.
    """
    from cascaded.exhibits.claims import claim_lines
    from cascaded.exhibits.material import gather

    runs = out / RUNS
    parts = [part for part in sorted(runs.iterdir()) if part.is_dir()] if runs.is_dir() else []
    found: list[ClaimLine] = []
    for part in parts:
        compared = part / COMPARISON
        if compared.exists() and (done := trained_in(part)):
            lines = claim_lines(gather(done, compared))
            found += [_placed(line, runs) for line in lines if not line.command]  # a command: nothing was measured
    if not found:
        command = f"{program()} reproduce table-lambda --scale {scale} --out {shlex.quote(out.as_posix())}"
        nowhere = "" if published(scale) else ", and published results come with a clone of the repository alone"
        raise InputError(f"nothing is reproduced in {out}{nowhere}: {command} makes a beginning")
    return [line for claim in CLAIMS for line in _of(claim, found, scale)]


def _placed(line: ClaimLine, runs: Path) -> ClaimLine:
    return replace(line, runs=tuple(place_of(run, runs) for run in line.runs))


def _of(claim: str, found: Sequence[ClaimLine], scale: str) -> list[ClaimLine]:
    """What was measured of a claim; one line that says so where nothing was."""
    command = f"cascaded reproduce {ITEMS_FOR[claim]} --scale {scale}"
    nothing = ClaimLine(
        claim, CLAIMS[claim], "not reproduced yet", None, None, None, "", "", "", "not measured", command
    )
    return [line for line in found if line.claim == claim] or [nothing]


def write_ledger(lines: Sequence[ClaimLine], scale: str, folder: Path) -> Path:
    """Keep it as FOLDER/claims.json."""
    file = folder / FILE
    write_json(file, {"format": FORMAT, "scale": scale, "lines": [asdict(line) for line in lines]})
    return file


def read_ledger(file: Path) -> tuple[str, list[ClaimLine]]:
    """The scale, and what `write_ledger` wrote."""
    told: Any = read_json(file)
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise InputError(f"{file} is no ledger that this cascaded reads: {program()} reproduce claims writes it")
    with parsing(file, f"{program()} reproduce claims writes it again"):
        for line in told["lines"]:
            check_types(line, ClaimLine)
        if told["scale"] not in get_args(ScaleName):
            raise ValueError(f"scale is {told['scale']!r}")
        return told["scale"], [ClaimLine(**{**line, "runs": tuple(line["runs"])}) for line in told["lines"]]


def ledger_table(lines: Sequence[ClaimLine]) -> Table:
    """The ledger for a terminal."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, title="what of the paper shows here", title_justify="left")
    for heading in ("claim", "what was measured", "effect", "95 % interval", "over", "the paper's", "holds"):
        table.add_column(heading)
    colours = {"yes": "green", "no": "red"}
    for line in lines:
        verdict = f"[{colours[line.verdict]}]{line.verdict}[/]" if line.verdict in colours else line.verdict
        what = f"{line.what}: {typed(line.command)}" if line.command else line.what
        table.add_row(
            line.claim, escape(what), told_effect(line), told_interval(line), escape(line.how), line.paper, verdict
        )
    return table


def told_effect(line: ClaimLine) -> str:
    """`+1.52 points`."""
    return "" if line.effect is None else f"{line.effect:+.{_places(line)}f} {line.unit}"


def told_interval(line: ClaimLine) -> str:
    """`0.84 to 2.20`."""
    if line.low is None or line.high is None:
        return ""
    return f"{line.low:.{_places(line)}f} to {line.high:.{_places(line)}f}"


def _places(line: ClaimLine) -> int:
    return 3 if line.unit == "rho" else 2
