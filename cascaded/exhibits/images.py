"""Which images take how long: galleries, latencies, how typical they are, and what kind of mistakes come first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import UInt8

from cascaded.errors import InputError
from cascaded.exhibits.gaps import gaps, refusals
from cascaded.exhibits.kinds import Dots, Figure, Level, Lines, Pictures, Section, Thumb
from cascaded.exhibits.material import Material, rows_of
from cascaded.exhibits.over_seeds import Points, dots_of, lines_of, whiskers
from cascaded.exhibits.speed import MOST, banded, key, left_out
from cascaded.results.asked import Asked
from cascaded.results.galleries import KINDS, ends_file, read_ends
from cascaded.results.groups import Condition
from cascaded.results.subjects import Subject
from cascaded.shell import program
from cascaded.training.runs import read_inputs


def latency_section(material: Material) -> Section:
    """When a class is chosen for good, and the images at both ends."""
    figures, notes = [], []
    for asked in material.rows("selection_latency"):
        body = Lines("step", "share of images that have settled", lines_of(material, asked, _settled), whole=True)
        told = (
            f"From which step on one class stays above a threshold for good: {asked.what}. {_thetas(material, asked)}"
            f"{banded(body)}"
        )
        title = f"When images settle, {asked.data}, {asked.time}"
        figures.append(Figure(key("latency", asked.what), title, told, body))
    for condition in material.conditions[:MOST]:
        drawn = [_gallery(material, condition, asked) for asked in _finest(condition, "selection_latency")]
        figures += [each for each in drawn if each]
    if figures and not any(isinstance(each.body, Pictures) for each in figures):
        notes.append(f"No image is shown: {program()} analyse draws galleries where the data is at hand.")
    elif figures:
        notes += left_out(material, "Galleries are shown")
    lead = (
        "An image has settled when one class stays above a threshold from some step on. With TD, the paper finds, fast "
        "images are typical views and slow ones cluttered, cut off or unusual. Some never settle."
    )
    missing = gaps(material, "selection_latency")
    notes += refusals(material, "selection_latency")
    return Section("latency", "Fast images, slow images", lead, figures, missing, notes)


def _finest(condition: Condition[Asked], analysis: str) -> list[Asked]:
    """What a model was asked in fine time; in whole steps where there is no other: many images then share a latency."""
    rows = rows_of(condition, analysis)
    return [asked for asked in rows if asked.is_fine] or rows


def _thetas(material: Material, asked: Asked) -> str:
    """Which threshold each model has."""
    told = []
    for label, by_seed in material.answers(asked.row).items():
        thetas = [result["headline"].get("theta") for result in by_seed.values()]
        if None not in thetas:
            told.append(f"{material.names[label]} {sum(thetas) / len(thetas):.2f}")
    return f"Each model has a threshold of its own, at which the same share of images never settles: {', '.join(told)}."


def _settled(result: dict[str, Any]) -> Points:
    counts = np.array(result["items at step"], dtype=float)
    return list(range(1, len(counts) + 1)), (counts.cumsum() / result["items"]).tolist()


def _gallery(material: Material, condition: Condition[Asked], asked: Asked) -> Figure | None:
    """The fastest and slowest images of the first seed that has kept them."""
    for seed, by_row in sorted(condition.by_seed.items()):
        if asked.row not in by_row:
            continue
        subject = condition.group.by_seed[seed].subject
        of = _trace_name(condition, seed, asked)
        pixels, told = read_ends(ends_file(subject, of)), by_row[asked.row][1].get("gallery", {}).get("overall", {})
        if any(len(pixels.get(kind, ())) != len(told.get(kind, [])) or not len(pixels[kind]) for kind in KINDS):
            continue  # some were not in the data any more: which is which cannot be told
        classes = _class_names(subject)
        rows = tuple((f"{kind} first", _thumbs(pixels[kind], told[kind], classes)) for kind in KINDS)
        name = material.names[condition.label]
        caption = f"The images that settle first and last, seed {seed}, with their class and step: {asked.what}."
        return Figure(key("gallery", name, asked.what), f"Fast and slow images: {name}", caption, Pictures(rows))
    return None


def _trace_name(condition: Condition[Asked], seed: int, asked: Asked) -> str:
    answers = condition.group.by_seed[seed].answers
    return next(of for (_, of), (each, _) in answers.items() if each.row == asked.row)


def _class_names(subject: Subject) -> Sequence[str]:
    try:
        return read_inputs(subject.runs[0]).classes
    except InputError:  # a run of an older cascaded: numbers will do
        return ()


def _thumbs(
    pixels: UInt8[np.ndarray, "shown channels height width"], told: Sequence[dict[str, Any]], classes: Sequence[str]
) -> tuple[Thumb, ...]:
    found = []
    for image, each in zip(pixels, told, strict=True):
        label = each.get("label", -1)
        name = classes[label] if 0 <= label < len(classes) else str(label)
        when = "never" if each["failed"] else f"{each['latency']:g}"
        colours = np.broadcast_to(image, (3, *image.shape[1:])).transpose(1, 2, 0)
        found.append(Thumb(colours, f"{name}, {when}", f"row {each['index']}"))
    return tuple(found)


def prototype_section(material: Material) -> Section:
    """Latency against how typical images are."""
    figures, notes = [], []
    chosen = {asked.row: asked for each in material.conditions for asked in _finest(each, "prototypicality")}
    for asked in chosen.values():
        answers = material.told(asked)
        measures = list(dict.fromkeys(name for result in answers for name in result["measures"]))
        for result in answers:
            lacking = result.get("not measured", {}).items()
            notes += [f"{asked.what}: {name} was not measured, {way}." for name, way in lacking]
        dots = dots_of(material, asked, {f"rho {name}": name for name in measures}, alone=True)
        told = (
            "Spearman's rho of how soon an image settles with how typical it is; above 0, typical images are "
            f"answered sooner: {asked.what}.{whiskers(dots)}"
        )
        body = Dots("rho with negative latency", tuple(measures), dots, shares=False, levels=(Level("none", 0.0),))
        title = f"How soon against how typical, {asked.data} {asked.split}, {asked.time}"
        figures.append(Figure(key("prototypes", asked.what), title, told, body))
        figures += [_tenths(material, asked, name) for name in measures]
    lead = (
        "How typical is an image? Centrality: how well its embedding points along the weights of its class. C-score: "
        "how often networks that were not trained on it get it right. Human agreement: how much people agree on it. "
        "Typicality, of cluttered digits: how little of the ink is clutter. If a network's time is like ours, typical "
        "images take less of it."
    )
    notes = (*dict.fromkeys(notes), *refusals(material, "prototypicality"))
    missing = gaps(material, "prototypicality")
    return Section("prototypes", "Latency against prototypicality", lead, figures, missing, notes)


def _tenths(material: Material, asked: Asked, name: str) -> Figure:
    def read(result: dict[str, Any]) -> Points:
        tenths = result["measures"].get(name, {}).get("tenths", ())
        return list(range(1, len(tenths) + 1)), tenths

    x_label = f"tenth of the images, from the least typical ({name}) on"
    body = Lines(x_label, "mean latency, steps", lines_of(material, asked, read), shares=False, whole=True)
    told = (
        f"Mean latency by {name}, at each model's own threshold; an image that never settles counts as one step more: "
        f"{asked.what}.{banded(body)}"
    )
    return Figure(
        key("tenths", name, asked.what), f"Latency by {name}, {asked.data} {asked.split}, {asked.time}", told, body
    )


def _compliance(result: dict[str, Any]) -> Points:
    return list(range(1, len(result["compliance"]) + 1)), result["compliance"]


def taxonomy_section(material: Material) -> Section:
    """Whether a wrong answer is of the right kind."""
    figures = []
    for asked in material.rows("taxonomic_compliance"):
        answers = material.told(asked)
        levels = (Level("chance", float(answers[0]["chance"])),) if answers[0].get("chance") else ()
        series = lines_of(material, asked, _compliance)
        body = Lines("step", "right coarse class, of wrong answers", series, levels, whole=True)
        told = (
            f"Of the answers that are wrong, the share that is of the right coarse class: {asked.what}.{banded(body)}"
        )
        figures.append(Figure(key("taxonomy", asked.what), f"Wrong, but near: {asked.data}", told, body))
    lead = (
        "A poodle taken for a terrier is a better mistake than a poodle taken for a bus. Where classes have a coarser "
        "level, an answer that comes early should get that level right first."
    )
    missing, notes = gaps(material, "taxonomic_compliance"), refusals(material, "taxonomic_compliance")
    return Section("taxonomy", "Coarse before fine", lead, figures, missing, notes)
