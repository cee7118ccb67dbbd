"""Runs with answers made by hand, in memory or on the disk: what exhibits are made from, without an analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cascaded import RunConfig
from cascaded.cli.main import run
from cascaded.exhibits.material import Material
from cascaded.files import write_json
from cascaded.results.answers import fingerprints, read_answers
from cascaded.results.asked import Asked
from cascaded.results.groups import Answered, Condition, conditions, grouped
from cascaded.results.subjects import Subject, comparison_file, find_subjects, place_in
from tests.made_traces import made_run

Model = tuple[str, float | None]
TD0, TD1, CE = ("cascaded-td", 0.0), ("cascaded-td", 1.0), ("cascaded-ce", None)


def made_asked(analysis: str, images: int = 40, **told: Any) -> Asked:
    """What was asked of some images of digits; anything about it can be another."""
    told = {"data": "digits", "split": "test", "kernel": "osd", "steps": 6, "noise": "", **told}
    fine = f"{told['kernel']}, {told['steps']} steps"
    time = f"transient {told['noise']}" if told["noise"] else fine if ":" in told["kernel"] else "6 cycles"
    what = f"{told['data']} {told['split']}, {time}, {images} images"
    told = {"what": what, "images": "all of them", "shown": "these", "schedule": "cascaded", **told}
    return Asked(analysis, **told)


def made_material(
    answers: Mapping[Model, Mapping[int, Sequence[tuple[Asked, dict[str, Any]]]]],
    tables: Sequence[dict[str, Any]] = (),
    **comparison: Any,
) -> Material:
    """Material of models, seeds and answers, without a file."""
    told = []
    for (model, lam), by_seed in answers.items():
        for seed, some in by_seed.items():
            folder = Path("made") / f"{model}-{lam}" / str(seed)
            subject = Subject((folder,), RunConfig(method=model, lam=lam, seed=seed), folder / "results.json")
            told.append(Answered(subject, {(asked.analysis, f"t{n}"): (asked, r) for n, (asked, r) in enumerate(some)}))
    groups = grouped(told)
    shown = conditions(groups)
    known = {each.label for each in shown}
    bare = [Condition(group.label, group, {}) for group in groups if group.label not in known]
    compared = {"tables": list(tables), **comparison} if tables or comparison else {}
    why = "" if compared else "these runs have not been compared"
    return Material((Path("made"),), tuple(each.subject for each in told), (*shown, *bare), compared, why)


def write_answers(folder: Path, some: Sequence[tuple[Asked, dict[str, Any]]], more: Any = None, **config: Any) -> Path:
    """A run with results that nobody computed."""
    made_run(folder, **config)
    analyses: dict[str, dict[str, Any]] = {}
    for number, (asked, result) in enumerate(some):
        made = {"made_from": {f"t{number}": "digest"}, "made_with": {"seed": 0}}
        told = {**made, "asked": asked.to_json(), "seconds": 1.0, "result": result}
        analyses.setdefault(asked.analysis, {})[f"t{number}"] = told
    write_json(
        folder / "results.json", {"format": 1, "analyses": analyses, "missing": {}, "refused": {}, **(more or {})}
    )
    return folder


def write_comparison(place: Path, tables: Sequence[dict[str, Any]] = (), **more: Any) -> Path:
    """The comparison of all runs in a folder, as it would stand beside them."""
    subjects = find_subjects([place])
    answered = [read_answers(subject) for subject in subjects]
    folder = comparison_file(subjects).parent
    made_from = {place_in(folder, subject): fingerprints(subject) for subject in subjects}
    groups = {group.label: sorted(group.by_seed) for group in grouped(answered)}
    told = {"format": 1, "made_from": made_from, "groups": groups, "tables": list(tables), "lambda_effect": {}}
    write_json(file := comparison_file(subjects), {**told, **more})
    return file


def accuracies(curve: Sequence[float], **more: Any) -> dict[str, Any]:
    """What `speed_accuracy` would have answered, in short."""
    steps = list(range(1, len(curve) + 1))
    curves = {way: {"cost": steps, "accuracy": list(curve)} for way in ("threshold", "deadline")}
    return {"headline": {"accuracy": curve[-1]}, "accuracy": list(curve), "curves": curves, "intervals": {}, **more}


def analyse(place: Path, *only: str) -> None:
    """`cascaded analyse`, as it is typed; without pictures."""
    run(["analyse", str(place), "--no-galleries", "--epochs", "1", *(["--only", *only] if only else [])])
