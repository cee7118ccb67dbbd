"""All that there is to show of some runs, in the order in which it is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cascaded import __version__
from cascaded.exhibits.claims import claim_lines
from cascaded.exhibits.gaps import passed_over
from cascaded.exhibits.images import latency_section, prototype_section, taxonomy_section
from cascaded.exhibits.inside import explorers, schedule_section, seen, unexplored
from cascaded.exhibits.kinds import Figure, Section
from cascaded.exhibits.material import Material, gather
from cascaded.exhibits.page import ClaimLine, Exhibition, RunLine
from cascaded.exhibits.robustness import noise_section, outside_section
from cascaded.exhibits.speed import MOST, accuracy_section, lambda_section, speed_section
from cascaded.progress import minutes
from cascaded.results.subjects import Subject
from cascaded.training.runs import is_done, read_metrics


def exhibition(places: Sequence[Path], title: str = "") -> Exhibition:
    """Everything about some runs, from what was recorded and analysed; nothing is computed but means over seeds.

    Args:
        places: Folders of runs, or folders that hold some.
        title: The page's heading; what was run, by default.
    """
    material = gather(places)
    found, notes = seen(material)
    watched = explorers(material, found)
    claims = claim_lines(material)
    labels = [material.names[each.label] for each in material.conditions]
    return Exhibition(
        title=title or _title(material),
        summary=_summary(material, claims),
        models=tuple(dict.fromkeys(labels)),
        runs=tuple(_run_line(subject, material) for subject in _in_order(material)),
        sections=_told_apart((*_sections(material, found), *_leftovers(material, notes))),
        claims=claims,
        explorers=watched,
        unexplored=unexplored(material, watched),
        made_with={"cascaded": __version__, **_made_with(material)},
    )


DRAWN_IN: dict[str, Callable[[Material], Section]] = {
    "accuracy": accuracy_section,
    "speed": speed_section,
    "stopping": speed_section,
    "lambda": lambda_section,
    "latency": latency_section,
    "gallery": latency_section,
    "prototypes": prototype_section,
    "tenths": prototype_section,
    "taxonomy": taxonomy_section,
    "confidence": noise_section,
    "outside": outside_section,
}
"""Sections by how the keys of their figures begin."""


def figures(material: Material, begins: Sequence[str]) -> list[Figure]:
    """Some figures of some runs.

    Args:
        material: The runs.
        begins: How the keys of the figures begin, up to a dash: `accuracy`, `speed-steps`.
    """
    sections = dict.fromkeys(DRAWN_IN[each.partition("-")[0]] for each in begins)
    made = _told_apart(tuple(section(material) for section in sections))
    keys = tuple(f"{each}-" for each in begins)
    return [figure for section in made for figure in section.figures if figure.key.startswith(keys)]


def _sections(material: Material, found: Any) -> tuple[Section, ...]:
    return (
        schedule_section(material, found),
        accuracy_section(material),
        speed_section(material),
        lambda_section(material),
        latency_section(material),
        prototype_section(material),
        taxonomy_section(material),
        noise_section(material),
        outside_section(material),
    )


def _told_apart(sections: tuple[Section, ...]) -> tuple[Section, ...]:
    """No two figures write the same files: odd letters are no part of a key, and long names are cut."""
    often: Counter[str] = Counter()

    def own(figure: Figure) -> Figure:
        often[figure.key] += 1
        return figure if often[figure.key] == 1 else own(replace(figure, key=f"{figure.key}-{often[figure.key]}"))

    return tuple(replace(each, figures=[own(figure) for figure in each.figures]) for each in sections)


def _leftovers(material: Material, notes: tuple[str, ...]) -> tuple[Section, ...]:
    """Files that were found and could not be used; no section where there are none."""
    told = (*passed_over(material), *notes)
    lead = "These files were found and could not be used."
    return (Section("passed-over", "Passed over", lead, notes=told),) if told else ()


def _title(material: Material) -> str:
    data = list(dict.fromkeys(Path(subject.config.data).name for subject in material.subjects))
    return f"Anytime prediction on {', '.join(data[:3])}{' and more' if len(data) > 3 else ''}"


def _summary(material: Material, claims: Sequence[ClaimLine]) -> tuple[str, ...]:
    """What was found, in sentences made from the figures."""
    return (*_early_and_late(material), _verdicts(claims))


def _early_and_late(material: Material) -> list[str]:
    """For each model how right it is early on and at the end, of the first test that there is."""
    rows = [asked for asked in material.rows("speed_accuracy") if not asked.is_fine]
    if not rows:
        return []
    steps = rows[0].steps
    early = max(1, round(steps / 3))
    told = []
    for label, by_seed in material.answers(rows[0].row).items():
        curves = [result["accuracy"] for result in by_seed.values()]
        first, last = (100 * sum(curve[at - 1] for curve in curves) / len(curves) for at in (early, steps))
        told.append(f"{material.names[label]} {first:.0f} and {last:.0f} %")
    what, more = rows[0].what.partition(",")[0], len(told) - MOST
    told = told[:MOST] + ([f"{more} more models below"] if more > 0 else [])
    return [f"Right at step {early} and at the last of {steps} steps, {what}: {'; '.join(told)}."]


def _verdicts(claims: Sequence[ClaimLine]) -> str:
    """How many of the paper's claims hold: those of which every measurement does."""
    by_claim: dict[str, list[str]] = {}
    for line in claims:
        by_claim.setdefault(line.claim, []).append(line.verdict)
    known = {claim: [each for each in told if each != "not measured"] for claim, told in by_claim.items()}
    kinds = {
        "yes in all that was measured": [c for c, told in known.items() if told and set(told) == {"yes"}],
        "yes in part": [c for c, told in known.items() if set(told) == {"yes", "no"}],
        "no": [c for c, told in known.items() if told and set(told) == {"no"}],
        "not measured": [c for c, told in known.items() if not told],
    }
    told = "; ".join(f"{', '.join(each)}: {kind}" for kind, each in kinds.items() if each)
    return f"Do the paper's claims show here? {told}."


def _in_order(material: Material) -> list[Subject]:
    """All runs, model by model."""
    return list({subject.file: subject for each in material.conditions for subject in _subjects(each)}.values())


def _run_line(subject: Subject, material: Material) -> RunLine:
    """What is told of a run: what it is, how long it took, how it ended."""
    config, run = subject.config, subject.runs[0]
    metrics = [line for each in subject.runs for line in read_metrics(each)[-1:]]
    analysed = _seconds(material.results(subject))
    accuracy = (metrics[0].get("test") or metrics[0].get("accuracy") or [None])[-1] if metrics else None
    label = next(each.label for each in material.conditions if subject in _subjects(each))
    facts = {
        "accuracy": "" if accuracy is None else f"{100 * accuracy:.1f} %",
        "data": config.data,
        "network": f"{config.arch}, width {config.width}",
        "seed": str(config.seed),
        "epochs": f"{metrics[0]['epoch'] if metrics else 0} of {config.epochs}",
        "trained": "" if not metrics else minutes(sum(line["seconds"] for line in metrics)),
        "analysed": minutes(analysed) if analysed else "not yet",
    }
    if not is_done(run):
        facts["epochs"] += ", not done"
    return RunLine(subject.name, material.names[label], facts)


def _subjects(condition: Any) -> list[Subject]:
    return [answered.subject for answered in condition.group.by_seed.values()]


def _seconds(results: dict[str, Any]) -> float:
    return sum(known.get("seconds", 0) for each in results.get("analyses", {}).values() for known in each.values())


def _made_with(material: Material) -> dict[str, str]:
    """The versions that the first run was made with."""
    from cascaded.files import read_json

    told = read_json(material.subjects[0].runs[0] / "config.json").get("made_with", {})
    return {name: str(version) for name, version in told.items() if name != "cascaded"}
