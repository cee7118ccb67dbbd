"""What came out, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from cascaded.results.groups import Answered


def results_table(answered: Answered, names: Sequence[str]) -> Table:
    """A row an answer; then what was refused, passed over or not recorded, and the way to it."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    from cascaded.results.answers import read_results
    from cascaded.shell import typed

    subject, written = answered.subject, read_results(answered.subject.file)
    title = f"{subject.name}: {subject.label}, seed {subject.config.seed}"
    table = Table(box=box.SIMPLE_HEAD, title=escape(title), title_justify="left")
    for heading in ("analysis", "of", "result"):
        table.add_column(heading, overflow="fold")
    for (analysis, of), (_, result) in answered.answers.items():
        told = ", ".join(f"{name} {shown(value)}" for name, value in result["headline"].items())
        table.add_row(analysis, escape(of), escape(told or "; ".join(result.get("not measured", {}).values())))
    if timings := written.get("clock", {}).get("timings"):
        best = min(timings, key=lambda each: (each["threshold"] is None, each["time_of_full"]))
        told = f"{best['rule']} above {best['threshold']}, batch {best['batch_size']}, "
        told += f"accuracy {shown(best['accuracy'])}, "
        spans = f"p50 {1000 * best['p50']:.2f} ms, p95 {1000 * best['p95']:.2f} ms"
        table.add_row("latency", "cheapest early exit", f"{told}{spans}, {best['time_of_full']:.2f} x a full pass")
    for name, each in written.get("refused", {}).items():
        for of, why in each.items() if name in names else ():
            table.add_row(f"[red]{name}", escape(of), f"[red]refused: {escape(why)}")
    for of, why in subject.passed_over.items():
        table.add_row("[dim]passed over", f"[dim]{escape(of)}", f"[dim]{escape(why)}")
    for name, way in written.get("missing", {}).items():
        if name in names:
            table.add_row(f"[dim]{name}", "", f"[dim]not recorded: {escape(typed(way))}")
    return table


def comparison_table(told: dict[str, Any]) -> Table:
    """A row a figure, a column a condition; of two conditions also their difference, with its interval."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    title = "means over seeds, +- SEM without the variance between seeds; of one seed, SEM over items"
    table, labels = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left"), told["conditions"]
    difference = ["difference (95 %)"] if len(labels) == 2 else []
    for heading in ("analysis", "of", "figure", *labels, *difference):
        table.add_column(escape(heading), overflow="fold")
    for each in told["tables"]:
        cells = [each["estimates"].get(label) for label in labels]
        sems = ["" if not cell or cell["sem"] is None else f" +- {shown(cell['sem'])}" for cell in cells]
        values = ["" if not cell else shown(cell["value"]) + sem for cell, sem in zip(cells, sems, strict=True)]
        row = [each["analysis"], escape(each["of"]), each["metric"], *values]
        if difference:
            row += [f"{shown(d['difference'])} ({shown(d['low'])} to {shown(d['high'])})" for d in each["differences"]]
        table.add_row(*row)
    return table


def shown(value: float | None) -> str:
    """A figure with four digits; a dash where there is none."""
    return "-" if value is None else f"{value:.4g}"
