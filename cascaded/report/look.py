"""One look for everything that is drawn: a colour a model, a shape a way, one ink.

Every model colour has a contrast of 3:1 or more on white and on a dark page alike. The first seven can be told apart
by colour-blind readers too; cascaded networks are cool, serial ones warm where there was a choice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from cascaded.exhibits.kinds import Way

INK, MUTED, GRID, PAPER = "#20252c", "#5c6470", "#dee2e8", "#fefefe"
"""Text, lesser text, lines behind the figures, what they stand on. A page puts its own in their place."""

WIDE = 4.8
"""Inches: how wide a figure is. Shown at 340 px on a phone and 560 px on a desk."""

TEXT, SMALL = 9.5, 8.5
"""Points."""

FIRST = ("#3363d2", "#34a174", "#994d7f", "#bb4400", "#c17f11", "#917cfa", "#508db7")
MORE = ("#0f8b8d", "#f15f7a", "#6f7a12", "#6e65aa", "#8b7355")
AGAIN = ("#5589fc", "#0e7952", "#c474a8", "#e46a37", "#926010", "#6f56d0", "#327098")  # FIRST in another lightness
AGAIN += ("#077778", "#c23254", "#8f9b3a", "#8e85cd", "#a38a6b")

KNOWN = MappingProxyType(
    {
        "cascadedtd(0)": FIRST[0],
        "cascadedtd(λ)": FIRST[0],
        "cascadedtd(1)": FIRST[1],
        "cascadedce": FIRST[2],
        "shallowdeep": FIRST[3],
        "serialce": FIRST[4],
        "serialtd(0)": FIRST[5],
        "cascadedtd(0)multihead": FIRST[6],
        "cascadedtdmultihead(0)": FIRST[6],
    }
)
"""By name in small letters without dashes: `CascadedTD(0)` and `cascaded-td(0)` are the same model."""

FAMILIES = MappingProxyType({"shallowdeep": FIRST[3], "serialtd(": FIRST[5]})
"""How names begin whose lambda may be any."""

SERIAL, CASCADED = FIRST[3], FIRST[0]

DASHES: dict[Way, Any] = {
    "": "-",
    "threshold": "-",
    "deadline": (0, (4, 2)),
    "stopper": (0, (1, 1.4)),
    "last step": (0, (4, 2)),
    "all steps": "-",
    "in the paper": (0, (1, 1.4)),
}
"""How a line is drawn, as matplotlib says it."""

FILLS: dict[Way, Any] = {
    "": "full",
    "threshold": "full",
    "deadline": "none",
    "stopper": "left",
    "last step": "none",
    "all steps": "full",
    "in the paper": "none",
}
"""How much of a mark is filled, as matplotlib says it."""

STYLE: dict[Any, Any] = {
    "font.family": ["sans-serif", "DejaVu Sans"],  # the second for letters that the first one lacks
    "font.sans-serif": ["Helvetica Neue", "Helvetica", "Arial", "Liberation Sans", "DejaVu Sans"],
    "font.size": TEXT,
    "text.color": INK,
    "text.parse_math": False,  # a dollar in a name is a dollar
    "text.usetex": False,
    "text.hinting": "none",  # letters as wide as they were measured
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.major.pad": 4,
    "ytick.major.pad": 4,
    "lines.dash_capstyle": "butt",
    "image.composite_image": False,  # thumbnails stay apart, pixel by pixel
    "svg.fonttype": "none",
    "svg.hashsalt": "cascaded",
    "pdf.fonttype": 42,
    "savefig.facecolor": "white",
}
"""How matplotlib is set up while a figure is drawn and written."""


def colours(models: Sequence[str]) -> dict[str, str]:
    """A colour for every model, in the order given.

    The best-known models have theirs whatever else is shown; the others take what is left, in order. From the 25th on
    colours repeat, and names alone tell models apart.

    Args:
        models: Names of models, such as `CascadedTD(0)`.
    """
    chosen: dict[str, str] = {}
    for model in models:
        _take(chosen, model, KNOWN.get(_bare(model)))
    for model in models:
        family = next((colour for begin, colour in FAMILIES.items() if _bare(model).startswith(begin)), None)
        _take(chosen, model, family)
    every = (*FIRST, *MORE, *AGAIN)
    reserved = set(KNOWN.values())
    # what well-known models would have is given away last: it might be looked for
    left = [each for each in every if each not in reserved] + [each for each in FIRST if each not in chosen.values()]
    others = [model for model in dict.fromkeys(models) if model not in chosen]
    for place, model in enumerate(others):
        chosen[model] = left[place] if place < len(left) else every[place % len(every)]
    return {model: chosen[model] for model in dict.fromkeys(models)}


def _bare(model: str) -> str:
    return re.sub(r"[\s_-]", "", model.lower())


def _take(chosen: dict[str, str], model: str, colour: str | None) -> None:
    if colour is not None and model not in chosen and colour not in chosen.values():
        chosen[model] = colour


def colour_of(model: str, colours: Mapping[str, str]) -> str:
    """A model's colour; a quiet one for what is no model's."""
    return colours.get(model, MUTED) if model else MUTED


def mark_of(colour: str) -> str:
    """The mark that goes with a colour: a square where the hue is there a second time."""
    return "s" if colour in AGAIN else "o"


def deep(colour: str) -> str:
    """A colour for words: two thirds of itself and one third ink, for letters are thinner than lines."""
    if colour in (INK, MUTED):
        return colour
    pairs = zip(_parts(colour), _parts(INK), strict=True)
    return "#" + "".join(f"{round(0.67 * own + 0.33 * ink):02x}" for own, ink in pairs)


def _parts(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[place : place + 2], 16) for place in (1, 3, 5))
