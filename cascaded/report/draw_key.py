"""A key: samples of lines and marks with what they stand for, in rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure as Sheet
from matplotlib.lines import Line2D

from cascaded.report.draw_text import pitch, put, shortened, width
from cascaded.report.look import INK, PAPER, SMALL, deep

LINE, MARK, GAP = 0.26, 0.12, 0.16  # inches: a sample of a line, of a mark, between entries


@dataclass(frozen=True)
class Sample:
    """One entry of a key.

    Attributes:
        text: What it stands for.
        colour: Of the sample; its name has a deeper one.
        dash: How its line is drawn; None where there is no line.
        mark: Its mark; empty where there is none.
        fill: How much of the mark is filled.
    """

    text: str
    colour: str = INK
    dash: Any = None
    mark: str = ""
    fill: Any = "full"

    @property
    def lead(self) -> float:
        """Inches from where it begins to its name."""
        return (MARK if self.dash is None else LINE) + 0.06


def marked(colour: str, mark: str, fill: Any, size: float = 5.0) -> dict[str, Any]:
    """How a mark is drawn: open ones hide what is behind them."""
    face = PAPER if fill == "none" else colour
    half = {"fillstyle": "left", "markerfacecoloralt": PAPER} if fill == "left" else {}
    edge = {"markeredgecolor": colour, "markeredgewidth": 1.1}
    return {"marker": mark, "markersize": size, "markerfacecolor": face, **edge, **half}


def arranged(samples: Sequence[Sample], room: float) -> list[list[tuple[float, str, Sample]]]:
    """Rows of entries: where each begins and what is written. One row if that will do, columns otherwise."""
    if not samples:
        return []
    longest = room / 2 - max(sample.lead for sample in samples) - GAP
    texts = [shortened(sample.text, longest, SMALL) for sample in samples]
    sizes = [sample.lead + width(text, SMALL) + GAP for sample, text in zip(samples, texts, strict=True)]
    if sum(sizes) - GAP <= room:
        begins = [sum(sizes[:place]) for place in range(len(sizes))]
        return [list(zip(begins, texts, samples, strict=True))]
    columns = max(1, int((room + GAP) / max(sizes)))
    column = max(max(sizes), (room + GAP) / columns if columns < 3 else max(sizes))
    cells = [(place % columns * column, *pair) for place, pair in enumerate(zip(texts, samples, strict=True))]
    return [cells[begin : begin + columns] for begin in range(0, len(cells), columns)]


def key_height(samples: Sequence[Sample], room: float) -> float:
    """Inches that a key takes up."""
    return len(arranged(samples, room)) * 1.15 * pitch(SMALL)


def put_key(sheet: Sheet, samples: Sequence[Sample], left: float, top: float, room: float) -> None:
    """Draw a key below a height."""
    for number, row in enumerate(arranged(samples, room)):
        y = top - (number + 0.5) * 1.15 * pitch(SMALL)
        for begin, text, sample in row:
            put_sample(sheet, sample, left + begin, y)
            put(sheet, left + begin + sample.lead, y, text, SMALL, deep(sample.colour))


def put_sample(sheet: Sheet, sample: Sample, x: float, y: float) -> None:
    """Draw what an entry stands for."""
    where: dict[str, Any] = {"transform": sheet.dpi_scale_trans}
    if sample.dash is not None:
        ends = ([x, x + LINE], [y, y])
        sheet.add_artist(Line2D(*ends, color=sample.colour, lw=1.5, ls=sample.dash, solid_capstyle="butt", **where))
    if sample.mark:
        middle = x + (MARK if sample.dash is None else LINE) / 2
        sheet.add_artist(Line2D([middle], [y], ls="", **marked(sample.colour, sample.mark, sample.fill), **where))
