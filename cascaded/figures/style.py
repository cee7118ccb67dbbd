"""Colors, dashes and matplotlib settings of every figure.

Every color has a contrast of at least 3:1 on white and on a dark page. The first seven are distinct for color-blind
readers too.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib as mpl

STYLE = mpl.rc_params_from_file(Path(__file__).with_suffix(".mplstyle"), use_default_template=False)
"""matplotlib settings while a figure is drawn and saved."""

INK, MUTED, GRID, PAPER = (*(str(STYLE[name]) for name in ("text.color", "axes.edgecolor", "grid.color")), "#fefefe")
"""Text, secondary text, grid lines, background. A page replaces them by its CSS variables."""

WIDTH = 4.8
"""Inches: the width of every figure, so that text has the same size in all of them."""

SMALL = float(STYLE["legend.fontsize"])
"""Font size of all but the labels of axes, in points."""

PALETTE = ("#3363d2", "#34a174", "#994d7f", "#bb4400", "#c17f11", "#917cfa", "#508db7")
PALETTE += ("#0f8b8d", "#f15f7a", "#6f7a12", "#6e65aa", "#8b7355")

METHODS = {  # color at lambda 0 and at lambda 1
    "cascaded-td": (PALETTE[0], PALETTE[1]),
    "cascaded-ce": (PALETTE[2], PALETTE[2]),
    "serial-td-multihead": (PALETTE[8], PALETTE[3]),
    "serial-ce": (PALETTE[4], PALETTE[4]),
    "serial-td": (PALETTE[5], PALETTE[10]),
    "cascaded-td-multihead": (PALETTE[6], PALETTE[7]),
    "shallow-deep": (PALETTE[9], PALETTE[11]),
}
SERIAL, CASCADED = PALETTE[3], PALETTE[0]
"""Colors of the two schedules."""

DASHES: dict[str, Any] = {"threshold": "-", "deadline": (0, (4, 2)), "stopper": (0, (1, 1.4))}
"""Line style of each stopping rule."""

VERDICTS = {"supported": PALETTE[1], "contradicted": PALETTE[3], "inconclusive": MUTED, "not measured": MUTED}


def color(method: str, lam: float | None = None, schedule: str | None = None) -> str:
    """The color of a method, the same in every figure; methods with lambda go from one color to another.

    Args:
        method: Name of a training method, such as `cascaded-td`.
        lam: Its lambda; None or NaN where the loss has none.
        schedule: How it was run, `serial` or `cascaded`; None for the schedule of its method.
    """
    if schedule in ("serial", "cascaded"):
        method = re.sub("^(serial|cascaded)", schedule, method)
    first, last = METHODS.get(method, (MUTED, MUTED))
    return mix(first, last, 1.0 if lam is None or lam != lam else min(max(float(lam), 0.0), 1.0))


def mix(first: str, last: str, share: float) -> str:
    """The color `share` of the way from one color to another, in linear light, so that contrast stays in between."""
    return "#" + "".join(
        f"{round(((1 - share) * (a / 255) ** 2.2 + share * (b / 255) ** 2.2) ** (1 / 2.2) * 255):02x}"
        for a, b in zip(_parts(first), _parts(last), strict=True)
    )


def text_color(color: str) -> str:
    """A color for words: darker, because letters are thinner than lines."""
    return color if color in (INK, MUTED) else mix(color, INK, 0.4)


def _parts(color: str) -> tuple[int, ...]:
    return tuple(int(color[place : place + 2], 16) for place in (1, 3, 5))
