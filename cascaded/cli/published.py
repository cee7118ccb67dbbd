"""`cascaded reproduce --from` and `--publish`: results that were measured elsewhere, without torch."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from cascaded.cli.tables import conclude, print_claims
from cascaded.errors import InputError
from cascaded.paper.publish import publish
from cascaded.paper.published import CLAIMS_FILE, claims_of, has_results, write_claims
from cascaded.paper.reproduce import RESULTS, Reproduction
from cascaded.paper.status import RUNS
from cascaded.progress import counted, print_line
from cascaded.shell import program


def show_rows(
    works: Sequence[Reproduction], source: Path, scale: str, out: Path, console: Console, *, claims: bool
) -> None:
    """Print, draw and write tables and figures from the rows in a folder, and list what it has no rows of.

    Args:
        works: The experiments, which read the folder.
        source: The folder, laid out like OUT/runs.
        scale: Name of the scale.
        out: Tables and figures are written to OUT/results.
        console: Where to print.
        claims: Whether to evaluate the claims, too.
    """
    if not has_results(source):
        raise InputError(f"{source} contains no results: give a folder of runs, such as results/laptop-0.2")
    missing = []
    for work in works:
        measured, total = work.counts()
        if measured:
            conclude(work, console, quiet=False)
        if measured < total:
            missing.append(f"{work.experiment.name}, {total - measured} of {counted(total, 'network')}")
    if claims:
        table = claims_of(source, scale)
        print_claims(table, "", console)
        print_line(console, f"wrote {write_claims(table, out / RESULTS / CLAIMS_FILE)}")
    for each in missing:
        name = each.partition(",")[0]
        print_line(console, f"not measured: {each}; to measure: {program()} reproduce {name} --scale {scale}")


def publish_networks(out: Path, folder: Path, scale: str, console: Console, *, weights: bool) -> None:
    """Copy the finished networks of a queue to a folder, and print what was copied.

    Args:
        out: The folder of the reproduction.
        folder: Where to copy them.
        scale: Name of the scale.
        console: Where to print.
        weights: Also copy their weights, rounded.
    """
    copied = publish(out / RUNS, folder, weights)
    megabytes = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6
    print_line(console, f"copied {counted(len(copied), 'network')} to {folder}, which has {megabytes:.1f} MB")
    without = [name for name, has in copied.items() if weights and not has]
    if without:
        print_line(console, f"note: there are no weights of {', '.join(without)}")
    where = shlex.quote(folder.as_posix())
    print_line(console, f"next: {program()} reproduce all --from {where} --scale {scale}")
