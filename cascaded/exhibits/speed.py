"""Speed and accuracy: how right the answers are at every step, what stopping early costs, what lambda does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from cascaded.exhibits.gaps import gaps, refusals
from cascaded.exhibits.kinds import Dot, Dots, Figure, Level, Lines, Missing, Section, Series, Way
from cascaded.exhibits.material import Material, role
from cascaded.exhibits.names import spoken
from cascaded.exhibits.over_seeds import Points, estimates, interval_of, lines_of, whiskers
from cascaded.results.asked import Asked
from cascaded.results.groups import kind_of

MOST = 8
"""Models whose ways to stop are drawn, a figure each."""
BAND = "Bands are one standard error over seeds; where models share seeds, without the variance between them."
PAPER_EPOCHS = 300
"""For which the paper trains its stopper and MetaCog."""
PAID = {
    "steps": " Steps are those of hardware that computes all blocks at once.",
    "operations": " In operations a cascade pays for every block at every step, a serial network for one.",
}
UNITS = {"steps": "mean cost of an answer, steps", "operations": "mean cost of an answer, operations"}


def key(*parts: str) -> str:
    """A name for a figure's files."""
    return re.sub(r"[^a-z0-9]+", "-", " ".join(parts).lower()).strip("-")[:80].strip("-")


def banded(body: Lines) -> str:
    """What there is to say of bands, where there are any."""
    return f" {BAND}" if any(series.sem for series in body.series) else ""


def learned_for(material: Material, analysis: str, what: str) -> tuple[str, ...]:
    """What there is to say where something was trained for another time than the paper trains it."""
    epochs = epochs_of(result for asked in material.rows(analysis) for result in material.told(asked))
    return (f"{what} trained for {epochs} epochs here, for {PAPER_EPOCHS} in the paper.",) if epochs else ()


def epochs_of(results: Iterable[Mapping[str, Any]]) -> str:
    """For how many epochs something was trained, where not for as many as in the paper: `30`, `30 or 100`."""
    epochs = {result.get("recipe", {}).get("epochs", PAPER_EPOCHS) for result in results} - {PAPER_EPOCHS}
    return " or ".join(str(each) for each in sorted(epochs))


def accuracy_section(material: Material) -> Section:
    """How right the answer is at every step."""
    figures = []
    for asked in material.rows("speed_accuracy"):
        body = Lines(
            "step", "accuracy", lines_of(material, asked, _at_every_step), levels=_chance(material, asked), whole=True
        )
        told = f"Share of right answers at every step: {asked.what}.{banded(body)}"
        figures.append(
            Figure(key("accuracy", asked.what), f"Accuracy at every step, {asked.data}, {asked.time}", told, body)
        )
    lead = (
        "Every block of a cascaded network passes its result on with a delay, and a shortcut without one, so there is "
        "an answer from the first step on. Temporal differences teach every step to say now what will be said later; "
        "a network that is taught at its last step alone has no reason to be right before."
    )
    return Section("accuracy", "An answer at every step", lead, figures, gaps(material, "speed_accuracy"))


def speed_section(material: Material) -> Section:
    """What stopping early costs and saves, by confidence, by deadline and by a learned stopper."""
    figures: list[Figure] = []
    for asked in material.rows("speed_accuracy"):
        figures += _by_confidence(material, asked)
    for asked in material.rows("speed_accuracy"):
        figures += _ways_to_stop(material, asked)
    lead = (
        "Stop as soon as the network is sure enough, and easy images cost less than hard ones. Each point of a curve "
        "is a threshold on the confidence: up is more often right, left is sooner. A deadline stops every image at "
        "the same step; the learned stopper is a small network that has seen the outputs so far."
    )
    names = ("speed_accuracy", "learned_stopper")
    notes = (
        *left_out(material, "Ways to stop are drawn"),
        *learned_for(material, "learned_stopper", "The learned stopper was"),
        *refusals(material, *names),
    )
    return Section("speed", "Speed against accuracy", lead, figures, gaps(material, *names), notes)


def left_out(material: Material, what: str) -> tuple[str, ...]:
    """What there is to say where a figure a model would be too many."""
    count = len(material.conditions)
    return (f"{what} of the first {MOST} of {count} models.",) if count > MOST else ()


def _by_confidence(material: Material, asked: Asked) -> list[Figure]:
    """All models that stop by their confidence; in steps and in operations, which parallel hardware does not count."""
    figures = []
    for unit, label in UNITS.items():
        body = Lines(label, "accuracy", lines_of(material, asked, _curve("threshold", unit)))
        if body.series:
            told = f"Each point is a threshold: {asked.what}.{PAID[unit]}{banded(body)}"
            title = f"Stopping by confidence, cost in {unit}, {asked.data}, {asked.time}"
            figures.append(Figure(key("speed", unit, asked.what), title, told, body))
    return figures


def _ways_to_stop(material: Material, asked: Asked) -> list[Figure]:
    """For each model all ways to stop."""
    by_model: dict[str, list[Series]] = {}
    learned = [each for each in material.rows("learned_stopper") if each.row[1:] == asked.row[1:]]
    ways: list[tuple[Way, Asked]] = [("threshold", asked), ("deadline", asked)]
    for way, of in [*ways, *(("stopper", each) for each in learned)]:
        for series in lines_of(material, of, _curve(way, "steps"), way):
            by_model.setdefault(series.model, []).append(series)
    figures = []
    for name, series in list(by_model.items())[:MOST]:
        body = Lines(UNITS["steps"], "accuracy", tuple(series))
        told = f"Stopping by confidence, at a deadline, and by a learned stopper where there is one: {asked.what}."
        title = f"Ways to stop: {name}, {asked.data}, {asked.time}"
        figures.append(Figure(key("stopping", name, asked.what), title, told + banded(body), body))
    return figures


def lambda_section(material: Material) -> Section:
    """Final accuracy against lambda."""
    rows = material.rows("speed_accuracy")
    whole = [asked for asked in rows if not asked.is_fine] or rows  # all time ends alike
    figures = [figure for asked in whole for figure in _lambda_figures(material, asked)]
    effects = material.comparison.get("lambda_effect", {})
    notes = [f"{name}: {effect['not measured']}" for name, effect in effects.items() if "not measured" in effect]
    lead = (
        "Lambda says what a step learns from: at 1 the true label at every step, at 0 the answer of the step after it, "
        "and the true label at the last step alone. In the paper the final answer suffers at 1 and not below."
    )
    missing = () if figures else _before_lambdas(material)
    return Section("lambda", "The effect of lambda", lead, figures, missing, notes)


def _before_lambdas(material: Material) -> tuple[Missing, ...]:
    """What comes before lambdas can be held against each other."""
    if len(material.subjects) > 1 and not material.rows("speed_accuracy"):
        return gaps(material, "speed_accuracy")
    train = f"cascaded sweep {material.data} --methods cascaded-td cascaded-ce --lam 0 0.5 1 --out runs/lambdas"
    return (Missing("runs that differ in lambda alone, recorded alike", train),)


def _lambda_figures(material: Material, asked: Asked) -> list[Figure]:
    """Accuracy by lambda, a figure for networks that are alike in everything else; cross-entropy beside them."""
    known = {each.label: each for each in material.conditions}
    families: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for label, told in estimates(material, asked, "accuracy").items():
        (model, lam), first = role(known[label]), known[label].group.first
        schedule, _, kind = model.partition("-")
        if kind in ("td", "ce"):
            families.setdefault((schedule, kind_of(first, "method", "lam")), {})[lam or "CE"] = told
    return [
        _lambda_figure(schedule, told, asked) for (schedule, _), told in families.items() if len(set(told) - {"CE"}) > 1
    ]


def _lambda_figure(schedule: str, told: Mapping[str, dict[str, Any]], asked: Asked) -> Figure:
    family = spoken(f"{schedule}-td(λ)")
    lambdas = sorted((each for each in told if each != "CE"), key=lambda each: (":" in each, each))
    dots = []
    for lam in lambdas:
        low, high, how = interval_of(told[lam])
        dots.append(Dot(family, lam, told[lam]["value"], low, high, how=how))
    ce = (Level("CE", told["CE"]["value"], spoken(f"{schedule}-ce")),) if "CE" in told else ()
    caption = f"Accuracy at the last step by lambda: {asked.what}.{' The line is CE.' if ce else ''}{whiskers(dots)}"
    body = Dots("accuracy at the last step", tuple(lambdas), tuple(dots), levels=ce, joined=True, group_label="lambda")
    return Figure(
        key("lambda", schedule, asked.what), f"Final accuracy by lambda, {asked.data}, {asked.time}", caption, body
    )


def _at_every_step(result: dict[str, Any]) -> Points:
    return list(range(1, len(result["accuracy"]) + 1)), result["accuracy"]


def _curve(way: str, unit: str) -> Any:
    def read(result: dict[str, Any]) -> Points:
        told = result if unit == "steps" else result.get(f"in {unit}", {})
        curve = told.get("curves", {}).get(way, {"cost": [], "accuracy": []})
        return curve["cost"], curve["accuracy"]

    return read


def _chance(material: Material, asked: Asked) -> tuple[Level, ...]:
    classes = {
        len(each.group.first.config.classes) or _classes(each.group.first.runs[0])
        for each in material.conditions
        if any(asked.row in by_row for by_row in each.by_seed.values())
    }
    return (Level("chance", 1 / classes.pop()),) if len(classes) == 1 and 0 not in classes else ()


def _classes(run: Any) -> int:
    from cascaded.errors import InputError
    from cascaded.training.runs import read_inputs

    try:
        return len(read_inputs(run).classes)
    except InputError:  # a run of an older cascaded
        return 0
