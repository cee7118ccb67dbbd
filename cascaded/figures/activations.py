"""How blocks update over time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from jaxtyping import Float

from cascaded.errors import InputError
from cascaded.figures.base import Figure, cells, grid, set_format, styled
from cascaded.figures.style import CASCADED, GRID, SERIAL, text_color

SIDE_BY_SIDE = 20
"""Steps up to which two schedules have room beside each other."""


@styled()
def schedules(activations: Mapping[str, Float[np.ndarray, "steps blocks"]]) -> Figure:
    """Heat maps of blocks over steps: the fuller a cell, the closer the block is to its final activation.

    Args:
        activations: By the name of a schedule (`serial`, `cascaded`): from 0 (initial) to 1 (final).
    """
    if not activations:
        raise InputError("there are no schedules to draw: run cascaded record --activations 40")
    beside = max(map(len, activations.values())) <= SIDE_BY_SIDE
    fig, axes = grid(list(activations), 2.2, "y", columns=2 if beside else 1)
    for ax, (name, shades) in zip(axes, activations.items(), strict=True):
        color = SERIAL if name.startswith("serial") else CASCADED
        steps, blocks = shades.shape
        edges = (np.arange(steps + 1) + 0.5, np.arange(blocks + 1) + 0.5)
        ax.grid(False)  # the cells have edges
        ax.pcolormesh(*edges, cells(shades.T, color), edgecolors=GRID, linewidth=0.8)
        ax.title.set_color(text_color(color))
        ax.set(xlabel="step", ylabel="block")
        ax.spines[:].set_visible(False)
        for axis in ("x", "y"):
            set_format(ax, axis, None, whole=True, ticks=9)
    fig.data = pd.concat([_table(name, shades) for name, shades in activations.items()], ignore_index=True)
    return fig


def _table(name: str, shades: Float[np.ndarray, "steps blocks"]) -> pd.DataFrame:
    step, block = np.indices(shades.shape) + 1
    columns = {"step": step.ravel(), "block": block.ravel(), "value": np.asarray(shades).ravel()}
    return pd.DataFrame({"schedule": name, **columns})
