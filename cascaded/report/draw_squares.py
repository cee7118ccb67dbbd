"""Schedules as grids of squares: a square a block and step, the fuller the closer to settled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Sheet
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from cascaded.exhibits.kinds import Squares
from cascaded.report.draw_axes import EDGE, axes_on, new_sheet, scale, set_scales
from cascaded.report.draw_text import pitch, put, shortened, width, wrapped
from cascaded.report.look import CASCADED, INK, MUTED, SERIAL, SMALL, TEXT, WIDE, deep

SHADES = 20  # steps from empty to full: squares of one shade are one path
CORNERS = 0.45 * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)])  # of a square that is 1 from the next
BESIDE = 20  # steps up to which two schedules stand side by side
LEADS = {
    "serial": "one block a step, each from settled input",
    "cascaded": "every block at every step, from what there is so far",
}


def draw_squares(body: Squares) -> Sheet:
    """Schedules side by side where they are short, one below the other where they are long."""
    if not body.schedules:
        sheet = new_sheet(0.5)
        put(sheet, WIDE / 2, 0.25, "no schedules to draw", TEXT, MUTED, "center")
        return sheet
    longest, blocks = (max(1, *(shades.shape[axis] for _, shades in body.schedules)) for axis in (0, 1))
    columns = min(2, len(body.schedules)) if longest <= BESIDE else 1
    left = EDGE + width(str(blocks), SMALL) + 0.1
    side = min(0.42, (WIDE - EDGE - columns * left) / columns / longest)
    leads = [wrapped(_lead(name), (WIDE - EDGE) / columns - left, SMALL) for name, _ in body.schedules]
    head = 1.25 * pitch() + max(map(len, leads)) * pitch(SMALL) + 0.08
    foot = pitch(SMALL) + pitch() + 0.16
    panel = head + blocks * side + foot
    count = -(-len(body.schedules) // columns)
    sheet = new_sheet(count * panel + pitch() + 2 * EDGE)
    for place, (name, shades) in enumerate(body.schedules):
        x = left + place % columns * (WIDE - EDGE) / columns
        top = sheet.get_size_inches()[1] - EDGE - place // columns * panel
        _put_schedule(sheet, name, shades, (x, top), side, head, (WIDE - EDGE) / columns - left)
    _put_shades(sheet, "block, from the first at the bottom", EDGE + pitch() / 2)
    return sheet


def colour_of_schedule(name: str) -> str:
    """Serial schedules are warm, all others cool."""
    return SERIAL if name.lower().startswith("serial") else CASCADED


def _lead(name: str) -> str:
    return LEADS.get(name.lower(), "")


def _put_schedule(
    sheet: Sheet,
    name: str,
    shades: Float[np.ndarray, "time blocks"],
    corner: tuple[float, float],
    side: float,
    head: float,
    room: float,
) -> None:
    """One schedule with its name, what it does, and its axes."""
    (left, top), (steps, blocks), colour = corner, shades.shape, colour_of_schedule(name)
    put(sheet, left, top - pitch() / 2, shortened(name, room / 1.15), TEXT, deep(colour), weight="bold")
    lead = wrapped(_lead(name), room, SMALL)
    put(sheet, left, top - 1.25 * pitch() - len(lead) / 2 * pitch(SMALL), lead, SMALL, MUTED)
    bottom = top - head - blocks * side
    put(sheet, left + steps * side / 2, bottom - pitch(SMALL) - 0.08 - pitch() / 4, "step", TEXT, INK, "center")
    if not steps or not blocks:
        return
    axes = axes_on(sheet, left, bottom, steps * side, blocks * side)
    x, y = (scale((0.5, count + 0.5), whole=True, pad=1e-9, most=8) for count in (steps, blocks))
    set_scales(axes, x, y)
    axes.spines[:].set_visible(False)
    axes.tick_params(pad=2)
    _put_grid(axes, np.nan_to_num(np.clip(shades, 0, 1)), colour)


def _put_grid(axes: Axes, shades: Float[np.ndarray, "time blocks"], colour: str) -> None:
    """The squares of every shade, and outlines of the empty ones."""
    levels = np.where(shades > 0, np.maximum(1, np.round(shades * SHADES)), 0).astype(int)
    for level in range(1, SHADES + 1):
        there = list(zip(*np.nonzero(levels == level), strict=True))
        if there:
            axes.add_patch(PathPatch(_squares(there), facecolor=colour, alpha=_strength(level / SHADES), lw=0))
    empty = list(zip(*np.nonzero(levels == 0), strict=True))
    if empty:
        axes.add_patch(PathPatch(_squares(empty), facecolor="none", edgecolor=MUTED, alpha=0.5, lw=0.5))


def _strength(shade: float) -> float:
    return 0.12 + 0.88 * shade


def _squares(places: Sequence[tuple[int, int]]) -> Path:
    """One path of many squares, each around its step and block, counted from 1."""
    vertices = (np.asarray(places, float)[:, None] + 1 + CORNERS).reshape(-1, 2)
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * len(places)
    return Path(vertices, codes)


def _put_shades(sheet: Sheet, told: str, y: float) -> None:
    """What shades mean, from nothing to settled."""
    side, x = 0.13, WIDE - EDGE - width("settled", SMALL)
    put(sheet, EDGE, y, told, SMALL, MUTED)
    put(sheet, x, y, "settled", SMALL, MUTED)
    for place, shade in enumerate((1.0, 0.75, 0.5, 0.25, 0.0)):
        corner = np.array((x - 0.08 - (place + 0.5) * side, y))
        box = Path(corner + CORNERS * side, closed=True)
        free: dict[str, Any] = {"transform": sheet.dpi_scale_trans}
        empty: dict[str, Any] = {"facecolor": "none", "edgecolor": MUTED, "alpha": 0.5, "lw": 0.5}
        full: dict[str, Any] = {"facecolor": MUTED, "alpha": _strength(shade), "lw": 0}
        sheet.add_artist(PathPatch(box, **(full if shade else empty), **free))
    put(sheet, x - 0.08 - 5 * side - 0.08, y, "nothing", SMALL, MUTED, "right")
