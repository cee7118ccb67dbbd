"""Tables of `cascaded reproduce`: estimates beside the paper's numbers, and claims with their verdicts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cascaded.errors import InputError
from cascaded.progress import counted, print_line, table
from cascaded.shell import typed

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table

    from cascaded.paper.reproduce import Reproduction

COLORS = {"supported": "green", "contradicted": "red"}


def conclude(work: Reproduction, console: Console, *, quiet: bool) -> None:
    """Write the table and figures of an experiment from the rows that there are; print them unless it is quiet."""
    from cascaded.paper.reproduce import write_results

    experiment = work.experiment
    try:
        outcome = write_results(work)
    except InputError as error:  # nothing is analyzed yet
        print_line(console, f"note: {error}")
        return
    if not quiet:
        console.print(estimates_table(outcome.table, experiment.title))
        for note in outcome.notes:
            print_line(console, f"note: {note}")
    figures = counted(sum(file.suffix == ".svg" for file in outcome.files), "figure")
    print_line(console, f"{experiment.name}: wrote {outcome.files[0]} and {figures} beside it")


def estimates_table(rows: pd.DataFrame, title: str) -> Table:
    """Our estimates and the paper's numbers for a terminal."""
    from cascaded.results.metrics import METRICS
    from cascaded.results.names import display_name

    variants = ["noise", "measure", "rule", "detector", "reads", "split", "time"]
    variants += [name for name in ("kernel", "unit") if rows[name].nunique() > 1]
    lines = []
    for row in rows.to_dict("records"):
        metric = METRICS[row["metric"]]
        about = [str(row[name]) for name in variants if isinstance(row[name], str)]
        low, high = (metric.format(row[name]) for name in ("low", "high"))
        has_interval = math.isfinite(row["low"])
        lines.append(
            {
                "data": row["data"],
                "network": display_name(row["method"], row["lam"], row["schedule"], row["noise"]),
                "metric": ", ".join([metric.label, *about]),
                "here": metric.format(row["value"]),
                "95 % interval": f"{low} to {high}" if has_interval else "-",
                "paper": metric.format(row["paper"]),
                "interval over": f"{row['interval_over']} ({counted(row['n_seeds'], 'seed')})" if has_interval else "-",
            }
        )
    return table(lines, title, ("here", "paper"))


def claims_table(claims: pd.DataFrame) -> Table:
    """The claims for a terminal."""
    from rich.markup import escape

    from cascaded.paper.published import claim_cells

    lines = []
    for row in claims.to_dict("records"):
        cells = {name: escape(cell) for name, cell in claim_cells(row).items()}
        if row["command"]:
            cells["measured"] = "not reproduced yet"
        color = COLORS.get(row["verdict"])
        lines.append({**cells, "verdict": f"[{color}]{row['verdict']}[/]"} if color else cells)
    return table(lines, "the paper's claims")


def print_claims(claims: pd.DataFrame, options: str, console: Console) -> None:
    """Print the table, and the commands that measure what is missing, each on a line of its own to be copied."""
    console.print(claims_table(claims))
    missing = claims[claims["command"] != ""]
    for command, names in missing.groupby("command", sort=False)["claim"].agg(", ".join).items():
        print_line(console, f"to measure {names}: {typed(str(command))}{options}")
