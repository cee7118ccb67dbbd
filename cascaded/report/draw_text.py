"""Words in a figure: measured before they are drawn, wrapped, shortened, and never taken for anything but words.

Widths are those of DejaVu Sans, which comes with matplotlib and is wider than what pages and papers are set in: what
fits here fits there.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

from matplotlib.figure import Figure as Sheet
from matplotlib.font_manager import findfont, get_font

from cascaded.report.look import INK, TEXT

LONGEST = 400  # letters: more can be on no figure, and measuring takes time
CAPITAL = 0.72  # height of a capital, of the size


@lru_cache(maxsize=4096)
def plain(text: str) -> str:
    """A name on one line, without letters that a file cannot hold."""
    text = "".join(" " if letter.isspace() else _drawable(letter) for letter in text)
    return " ".join(text.split())


def _drawable(letter: str) -> str:
    # control letters, halves of pairs, and numbers that stand for no letter are refused by XML
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(letter) in ("Cc", "Cs", "Cn") else letter


@lru_cache(maxsize=4096)
def _advance(letter: str) -> float:
    """How far a letter moves the pen, of the size."""
    font = get_font(findfont("DejaVu Sans"))
    if not font.get_char_index(ord(letter)):
        return 1.0  # another font will have to draw it: as wide as letters get
    font.set_size(100, 72)
    return font.load_char(ord(letter)).linearHoriAdvance / 65536 / 100


def width(text: str, size: float = TEXT) -> float:
    """How wide a text is, in inches."""
    return sum(map(_advance, text)) * size / 72


def pitch(size: float = TEXT) -> float:
    """From a line of text to the next, in inches."""
    return 1.22 * size / 72


def shortened(text: str, room: float, size: float = TEXT) -> str:
    """As much of a text as there is room for. Its middle is left out: names often differ at their end."""
    text = plain(text)
    if len(text) <= LONGEST and width(text, size) <= room:
        return text
    fits, not_so = 0, min(len(text), LONGEST)
    while not_so - fits > 1:
        kept = (fits + not_so) // 2
        fits, not_so = (kept, not_so) if width(_cut(text, kept), size) <= room else (fits, kept)
    return _cut(text, fits)


def _cut(text: str, kept: int) -> str:
    """Some letters of a text, two thirds of them from its beginning."""
    head = (2 * kept + 2) // 3
    return text[:head].rstrip() + "…" + text[len(text) - (kept - head) :].lstrip()


def wrapped(text: str, room: float, size: float = TEXT, lines: int = 2) -> list[str]:
    """A text on some lines at most, broken after spaces and dashes; what does not fit is shortened."""
    text = plain(text)
    found: list[str] = []
    while text and len(found) < lines - 1 and (len(text) > LONGEST or width(text, size) > room):
        line = _first_line(text, room, size)
        if not line:
            break
        found.append(line.rstrip())
        text = text[len(line) :].lstrip()
    return [*found, shortened(text, room, size)] if text or not found else found


def _first_line(text: str, room: float, size: float) -> str:
    """As many whole pieces as fit; nothing where the first is too long."""
    line = ""
    for piece in re.findall(r"[^\s,/_-]*[\s,/_-]+|[^\s,/_-]+", text[:LONGEST]):
        if width((line + piece).rstrip(), size) > room:
            return line
        line += piece
    return line


def put(
    sheet: Sheet,
    x: float,
    y: float,
    lines: str | Sequence[str],
    size: float = TEXT,
    colour: str = INK,
    at: Literal["left", "center", "right"] = "left",
    weight: str = "normal",
) -> None:
    """Write lines of text, the middle of their block at a height. Places are in inches from the lower left corner.

    Each line is a text of its own: a page that draws them in another font still sets them flush.
    """
    lines = [lines] if isinstance(lines, str) else lines
    top = y + (len(lines) - 1) / 2 * pitch(size)
    for place, line in enumerate(lines):
        base = top - place * pitch(size) - CAPITAL / 2 * size / 72
        where: dict[str, Any] = {"transform": sheet.dpi_scale_trans, "va": "baseline", "ha": at}
        sheet.text(x, base, line, fontsize=size, color=colour, weight=weight, **where)
