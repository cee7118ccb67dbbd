"""Render a report as one HTML file that opens from disk and loads nothing from the network."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from cascaded.files import write_whole
from cascaded.report.explorer import Explorer, explorer_color, packed

FIGURES = "figures"
"""The folder of the figures' files, beside the page."""
TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = ("theme", "page", "marks", "networks", "explorer")


@dataclass(frozen=True)
class Missing:
    """Something that was not measured, and the command that measures it; "" if no command does."""

    what: str
    command: str = ""


@dataclass(frozen=True)
class PageFigure:
    """A figure with its caption; numbers and files are folded away below it.

    Attributes:
        title: A few words.
        caption: One or two sentences that say what to see.
        svg: The drawing.
        files: File names by kind: svg, pdf, png, csv.
        more: Figures with further details, folded away.
        table: Its numbers as text, folded away; the first row has the headings.
    """

    title: str
    caption: str
    svg: str
    files: Mapping[str, str]
    more: tuple[PageFigure, ...] = ()
    table: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Section:
    """A part of the page; `key` is its anchor."""

    key: str
    title: str
    lead: str
    figures: tuple[PageFigure, ...] = ()
    missing: tuple[Missing, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """Everything on the page.

    Attributes:
        title: Its heading.
        findings: What was found, in sentences made from the numbers; the first is printed large.
        context: What the findings were measured on.
        colors: The color of every network, as `#rrggbb`, in the order of the legend.
        first: The figure of the first screen.
        sections: The other figures.
        claims: The comparison with the paper: claim, statement, what, effect (from `effect`), interval_over, paper,
            verdict and command of every measurement.
        runs: The networks: `network`, `run` and further columns, the same in every row.
        explorers: Recorded activations, one set of images each.
        explorer_missing: What has to be recorded for the explorer.
        made_with: Versions by name.
    """

    title: str
    findings: tuple[str, ...] = ()
    context: str = ""
    colors: Mapping[str, str] = field(default_factory=dict)
    first: PageFigure | None = None
    sections: tuple[Section, ...] = ()
    claims: tuple[dict[str, Any], ...] = ()
    runs: tuple[dict[str, str], ...] = ()
    explorers: tuple[Explorer, ...] = ()
    explorer_missing: tuple[Missing, ...] = ()
    made_with: Mapping[str, str] = field(default_factory=dict)


def write_page(report: Report, folder: Path) -> Path:
    """Write `index.html` in a folder; it contains everything except the files that its figures link to."""
    file = folder / "index.html"
    # a name on disk may hold bytes that are not text: they become question marks
    content = render(report).encode("utf-8", "replace")
    write_whole(file, lambda part: part.write_bytes(content))
    return file


def render(report: Report) -> str:
    """The page as text; equal reports give equal pages."""
    scripts = {name: _read(f"{name}.js") for name in SCRIPTS}
    explorer = packed(report.explorers)
    colors = {name: explorer_color(own) for each in report.explorers for name, own in each.items()}
    templates = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return templates.get_template("index.html.j2").render(
        report=report,
        policy=_policy(scripts.values()),
        style=Markup(_read("style.css")),
        scripts={name: Markup(text) for name, text in scripts.items()},
        claims=[(claim, list(rows)) for claim, rows in itertools.groupby(report.claims, itemgetter("claim"))],
        beside=f"{FIGURES}/",
        inline=Markup,
        explorer=explorer,
        explorer_data=Markup(_script_data({"sets": explorer["sets"], "colors": colors})),
    )


def effect(value: float, low: float, high: float, unit: str) -> dict[str, Any] | None:
    """An effect as text and its place on a scale from -1 to 1 around zero; None if it was not measured.

    The value is such as `+12.3 points`, the interval such as `8.1 to 16.5`.
    """
    if not math.isfinite(value):
        return None
    known = math.isfinite(low) and math.isfinite(high)
    span = max(map(abs, (value, low, high) if known else (value,))) or 1.0
    digits = 1 if span >= 1 else 2 if span >= 0.1 else 3
    return {
        "value": f"{_number(value, digits, '+')} {unit}".rstrip(),
        "interval": f"{_number(low, digits)} to {_number(high, digits)}" if known else "",
        "at": value / span,
        "low": (low if known else value) / span,
        "high": (high if known else value) / span,
    }


def _number(value: float, digits: int, sign: str = "") -> str:
    text = f"{value:{sign}.0e}" if 0 < abs(value) < 0.0005 else f"{value:{sign}.{digits}f}"
    return text.replace("-", "\N{MINUS SIGN}")


def _script_data(content: Any) -> str:
    """JSON that no name can end early: in a script, only `<` is special."""
    return json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")


def _read(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _policy(scripts: Iterable[str]) -> str:
    """The content security policy: inline styles and images, and only these scripts, by digest."""
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    own = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {own}; "
        "base-uri 'none'; form-action 'none'"
    )
