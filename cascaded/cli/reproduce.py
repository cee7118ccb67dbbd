"""`cascaded reproduce`: the paper's tables and figures."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from tyro.conf import DisallowNone, Positional

from cascaded.cli.tables import conclude, print_claims
from cascaded.cli.usage import check_folder
from cascaded.errors import InputError, at_least
from cascaded.progress import counted, minutes, print_line, progress, table, wide_console
from cascaded.shell import help_default, program

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from cascaded.paper.queue import Ended, Task
    from cascaded.paper.reproduce import Reproduction
    from cascaded.paper.work import Keep
    from cascaded.training.engines import Status


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

    The name `all` stands for every experiment and the claims. The name `claims` prints the claims of the paper beside
    everything that was reproduced or, in a clone of the repository where nothing is reproduced yet, beside the results
    that come with it.

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
        ended = _run(chosen, keep, stages, num_workers, command, console)
        if claims:
            _show_claims(scale, folder, out is None, console, quiet=ended.paused)
        elif not ended.paused:
            print_line(console, f"next: {program()} reproduce claims {where}")
        if ended.paused:
            print_line(console, f"paused; to resume: {command}")
        elif ended.failed:
            failures = "; ".join(f"{names}, {reason}" for names, reason in ended.failures.items())
            raise InputError(f"{counted(len(ended.failed), 'network')} failed: {failures}; run it again to resume")


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
) -> Ended:
    """Run the queue, then write and show what there is; returns what became of it."""
    from cascaded.paper.queue import Ended, only_queue, plan, run_queue

    if not works:
        return Ended({}, paused=False)

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
    return ended


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
