"""`cascaded reproduce`: the paper's tables and figures."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from tyro.conf import DisallowNone, Positional

from cascaded.cli.usage import check_folder
from cascaded.errors import InputError, at_least
from cascaded.progress import counted, minutes, print_line, progress, table, wide_console
from cascaded.shell import help_default, program, typed

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table

    from cascaded.paper.queue import Task
    from cascaded.paper.reproduce import Reproduction
    from cascaded.paper.work import Keep
    from cascaded.training.engines import Status

COLORS = {"supported": "green", "contradicted": "red"}


def reproduce(
    names: Annotated[
        Positional[tuple[str, ...]], tyro.conf.arg(metavar="NAME...", help_behavior_hint="(required without --list)")
    ] = (),
    *,
    scale: Literal["laptop", "paper", "smoke"] = "laptop",
    out: Annotated[Path | None, DisallowNone, help_default("out/reproduce-SCALE; with --from, out/FOLDER")] = None,
    source: Annotated[
        Path | None, DisallowNone, tyro.conf.arg(name="from", metavar="FOLDER", help_behavior_hint="")
    ] = None,
    publish: Annotated[Path | None, DisallowNone, tyro.conf.arg(metavar="FOLDER", help_behavior_hint="")] = None,
    weights: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    list_names: Annotated[bool, tyro.conf.arg(name="list")] = False,
    commands: bool = False,
    status: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    pause: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    keep: Literal["weights", "traces", "none"] = "weights",
    stages: Annotated[tuple[int, ...], help_default("all")] = (),
    no_train: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    num_workers: Annotated[int | None, DisallowNone, help_default("one per core")] = None,
) -> None:
    """Reproduce tables and figures of the paper: train, record, analyze, draw.

    NAME is table-lambda, speed-accuracy, deadline, serial-td0, images, prototypicality, taxonomy, noise-persistent,
    noise-transient, noise-scratch, ood, stopping, terriers, alpha, depth, strong, human, human-augmented or run-time.
    `claims` compares everything that was reproduced with the claims of the paper; in a clone of the repository, and
    before anything is reproduced, it prints the results that come with it. `all` is every experiment and the claims.

    Networks wait in a queue, in the order of the scale's stages, and have one process each: it trains the network, and
    records and analyzes it for every experiment that uses it. Networks are in OUT/runs, tables and figures in
    OUT/results. To stop, press Ctrl-C or use --pause from elsewhere; run the same command again to resume.

    Example: cascaded reproduce all --scale laptop
    Example: cascaded reproduce --status --scale laptop
    Example: cascaded reproduce all --from results/laptop-0.2
    Example: cascaded reproduce --publish results/laptop-0.2 --weights --scale laptop

    Args:
        names: Experiments.
        scale: laptop: narrow networks and a short recipe, for two cores; paper: the paper's own, for GPUs; smoke:
            everything runs in minutes and hardly anything is learned.
        out: Folder of the runs and results.
        source: Print and draw the stored rows of networks in this folder, laid out like OUT/runs, and train nothing;
            what is not measured is listed with the command that measures it.
        publish: Copy configuration, metrics and results of every finished network in OUT to this folder; a queue whose
            OUT/runs is a copy of it counts them as done.
        weights: With --publish: also copy the weights, convolutions rounded to half precision, so that such a queue can
            measure more of these networks.
        list_names: List the experiments, what is done, and how long the remaining training takes on this machine.
        commands: Only print the commands that do the same, step by step.
        status: Print what of the queue is done, running, failed and next, and the hours that are left.
        pause: Stop the running queue: networks in training save their state.
        keep: What stays of a network once everything is measured, besides its results: weights; traces: everything;
            none: not even weights, unless other networks start from them.
        stages: Only these stages of the queue, by their numbers.
        no_train: Use networks that are trained already only.
        num_workers: Processes at a time.
    """
    at_least(1, num_workers=num_workers)
    folder = out or Path("out") / (f"reproduce-{scale}" if source is None else source.resolve().name)
    check_folder(folder)
    if source is not None:
        other = {"--publish": publish, "--list": list_names, "--commands": commands, "--status": status}
        other |= {"--pause": pause, "--stages": stages, "--no-train": no_train}
        if given := next((name for name, value in other.items() if value), None):
            raise InputError(f"--from prints stored results, and {given} is about trainings: leave one of them out")
    where = f"--scale {scale}" + ("" if out is None else f" --out {shlex.quote(out.as_posix())}")
    console = wide_console()
    if status or pause:
        from cascaded.cli.queue import pause_queue, show_status

        (pause_queue if pause else show_status)(folder, where, console)
        return
    if publish is not None:
        from cascaded.cli.published import publish_networks

        publish_networks(folder, publish, scale, console, weights=weights)
        return
    if weights:
        raise InputError("--weights is for --publish FOLDER: add it, or see --keep for what stays of a network here")
    if not names and not list_names:
        raise InputError(f"no experiment is given: add one, as in {program()} reproduce table-lambda; --list shows all")
    from cascaded.paper.commands import commands as commands_of
    from cascaded.paper.experiments import ALL, CLAIMS

    chosen, claims = _chosen(names, scale, folder, no_train), bool({ALL, CLAIMS} & {*names})
    if list_names:
        console.print(_listing(scale, folder))
    elif commands:
        print("\n".join(dict.fromkeys(line for work in chosen for line in commands_of(work))))
    elif source is not None:
        from cascaded.cli.published import show_rows

        works = [replace(work, source=source) for work in chosen]
        show_rows(works, source, scale, folder, console, claims=claims)
    else:
        words = {"--keep": (keep,) * (keep != "weights"), "--stages": stages, "--no-train": ("",) * no_train}
        words["--num-workers"] = () if num_workers is None else (num_workers,)
        options = "".join(f" {name} {' '.join(map(str, each))}".rstrip() for name, each in words.items() if each)
        command = f"{program()} reproduce {' '.join(names)} {where}{options}"
        failed, paused = _run(chosen, keep, stages, num_workers, command, console)
        if claims:
            _show_claims(scale, folder, out is None, console, quiet=paused)
        elif not paused:
            print_line(console, f"next: {program()} reproduce claims {where}")
        if paused:
            print_line(console, f"paused; to resume: {command}")
        elif failed:
            raise InputError(f"{counted(len(failed), 'network')} failed: {'; '.join(failed)}; run it again to resume")


def _chosen(names: Sequence[str], scale: str, out: Path, no_train: bool) -> list[Reproduction]:
    """The experiments, each once; of `all`, those that have a network at this scale."""
    from cascaded.paper.experiments import ALL, CLAIMS, EXPERIMENTS, find_experiment
    from cascaded.paper.reproduce import Reproduction
    from cascaded.paper.scales import SCALES

    wanted = dict.fromkeys(each for name in names for each in (EXPERIMENTS if name == ALL else [name]))
    works = [Reproduction(find_experiment(name), SCALES[scale], out, no_train) for name in wanted if name != CLAIMS]
    for work in works:
        if not work.networks and ALL not in names:
            name = work.experiment.name
            if no_train and replace(work, no_train=False).networks:
                raise InputError(f"no network of {name} is trained in {work.runs}: leave out --no-train to train them")
            raise InputError(f"no network of {name} is part of scale {scale}: choose another --scale")
    return [work for work in works if work.networks]


def _run(
    works: Sequence[Reproduction],
    keep: Keep,
    stages: Sequence[int],
    num_workers: int | None,
    command: str,
    console: Console,
) -> tuple[list[str], bool]:
    """Run the queue, then write and show what there is; returns which networks failed, and whether it was paused."""
    if not works:
        return [], False
    from cascaded.paper.queue import only_queue, plan, run_queue

    start, out = time.monotonic(), works[0].out
    with only_queue(out):
        tasks = plan(works, keep, stages)
        if not tasks:
            numbers = f"1 to {len(works[0].scale.stages)}"
            raise InputError(f"no network is in --stages {' '.join(map(str, stages))}: the scale has stages {numbers}")
        with progress("networks", len(tasks)) as bar:

            def on_end(task: Task, status: Status) -> None:
                bar.log(f"{task.name}: {status.state}" + (f", {status.message}" if status.message else ""))
                bar.advance()

            bar.advance(sum(task.state() == "done" for task in tasks))
            ended = run_queue(tasks, out, command, num_workers, on_end)
        for work in works:
            conclude(work, console, quiet=ended.paused)
    done = sum(status.state == "done" for status in ended.statuses.values())
    print_line(console, f"{done} of {counted(len(tasks), 'network')} done, after {minutes(time.monotonic() - start)}")
    return [f"{name}, {reason}" for name, reason in ended.failed.items()], ended.paused


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


def _show_claims(scale: str, out: Path, is_default: bool, console: Console, quiet: bool) -> None:
    """Write and print the claims of a reproduction; without one, print those that come with the repository."""
    from cascaded.paper.published import CLAIMS_FILE, claims_of, find_published, has_results, read_claims, write_claims
    from cascaded.paper.reproduce import RESULTS
    from cascaded.paper.status import RUNS

    if quiet and not has_results(out / RUNS):
        return
    folder = find_published(scale) if is_default and not has_results(out / RUNS) else None
    if folder is not None:
        print_claims(read_claims(folder / CLAIMS_FILE), "", console)
        print_line(console, f"these results come with the repository, in {folder}; nothing is reproduced in {out} yet")
        print_line(console, f"next: {program()} reproduce table-lambda --scale {scale}")
        return
    claims = claims_of(out / RUNS, scale)
    if not quiet:
        print_claims(claims, "" if is_default else f" --out {shlex.quote(out.as_posix())}", console)
    print_line(console, f"wrote {write_claims(claims, out / RESULTS / CLAIMS_FILE)}")


def _listing(scale: str, out: Path) -> Table:
    """All experiments; a few steps of each kind of network are timed."""
    from cascaded.paper.estimate import seconds_left
    from cascaded.paper.experiments import EXPERIMENTS
    from cascaded.paper.published import find_published
    from cascaded.paper.reproduce import RESULTS, Reproduction, is_trained
    from cascaded.paper.scales import SCALES

    published, lines = find_published(scale), []
    with progress("timing a few training steps", len(EXPERIMENTS)) as bar:
        for name, experiment in EXPERIMENTS.items():
            work = Reproduction(experiment, SCALES[scale], out)
            folders = [folder for network in work.networks for folder in work.folders(network)]
            left = seconds_left(work)
            places = [folder for folder in (out / RESULTS, published) if folder and (folder / f"{name}.csv").exists()]
            lines.append(
                {
                    "name": name,
                    "shows": experiment.title,
                    "data": ", ".join(dict.fromkeys(_source(network.data) for network in work.networks)),
                    "trained": f"{sum(map(is_trained, folders))} of {len(folders)}",
                    "results": str(places[0]) if places else "none",
                    "training left": f"about {minutes(left)}" if left else "none",
                }
            )
            bar.advance(1, name)
    return table(lines, f"scale {scale}: {SCALES[scale].about}")


def _source(data: str) -> str:
    """A data set, and whether it would be downloaded from the hub because it is not below $CASCADED_DATA."""
    from cascaded.data.catalogue import SOURCES
    from cascaded.data.open import local_splits

    source = SOURCES[data]
    return data if source.hub is None or local_splits(source) else f"{data} (from the hub)"
