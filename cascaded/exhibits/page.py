"""All that one page shows, before it is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float32, UInt8

from cascaded.exhibits.kinds import Missing, Section

Verdict = Literal["yes", "no", "not measured"]


@dataclass(frozen=True)
class RunLine:
    """A run in the table of what was run.

    Attributes:
        name: Its folder.
        model: What it is called everywhere on the page.
        facts: What else is told of it, by heading, in order; the same headings for all.
    """

    name: str
    model: str
    facts: dict[str, str]


@dataclass(frozen=True)
class ClaimLine:
    """One measurement behind a claim of the paper.

    Attributes:
        claim: C1 to C7.
        says: The claim in a sentence.
        what: What was measured here, in a few words; why nothing was where nothing was.
        effect: By how much, positive if it is as the paper says; None where it was not measured.
        low: Lower end of its 95 % interval.
        high: Upper end.
        unit: What it is in: points, steps, rho.
        how: What the interval is over: seeds, or images.
        paper: The paper's effect, in words and figures.
        verdict: Whether it is as the paper says.
        command: What would measure it, where it was not.
        runs: The runs it was measured on, those that it is about first.
    """

    claim: str
    says: str
    what: str
    effect: float | None
    low: float | None
    high: float | None
    unit: str
    how: str
    paper: str
    verdict: Verdict
    command: str = ""
    runs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Watched:
    """What one network does with the explorer's images, step by step.

    Attributes:
        model: Whose it is.
        probabilities: Of every class.
        maps: What the stem and every block hold, as small grey pictures, the stem first.
        nearness: How far each of them has come, from 0 to 1, where it is at the last step that was recorded.
        of: The model whose colour it has, where it is called otherwise.
    """

    model: str
    probabilities: Float32[np.ndarray, "time items classes"]
    maps: UInt8[np.ndarray, "time items stages side side"]
    nearness: Float32[np.ndarray, "time items stages"]
    of: str = ""


@dataclass(frozen=True)
class Explorer:
    """Some images of one data set, and what every network makes of them.

    Attributes:
        data: Which images, in words: `cifar10 test`.
        classes: Names of the classes.
        images: As they are shown to people.
        labels: Their true classes.
        models: What the networks do; all have seen all images.
    """

    data: str
    classes: tuple[str, ...]
    images: UInt8[np.ndarray, "items height width 3"]
    labels: tuple[int, ...]
    models: tuple[Watched, ...]


@dataclass(frozen=True)
class Exhibition:
    """All of a report.

    Attributes:
        title: Its heading.
        summary: What was found, in a few sentences made from the figures.
        models: Every model's name; each has one colour everywhere, chosen by its place here.
        runs: What was run.
        sections: What was measured.
        claims: What of the paper holds here.
        explorers: Networks at work, a set of images each.
        unexplored: What would have to be recorded for an explorer; empty where there is one.
        made_with: Which versions of what, by name.
    """

    title: str
    summary: tuple[str, ...]
    models: tuple[str, ...]
    runs: tuple[RunLine, ...]
    sections: tuple[Section, ...]
    claims: tuple[ClaimLine, ...]
    explorers: tuple[Explorer, ...]
    unexplored: tuple[Missing, ...]
    made_with: dict[str, str]
