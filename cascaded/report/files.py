"""Figures on disk: each as SVG, PDF and PNG, with its numbers as CSV, and as text for a page."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cascaded.errors import InputError
from cascaded.exhibits.kinds import Cell, Figure, Table
from cascaded.files import write_whole
from cascaded.report.look import CASCADED, SERIAL, STYLE, deep

if TYPE_CHECKING:  # matplotlib is imported when a figure is drawn
    from matplotlib.figure import Figure as Sheet

DPI = 200
# no dates and no versions: the same figure is the same file
METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}


@dataclass(frozen=True)
class Drawn:
    """A figure that was drawn and written.

    Attributes:
        key: The name of its files.
        title: What one sees, in a few words.
        caption: How to read it.
        svg: The drawing for the inside of an HTML page. It takes its ink from `--ink`, `--muted`, `--grid` and
            `--paper`, its font and its width from what is around it.
        files: Names of its files in their folder, by kind: svg, pdf, png and csv.
    """

    key: str
    title: str
    caption: str
    svg: str
    files: dict[str, str] = field(default_factory=dict)


def write_figure(
    figure: Figure, folder: Path, colours: Mapping[str, str], kinds: Sequence[str] = ("svg", "pdf", "png")
) -> Drawn:
    """Draw a figure and write its files, each whole or not at all, and its numbers as CSV.

    Args:
        figure: What to draw.
        folder: Where its files go; made where there is none.
        colours: A colour for every model, from `look.colours`.
        kinds: What is drawn, svg among it.
    """
    import matplotlib as mpl

    from cascaded.report.draw import draw
    from cascaded.report.draw_inline import GROUND, inline

    if not re.fullmatch(r"[A-Za-z0-9-]+", figure.key):
        raise InputError(f"figure key {figure.key!r} names files: give letters, digits and dashes alone")
    contents = {"csv": csv_of(figure.body.table())}
    with mpl.rc_context(STYLE), warnings.catch_warnings():
        # letters that the font lacks are boxes in pictures; in a page the reader's own fonts draw them
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        sheet = draw(figure, colours)
        sheet.patch.set_gid(GROUND)
        contents |= {kind: _saved(sheet, kind) for kind in kinds}
    for kind, content in contents.items():
        write_whole(folder / f"{figure.key}.{kind}", lambda part, content=content: part.write_bytes(content))
    words = {deep(colour): colour for colour in (*colours.values(), SERIAL, CASCADED)}
    svg = inline(contents["svg"].decode(), figure.key, figure.title, words)
    names = {kind: f"{figure.key}.{kind}" for kind in (*kinds, "csv")}
    return Drawn(figure.key, figure.title, figure.caption, svg, names)


def _saved(sheet: Sheet, kind: str) -> bytes:
    file = io.BytesIO()
    sheet.savefig(file, format=kind, dpi=DPI if kind == "png" else 72, metadata=METADATA[kind])
    return file.getvalue()


def csv_of(table: Table) -> bytes:
    """A table as spreadsheets and programs read it, with all places of every number."""
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    heads, rows = table
    writer.writerow([_cell(head) for head in heads])
    writer.writerows([_cell(cell) for cell in row] for row in rows)
    return file.getvalue().encode("utf-8", "backslashreplace")


def _cell(cell: Cell) -> Cell:
    """A cell as it is, but for texts that a spreadsheet would run: they get a quote in front."""
    if isinstance(cell, str):
        return f"'{cell}" if cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell
    return float(cell) if isinstance(cell, float) else cell  # one of numpy's would be written with its type
