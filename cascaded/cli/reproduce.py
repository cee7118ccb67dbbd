"""`cascaded reproduce`: the paper's tables and figures, from nothing."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from tyro.conf import Positional

from cascaded.errors import InputError
from cascaded.paper.scales import SCALES, Scale, ScaleName
from cascaded.progress import cores, counted, minutes, print_line, wide_console
from cascaded.shell import help_default, program, typed

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from cascaded.paper.outcome import Outcome
    from cascaded.paper.reproduce import Work
    from cascaded.training.workers import Workers


def reproduce(
    items: Annotated[
        Positional[tuple[str, ...]], tyro.conf.arg(metavar="ITEM...", help_behavior_hint="(required without --list)")
    ] = (),
    *,
    scale: ScaleName = "laptop",
    out: Annotated[Path | None, help_default("out/reproduce-SCALE")] = None,
    list_items: Annotated[bool, tyro.conf.arg(name="list")] = False,
    commands: bool = False,
    as_is: bool = False,
    data_limit: Annotated[int | None, help_default("all images")] = None,
    epochs: Annotated[int | None, help_default("the scale's")] = None,
    width: Annotated[int | None, help_default("the scale's")] = None,
    seeds: Annotated[tuple[int, ...], help_default("the scale's")] = (),
    jobs: Annotated[int | None, help_default("one per core")] = None,
) -> None:
    """Reproduce tables and figures of the paper: train, record, analyse, draw.

    ITEM is table-lambda, speed-accuracy, deadline, serial-td0, images, prototypicality, taxonomy, noise-persistent,
    noise-transient, ood, stopping, terriers or run-time; `claims` holds everything that was reproduced against the
    paper's seven claims, `all` is every item. --list tells what each needs and how long it takes here.

    Networks are shared between items, in OUT/runs; tables and figures are in OUT/results. Stop it at any moment: the
    same command goes on. A smoke form of any item is made with --data-limit 2000 --epochs 1.

    Example: cascaded reproduce table-lambda --scale laptop

    Args:
        items: What to reproduce.
        scale: `laptop`, narrow networks and a short recipe, for two cores; `paper`, the paper's own, for GPUs.
        out: Where everything is kept.
        list_items: Tell what there is to reproduce, what is there already, and how long the training left would take.
        commands: Only print the commands that do the same, step by step.
        as_is: Train nothing: tables and figures of the networks that are trained already.
        data_limit: Learn from so many images only, and show no more: a smoke form, in which fine time has 30 steps and
            stopper and MetaCog learn for 5 epochs.
        epochs: Passes over the training images.
        width: Channels of the first stage.
        seeds: Seeds of the networks.
        jobs: Processes at a time.
    """
    if jobs is not None and jobs < 1:
        raise InputError(f"--jobs is {jobs}: give at least 1")
    if not items and not list_items:
        raise InputError(f"no item is given: say which, as in {program()} reproduce table-lambda; --list shows all")
    chosen = SCALES[scale].smaller(data_limit=data_limit, epochs=epochs, width=width, seeds=seeds)
    out = out or default_out(scale)
    if out.exists() and not out.is_dir():
        raise InputError(f"--out is {out}, which is a file: give a folder")
    console = wide_console()
    works, claims = _chosen(items, chosen, out, as_is)
    if list_items:
        from cascaded.paper.listing import listing

        console.print(listing(chosen, out))
    elif commands:
        _print_commands(works)
    else:
        _reproduce(works, claims, chosen, out, jobs, console)


def default_out(scale: str) -> Path:
    """Where a reproduction is kept if no other folder is given."""
    return Path("out") / f"reproduce-{scale}"


def _chosen(items: Sequence[str], scale: Scale, out: Path, as_is: bool) -> tuple[list[Work], bool]:
    """The items that are asked for, each once, and whether the claims are; of all, as things are, those that can be."""
    from cascaded.paper.experiments import CLAIMS, ITEMS, find_item
    from cascaded.paper.reproduce import Work

    names = list(dict.fromkeys(name for each in items for name in ((*ITEMS, CLAIMS) if each == "all" else (each,))))
    works = [Work(find_item(name), scale, out, as_is) for name in names if name != CLAIMS]
    return [work for work in works if work.networks or "all" not in items], CLAIMS in names


def _print_commands(works: Sequence[Work]) -> None:
    from cascaded.paper.commands import commands_for

    lines = [line for work in works for line in commands_for(work)]
    print(typed("\n".join(dict.fromkeys(lines))))


def _reproduce(
    works: Sequence[Work], claims: bool, scale: Scale, out: Path, jobs: int | None, console: Console
) -> None:
    from cascaded.training.workers import workers

    with workers(jobs, cores()) as pool:
        refused = {work.item.name: why for work in works if (why := _carried_out(work, pool, jobs, console))}
    if refused and len(refused) == len(works):
        raise next(iter(refused.values()))
    if claims:
        _show_claims(scale.name, out, console)
    else:
        where = "" if out == default_out(scale.name) else f" --out {shlex.quote(out.as_posix())}"
        print_line(console, f"next: {program()} reproduce claims --scale {scale.name}{where}")
    if refused:
        told = "; ".join(f"{name}, {why}" for name, why in refused.items())
        raise InputError(f"{len(refused)} of {len(works)} items were left out: {told}")


def _show_claims(scale: str, out: Path, console: Console) -> None:
    """Print and write the claims of what was reproduced in a folder.

    If nothing was, and the folder is the default one, the results published in the repository are printed.
    """
    from cascaded.paper.ledger import (
        FILE,
        is_reproduced,
        ledger,
        ledger_table,
        published,
        read_ledger,
        write_ledger,
    )
    from cascaded.paper.reproduce import RESULTS

    folder = published(scale) if out == default_out(scale) and not is_reproduced(out) else None
    if folder is not None:
        console.print(ledger_table(read_ledger(folder / FILE)[1]))
        print_line(console, f"these are the published results in {folder}: nothing is reproduced in {out} yet")
        print_line(console, f"next: {program()} reproduce table-lambda --scale {scale}")
        return
    lines = ledger(out, scale)
    console.print(ledger_table(lines))
    print_line(console, f"wrote {write_ledger(lines, scale, out / RESULTS)}")


def _carried_out(work: Work, pool: Workers, jobs: int | None, console: Console) -> InputError | None:
    """Carry out an item and show its table; or say why not: one whose data is not at hand does not stop the others."""
    from cascaded.paper.reproduce import RESULTS, carry_out

    began, name = time.monotonic(), work.item.name
    try:
        outcome = carry_out(work, pool, jobs, console)
    except InputError as error:
        print_line(console, f"{name} is left out: {error}")
        return error
    console.print(outcome_table(outcome))
    wrote = f"wrote {work.out / RESULTS / name}.json, .csv and {counted(len(outcome.figures), 'figure')}"
    print_line(console, f"{name} in {minutes(time.monotonic() - began)}: {wrote}")
    return None


def outcome_table(outcome: Outcome) -> Table:
    """An item's table for a terminal."""
    from rich import box
    from rich.table import Table

    title = f"{outcome.title} ({outcome.place} of the paper)"
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    for heading in ("data", "model", "what", "here", "95 % interval", "the paper's", "interval over"):
        table.add_column(heading, justify="right" if heading in ("here", "the paper's") else "left")
    for row in outcome.rows:
        paper = "" if row.paper is None else f"{row.paper:.2f}"
        between = "" if row.low is None or row.high is None else f"{row.low:.2f} to {row.high:.2f}"
        of = " ".join(word for word in (row.data, row.noise) if word)
        table.add_row(of, row.model, row.what, f"{row.value:.2f} {row.unit}".strip(), between, paper, row.how)
    return table
