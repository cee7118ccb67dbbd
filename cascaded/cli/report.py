"""`cascaded report`: one page about some runs, and every figure as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from cascaded.cli.usage import Runs, check_folder, check_given
from cascaded.errors import InputError
from cascaded.progress import counted, progress
from cascaded.shell import help_default

GENERATOR = b'<meta name="generator" content="cascaded">'


def report(
    runs: Runs,
    *,
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="DIR")] = Path("report"),
    title: Annotated[str, help_default("made from the names of the data")] = "",
) -> None:
    """Write one page about runs from their results, which `cascaded analyze` computes.

    DIR/index.html contains everything and can be shared as one file; DIR/figures/ has every figure as SVG, PDF and
    PNG, and its numbers as CSV. For each analysis that is missing, the page has the command that makes it.

    Example: cascaded report runs/td0 runs/ce -o report

    Args:
        runs: Folders of runs, or folders above them.
        out: Where the page goes. An earlier report in this folder is replaced.
        title: The page's heading.
    """
    from cascaded.paper.claims import evaluate
    from cascaded.report.page import FIGURES
    from cascaded.report.sections import SECTIONS
    from cascaded.report.write import read_table, write_report

    check_given(runs, "run", "report runs/td0/0 -o report")
    check_folder(out)
    own = out / "index.html"
    if own.exists() and GENERATOR not in own.read_bytes():
        raise InputError(f"{own} was not made by cascaded report: choose another --out, or move it away")
    claims = evaluate(read_table(runs))
    with progress("drawing", len(SECTIONS) + 1) as bar:
        page = write_report(runs, out, title, claims, lambda title: bar.advance(1, title))
    figures = counted(len(list((out / FIGURES).glob("*.csv"))), "figure")
    print(f"wrote {page}, and {figures} in {out / FIGURES}")
    print(f"open it: {page.resolve().as_uri()}")
