"""The page: all of an exhibition in one file that opens from disk and asks the network for nothing."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cascaded.errors import InputError
from cascaded.exhibits.page import ClaimLine, Exhibition
from cascaded.files import write_whole
from cascaded.report.explorer import packed
from cascaded.report.files import Drawn

if TYPE_CHECKING:  # Jinja2 is imported when a page is written
    from jinja2 import Template

TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = ("theme", "page", "marks", "film", "explorer")


@dataclass(frozen=True)
class Effect:
    """A measured effect in words, and where it lies on a scale from -1 to 1 around zero."""

    value: str
    interval: str
    at: float
    low: float
    high: float


def write_page(
    exhibition: Exhibition,
    drawn: Mapping[str, Drawn],
    colours: Mapping[str, str],
    folder: Path,
    figures: str = "figures",
) -> Path:
    """Write `index.html`, which holds everything but the files that its figures are linked to.

    Args:
        exhibition: What is shown.
        drawn: Its figures, by key.
        colours: Of every model, as `#rrggbb`.
        folder: Where the page is to be.
        figures: Where the figures' files are, as seen from there.

    Returns:
        The page.
    """
    file = folder / "index.html"
    # a name on disk may hold bytes that are no text: they are shown as question marks
    content = page(exhibition, drawn, colours, figures).encode("utf-8", "replace")
    write_whole(file, lambda part: part.write_bytes(content))
    return file


def page(
    exhibition: Exhibition, drawn: Mapping[str, Drawn], colours: Mapping[str, str], figures: str = "figures"
) -> str:
    """The page as text; arguments as for `write_page`. The same exhibition makes the same page."""
    from markupsafe import Markup

    scripts = {name: _own(f"{name}.js") for name in SCRIPTS}
    explorer = packed(exhibition.explorers)
    chosen = [[_found(drawn, figure.key) for figure in section.figures] for section in exhibition.sections]
    return _template().render(
        show=exhibition,
        policy=_policy(scripts.values()),
        style=Markup(_own("style.css")),
        scripts={name: Markup(text) for name, text in scripts.items()},
        colours=colours,
        claims=_by_claim(exhibition.claims),
        effect=effect,
        sections=list(zip(exhibition.sections, chosen, strict=True)),
        beside=f"{figures}/" if figures else "",
        inline=Markup,
        explorer=explorer,
        explorer_data=Markup(_script_data({"sets": explorer["sets"], "colours": dict(colours)})),
    )


def effect(line: ClaimLine) -> Effect | None:
    """What a claim's effect is in words: `+12.3 points`, `8.1 to 16.5`; None where it was not measured."""
    known = [each for each in (line.effect, line.low, line.high) if each is not None and math.isfinite(each)]
    if line.effect is None or not math.isfinite(line.effect):
        return None
    span = max(map(abs, known)) or 1.0
    digits = 1 if span >= 1 else 2 if span >= 0.1 else 3
    low, high = (line.low, line.high) if len(known) == 3 else (None, None)
    return Effect(
        value=_figure(line.effect, digits, "+") + f" {line.unit}",
        interval="" if low is None or high is None else f"{_figure(low, digits)} to {_figure(high, digits)}",
        at=line.effect / span,
        low=(line.effect if low is None else low) / span,
        high=(line.effect if high is None else high) / span,
    )


def _figure(value: float, digits: int, sign: str = "") -> str:
    return f"{value:{sign}.{digits}f}".replace("-", "\N{MINUS SIGN}")


def _by_claim(lines: Sequence[ClaimLine]) -> list[tuple[str, list[ClaimLine]]]:
    return [(claim, list(group)) for claim, group in itertools.groupby(lines, key=lambda line: line.claim)]


def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    templates = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return templates.get_template("index.html.j2")


def _found(drawn: Mapping[str, Drawn], key: str) -> Drawn:
    if key not in drawn:
        raise InputError(f"figure {key} is in the exhibition and not among the {len(drawn)} drawn ones: draw it first")
    return drawn[key]


def _script_data(content: Any) -> str:
    """JSON that no name can end early: in a script, `<` alone is special."""
    return json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")


def _own(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _policy(scripts: Iterable[str]) -> str:
    """What the page may do: show itself and run its own scripts, which are known by their digests."""
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    own = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {own}; "
        "base-uri 'none'; form-action 'none'"
    )
