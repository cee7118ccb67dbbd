"""The fastest and the slowest images of each network, as figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from cascaded.analysis.latency import EXTREMES
from cascaded.figures.images import Row, gallery
from cascaded.report.page import PageFigure
from cascaded.report.sections import CONTENT, page_figure
from cascaded.results.galleries import Gallery, read_galleries
from cascaded.results.names import NAMES, display_name


def gallery_figures(folders: Sequence[Path], out: Path) -> list[PageFigure]:
    """One figure with the images of the first network; those of the other networks are folded away below it."""
    found: dict[str, Gallery] = {}
    for each in sorted((each for folder in folders for each in _finest(read_galleries(folder))), key=_order):
        found.setdefault(display_name(each.keys["method"], each.keys["lam"], each.keys["schedule"]), each)
    made = [_figure(name, each, number, out) for number, (name, each) in enumerate(found.items(), 1)]
    return [replace(made[0], more=tuple(made[1:]))] if made else []


def _finest(galleries: Sequence[Gallery]) -> list[Gallery]:
    """Those in fine time where there are some: with few steps many images share a latency. Test images come first."""
    fine = [each for each in galleries if each.keys["time"] == "fine"] or list(galleries)
    return sorted(fine, key=lambda each: each.keys["split"] == "validation")[:1]


def _order(own: Gallery) -> tuple[int, float]:
    """As figures order networks: by method, then by lambda."""
    return list(NAMES).index(own.keys["method"]), own.keys["lam"] or 0.0


def _figure(name: str, own: Gallery, number: int, out: Path) -> PageFigure:
    rows: dict[str, Row] = {}
    for row, label in enumerate(EXTREMES):
        if len(some := np.flatnonzero(own.row == row)):
            rows[label] = own.images[some], _captions(own.labels[some], own.steps[some], own.classes)
    spec = CONTENT.gallery
    key = spec.key if number == 1 else f"{spec.key}-{number}"
    caption = f"{spec.caption}{' Steps are those of fine time.' if own.keys['time'] == 'fine' else ''}"
    return page_figure(gallery(rows), replace(spec, key=key, title=f"{spec.title}: {name}", caption=caption), out)


def _captions(labels: np.ndarray, steps: np.ndarray, classes: Sequence[str]) -> list[str]:
    when = (f"{step:g}" if np.isfinite(step) else "never" for step in steps)
    return [f"{classes[label]}, {step}" for label, step in zip(labels, when, strict=True)]
