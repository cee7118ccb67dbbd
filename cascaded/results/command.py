"""`cascaded analyse`: everything the recorded traces allow, and how models compare."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from tyro.conf import Positional

from cascaded.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from cascaded.results.groups import Answered
    from cascaded.results.questions import Settings
    from cascaded.results.subjects import Subject


def analyse(
    runs: Annotated[Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN...")],
    *,
    only: tuple[str, ...] = (),
    failing: float = 0.1,
    epochs: int = 300,
    seed: int = 0,
    again: bool = False,
    galleries: bool = True,
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
) -> None:
    """Analyse what was recorded: speed and accuracy, latency, prototypicality, taxonomy, noise, OOD, stopping.

    Writes RUN/results.json, and RUN/galleries/. Of several runs also how they compare: means over seeds with SEM
    corrected after Masson and Loftus (2003), differences on the same seeds, or over items where there is one seed.
    What was answered from the same traces before is not computed again.

    Each analysis alone: --only speed_accuracy selection_latency prototypicality taxonomic_compliance persistent_noise
    transient_noise learned_stopper out_of_distribution lambda_effect. Each is a function of that name in
    cascaded.analysis.

    Example: cascaded analyse runs/td0 runs/ce --only speed_accuracy selection_latency

    Args:
        runs: Folders of runs, or folders that hold some.
        only: Some analyses, by name; all that the traces allow by default.
        failing: Share of images that may never settle; chooses the threshold of selection latency.
        epochs: For which the stopper and MetaCog are trained.
        seed: Where their training, and all draws, start from.
        again: Compute everything anew.
        galleries: Draw the fastest and slowest images, where the data is at hand.
        out: Where the comparison of several runs goes; comparison.json in their common folder by default.
    """
    if not runs:
        raise InputError("no run is given: say which, as in cascaded analyse runs/td0/0")
    from cascaded.progress import progress
    from cascaded.results.questions import Settings
    from cascaded.results.registry import ACROSS, chosen
    from cascaded.results.subjects import find_subjects

    names, settings = chosen(only), Settings(failing, epochs, seed)
    subjects = find_subjects(runs)
    if len(subjects) == 1 and all(name in ACROSS for name in names):
        raise InputError(f"{names[0]} compares runs, {runs[0]} is one: give several, such as runs of all lambdas")
    names = [name for name in names if name not in ACROSS]
    if not any(subject.traces for subject in subjects):
        raise InputError(f"no trace is recorded in {', '.join(map(str, runs))}: cascaded record {runs[0]} makes one")
    console = _console()
    all_answered = []
    with progress("analysing", len(subjects) * len(names)) as bar:
        for subject in subjects:
            bar.say(f"{subject.name}: {len(subject.traces)} traces")
            all_answered.append(_answered(subject, names, settings, again, bar))
    for answered in all_answered:
        if galleries:
            _draw(answered, console)
        console.print(_table(answered))
        console.print(f"wrote {answered.subject.file}", soft_wrap=True)
    if len(subjects) > 1:
        _compare(all_answered, settings, out or _common(subjects) / "comparison.json", console)


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 150  # in a file or a pipe nothing needs to wrap
    return console


def _answered(subject: Subject, names: list[str], settings: Settings, again: bool, bar: Any) -> Answered:
    from cascaded.results.answers import answer_all
    from cascaded.results.groups import Answered

    answers = {}
    for name in names:
        bar.advance(0, f"{subject.name}: {name}")
        for question, result in answer_all(subject, [name], settings, again):
            answers[question.analysis, question.of] = question, result
        bar.advance(1)
    return Answered(subject, answers)


def _draw(answered: Answered, console: Console) -> None:
    from cascaded.results.galleries import draw_gallery

    for (analysis, of), (question, result) in answered.answers.items():
        if analysis == "selection_latency":
            try:
                origin = question.traces[0].header.origin
                file = draw_gallery(answered.subject, of, origin.split, origin.images, result)
                console.print(f"wrote {file}", soft_wrap=True)
            except InputError as error:  # results do not need the images, pictures do
                console.print(f"no gallery of {of}: {error}", soft_wrap=True)


def _table(answered: Answered) -> Table:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    from cascaded.results.answers import read_results

    subject = answered.subject
    title = f"{subject.name}: {subject.label}, seed {subject.spec.seed}"
    table = Table(box=box.SIMPLE_HEAD, title=escape(title), title_justify="left")
    for heading in ("analysis", "of", "result"):
        table.add_column(heading, overflow="fold")
    for (analysis, of), (_, result) in answered.answers.items():
        told = ", ".join(f"{name} {shown(value)}" for name, value in result["headline"].items())
        table.add_row(analysis, escape(of), told or "; ".join(result.get("not measured", {}).values()))
    for name, way in read_results(subject.file).get("missing", {}).items():
        table.add_row(f"[dim]{name}", "", f"[dim]not recorded: {escape(way)}")
    return table


def _compare(all_answered: list[Answered], settings: Settings, file: Path, console: Console) -> None:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    from cascaded.files import write_json
    from cascaded.progress import progress
    from cascaded.results.groups import grouped
    from cascaded.results.summary import asked, summarise

    groups = grouped(all_answered)
    with progress("comparing", len(asked(groups))) as bar:
        told = summarise(groups, settings, told=bar.advance)
    write_json(file, told)
    title = "means over seeds, +- SEM without the variance between seeds; of one seed, SEM over items"
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    for heading in ("analysis", "of", "figure", *(group.label for group in groups)):
        table.add_column(escape(heading), overflow="fold")
    for each in told["tables"]:
        cells = [each["estimates"].get(group.label) for group in groups]
        sems = ["" if not cell or cell["sem"] is None else f" +- {shown(cell['sem'])}" for cell in cells]
        values = ["" if not cell else shown(cell["value"]) + sem for cell, sem in zip(cells, sems, strict=True)]
        table.add_row(each["analysis"], escape(each["of"]), each["metric"], *values)
    for name, effect in told["lambda_effect"].items():
        accuracies = zip(effect.get("lambdas", []), effect.get("estimates", []), strict=True)
        cells = ", ".join(f"{lam}: {shown(each['value'])}" for lam, each in accuracies) or effect["not measured"]
        console.print(f"final accuracy by lambda, {escape(name)}: {cells}", soft_wrap=True)
    console.print(table)
    console.print(f"wrote {file}", soft_wrap=True)


def _common(subjects: list[Subject]) -> Path:
    return Path(os.path.commonpath([subject.file.parent.resolve() for subject in subjects]))


def shown(value: float | None) -> str:
    """A figure with four digits; a dash where there is none."""
    return "-" if value is None else f"{value:.4g}"
