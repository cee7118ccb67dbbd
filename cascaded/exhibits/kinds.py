"""What a figure can be: lines, dots, pictures or squares, as numbers. Each can also be read as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Float, UInt8

Cell = str | float | int | None
Table = tuple[list[str], list[list[Cell]]]
"""A heading for every column, and the rows."""

Way = Literal["", "threshold", "deadline", "stopper", "last step", "all steps", "in the paper"]
"""What tells two marks of one model apart: the shape of a line or mark, never its colour, which is the model's."""


@dataclass(frozen=True)
class Series:
    """One line.

    Attributes:
        model: Whose it is; a colour goes with it.
        x: Where, ascending.
        y: What; nan where there is nothing.
        sem: Half the height of the band around it; empty where there is none.
        way: What tells it from other lines of the same model.
        seeds: How many networks it is the mean of.
    """

    model: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    sem: tuple[float, ...] = ()
    way: Way = ""
    seeds: int = 1


@dataclass(frozen=True)
class Level:
    """A horizontal line to hold others against, such as chance; of a model where it has one's colour."""

    name: str
    y: float
    model: str = ""


@dataclass(frozen=True)
class Lines:
    """Lines over a common axis.

    Attributes:
        x_label: What is along the axis.
        y_label: What is above it.
        series: The lines.
        levels: What they are held against.
        shares: Whether y is a share, to be written in per cent.
        spans: Stretches of x that are set off, each with its name: noisy steps.
        whole: Whether x counts something whole.
    """

    x_label: str
    y_label: str
    series: tuple[Series, ...]
    levels: tuple[Level, ...] = ()
    shares: bool = True
    spans: tuple[tuple[str, float, float], ...] = ()
    whole: bool = False

    def table(self) -> Table:
        """A row a point."""
        rows: list[list[Cell]] = []
        for each in self.series:
            sems = each.sem or (None,) * len(each.x)
            rows += [
                [each.model, each.way, each.seeds, x, y, sem] for x, y, sem in zip(each.x, each.y, sems, strict=True)
            ]
        rows += [[level.model or level.name, level.name, None, None, level.y, None] for level in self.levels]
        return ["model", "way", "seeds", self.x_label, self.y_label, "sem"], rows


@dataclass(frozen=True)
class Dot:
    """One figure with its interval.

    Attributes:
        model: Whose it is.
        group: What it is of: the dots of a group stand together.
        value: The figure.
        low: Lower end of its interval; None where there is none.
        high: Upper end.
        way: What tells it from others of the same model and group.
        how: Where its interval comes from.
    """

    model: str
    group: str
    value: float
    low: float | None = None
    high: float | None = None
    way: Way = ""
    how: str = ""


@dataclass(frozen=True)
class Dots:
    """Figures in groups, one below the other.

    Attributes:
        label: What is measured.
        groups: In this order.
        dots: The figures.
        shares: Whether they are shares, to be written in per cent.
        levels: What they are held against; the y of a level is a value.
        joined: Whether the dots of a model are joined from group to group: groups are places on an axis, such as
            lambdas, and `group_label` says which axis.
        group_label: What the groups are.
    """

    label: str
    groups: tuple[str, ...]
    dots: tuple[Dot, ...]
    shares: bool = True
    levels: tuple[Level, ...] = ()
    joined: bool = False
    group_label: str = ""

    def table(self) -> Table:
        """A row a figure."""
        rows: list[list[Cell]] = [
            [each.model, each.group, each.way, each.value, each.low, each.high, each.how] for each in self.dots
        ]
        rows += [[level.model or level.name, "", level.name, level.y, None, None, ""] for level in self.levels]
        return ["model", self.group_label or "of", "way", self.label, "low", "high", "interval"], rows


@dataclass(frozen=True)
class Thumb:
    """A small picture.

    Attributes:
        pixels: Its colours.
        caption: A word or two below it.
        about: More about it, for the table: a number of an image, its class.
    """

    pixels: UInt8[np.ndarray, "height width 3"]
    caption: str = ""
    about: str = ""


@dataclass(frozen=True)
class Pictures:
    """Rows of small pictures, each row with a label."""

    rows: tuple[tuple[str, tuple[Thumb, ...]], ...]

    def table(self) -> Table:
        """A row a picture."""
        rows: list[list[Cell]] = [
            [label, place, thumb.caption, thumb.about]
            for label, thumbs in self.rows
            for place, thumb in enumerate(thumbs, start=1)
        ]
        return ["row", "place", "caption", "image"], rows


@dataclass(frozen=True)
class Squares:
    """For each schedule, how far each block has come at each step: from 0, nothing, to 1, settled.

    Attributes:
        schedules: By name, first the one that is drawn first.
        model: Whose network it is.
    """

    schedules: tuple[tuple[str, Float[np.ndarray, "time blocks"]], ...]
    model: str = ""

    def table(self) -> Table:
        """A row a square."""
        rows: list[list[Cell]] = [
            [name, step, block, float(value)]
            for name, shades in self.schedules
            for step, row in enumerate(shades, start=1)
            for block, value in enumerate(row, start=1)
        ]
        return ["schedule", "step", "block", "how far it has come"], rows


Body = Lines | Dots | Pictures | Squares


@dataclass(frozen=True)
class Figure:
    """A figure before it is drawn.

    Attributes:
        key: The name of its files: letters, digits and dashes.
        title: What one sees, in a few words.
        caption: How to read it, what it is of, and how sure it is.
        body: Its numbers.
    """

    key: str
    title: str
    caption: str
    body: Body


def models_in(figures: Iterable[Figure]) -> list[str]:
    """Every model that figures show, each once."""
    found: dict[str, None] = {}
    for body in (figure.body for figure in figures):
        marks = body.series if isinstance(body, Lines) else body.dots if isinstance(body, Dots) else ()
        found |= dict.fromkeys(mark.model for mark in marks)
    return list(found)


@dataclass(frozen=True)
class Missing:
    """Something that is not there: what, and the command that would fill it."""

    what: str
    command: str


@dataclass(frozen=True)
class Section:
    """A part of the report.

    Attributes:
        key: Its anchor.
        title: Its heading.
        lead: What is asked here, for somebody who has not read the paper; plain text.
        figures: What was found.
        missing: What was not measured, and how it would be.
        notes: What else to know, a sentence each: an analysis that was refused, a trace that was passed over.
    """

    key: str
    title: str
    lead: str
    figures: Sequence[Figure] = field(default_factory=tuple)
    missing: Sequence[Missing] = field(default_factory=tuple)
    notes: Sequence[str] = field(default_factory=tuple)
