"""`cascaded analyse`: everything the recorded traces allow, and how models compare."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from tyro.conf import Positional

from cascaded.errors import InputError
from cascaded.progress import counted, print_line, wide_console
from cascaded.results.tables import comparison_table, results_table, shown
from cascaded.shell import help_default, program

if TYPE_CHECKING:
    from rich.console import Console

    from cascaded.progress import Display
    from cascaded.results.groups import Answered
    from cascaded.results.questions import Settings
    from cascaded.results.subjects import Subject


def analyze(
    runs: Annotated[Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN...", help_behavior_hint="(required)")],
    *,
    only: Annotated[tuple[str, ...], help_default("all that the traces allow")] = (),
    failing: float = 0.1,
    epochs: int = 300,
    seed: int = 0,
    again: bool = False,
    galleries: bool = True,
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE"), help_default("comparison.json in their folder")] = None,
) -> None:
    """Analyse what was recorded: speed and accuracy, latency, prototypicality, taxonomy, noise, OOD, stopping.

    Writes RUN/results.json, and RUN/galleries/. Of several runs also how they compare: means over seeds with SEM
    corrected after Masson and Loftus (2003), differences on the same seeds, or over items where there is one seed.
    What was answered from the same traces before is not computed again.

    Each analysis alone: --only speed_accuracy selection_latency prototypicality taxonomic_compliance persistent_noise
    transient_noise learned_stopper out_of_distribution lambda_effect. Each is a function of that name in
    cascaded.analysis.

    Example: cascaded analyze runs/td0 runs/ce --only speed_accuracy selection_latency

    Args:
        runs: Folders of runs, or folders that hold some.
        only: Some analyses, by name.
        failing: Share of images that may never settle; chooses the threshold of selection latency.
        epochs: For which the stopper and MetaCog are trained.
        seed: Where their training, and all draws, start from.
        again: Compute everything anew.
        galleries: Draw the fastest and slowest images, where the data is at hand.
        out: Where the comparison of several runs goes.
    """
    if not runs:
        raise InputError(f"no run is given: say which, as in {program()} analyse runs/td0/0")
    from cascaded.progress import progress
    from cascaded.results.questions import Settings
    from cascaded.results.registry import ACROSS, chosen
    from cascaded.results.subjects import comparison_file, find_subjects

    names, settings = chosen(only), Settings(failing, epochs, seed)
    subjects = find_subjects(runs)
    _check(runs, subjects, names, out)
    across, names = set(names) & set(ACROSS), [name for name in names if name not in ACROSS]
    console = wide_console()
    all_answered = []
    with progress("analysing", len(subjects) * len(names)) as bar:
        for subject in subjects:
            bar.log(f"{subject.name}: {counted(len(subject.traces), 'trace')}")
            if not subject.has_test and (splits := sorted({str(found.config.split) for found in subject.traces})):
                bar.log(f"{subject.config.data} has no test split: results are of the {' and '.join(splits)} split")
            all_answered.append(_answered(subject, names, settings, again, bar))
    _tell(all_answered, names, galleries, console)
    if len(subjects) > 1:
        everything = [_with_earlier(answered, names) for answered in all_answered]
        _compare(everything, settings, out or comparison_file(subjects), console, bool(across))
    _conclude(subjects, names)


def compare_runs(places: Sequence[Path], settings: Settings, out: Path) -> None:
    """Hold runs against each other by what they have answered; nothing is asked anew.

    Args:
        places: Folders of runs, or folders that hold some.
        settings: Where draws start from, and what else answers were made with.
        out: Where the comparison goes.
    """
    from cascaded.results.groups import Answered
    from cascaded.results.registry import ANALYSES
    from cascaded.results.subjects import find_subjects

    console, names = wide_console(), list(ANALYSES)
    subjects = find_subjects(places)
    everything = [_with_earlier(Answered(subject, {}), ()) for subject in subjects]
    _tell(everything, names, True, console)
    if len(subjects) > 1:
        _compare(everything, settings, out, console)
    _conclude(subjects, names)


def _tell(all_answered: Sequence[Answered], names: list[str], galleries: bool, console: Console) -> None:
    """Draw and print what each run has answered."""
    for answered in all_answered:
        if galleries:
            _draw(answered, console)
        console.print(results_table(answered, names))
        print_line(console, f"wrote {answered.subject.file}")


def _check(runs: Sequence[Path], subjects: list[Subject], names: list[str], out: Path | None) -> None:
    """What was asked for can be done with what there is."""
    from cascaded.results.registry import ACROSS

    if len(subjects) == 1 and all(name in ACROSS for name in names):
        raise InputError(f"{names[0]} compares runs, {runs[0]} is one: give several, such as runs of all lambdas")
    if len(subjects) == 1 and out is not None:
        raise InputError(f"--out is {out}, for comparing several runs, {runs[0]} is one: leave it out")
    if not any(subject.traces for subject in subjects):
        passed = [why for subject in subjects for why in subject.passed_over.values()]
        way = f"{program()} record {shlex.quote(str(runs[0]))} makes one"
        raise InputError(passed[0] if passed else f"no trace is recorded in {', '.join(map(str, runs))}: {way}")


def _answered(subject: Subject, names: list[str], settings: Settings, again: bool, bar: Display) -> Answered:
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
                trace = question.judged
                file = draw_gallery(answered.subject, of, str(trace.config.split), trace.provenance.images, result)
                print_line(console, f"wrote {file}")
            except InputError as error:  # results do not need the images, pictures do
                print_line(console, f"no gallery of {of}: {error}")


def _with_earlier(answered: Answered, names: Sequence[str]) -> Answered:
    """A subject with what it was asked before as well: comparing some analyses does not take the others away."""
    from cascaded.results.answers import answers_before
    from cascaded.results.groups import Answered
    from cascaded.results.registry import ANALYSES

    others = [name for name in ANALYSES if name not in names]
    earlier = {(q.analysis, q.of): (q, result) for q, result in answers_before(answered.subject, others)}
    return Answered(answered.subject, {**earlier, **answered.answers})


def _compare(
    all_answered: list[Answered], settings: Settings, file: Path, console: Console, lambdas: bool = True
) -> None:
    from cascaded.files import with_digest, write_json
    from cascaded.progress import progress
    from cascaded.results.groups import grouped
    from cascaded.results.summary import rows, summarise

    groups = grouped(all_answered)
    with progress("comparing", len(rows(groups))) as bar:
        told = summarise(groups, settings, told=bar.advance)
    write_json(file, with_digest(told))
    for name, effect in told["lambda_effect"].items() if lambdas else ():
        accuracies = zip(effect.get("lambdas", []), effect.get("estimates", []), strict=True)
        cells = ", ".join(f"{lam}: {shown(each['value'])}" for lam, each in accuracies) or effect["not measured"]
        print_line(console, f"final accuracy by lambda, {name}: {cells}")
    console.print(comparison_table(told))
    print_line(console, f"wrote {file}")


def _conclude(subjects: list[Subject], names: list[str]) -> None:
    """What could not be answered is said last, and loudest."""
    from cascaded.results.answers import read_results

    refused = [
        (subject, name, why)
        for subject in subjects
        for name, each in read_results(subject.file).get("refused", {}).items()
        for why in each.values()
        if name in names
    ]
    if refused:
        subject, name, why = refused[0]
        more = f" ({len(refused)} in all)" if len(refused) > 1 else ""
        raise InputError(f"{subject.name}: {name} could not be answered{more}, {why}")
