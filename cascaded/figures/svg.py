"""Figures inside an HTML page: SVG text in the page's own colors and font, for light and dark mode."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from matplotlib.colors import to_hex
from matplotlib.lines import Line2D

from cascaded.figures.base import Figure
from cascaded.figures.files import rendered
from cascaded.figures.style import CASCADED, GRID, INK, MUTED, PAPER, SERIAL, text_color

SVG = "http://www.w3.org/2000/svg"
BACKGROUND = "background"
INKS = {INK: "var(--ink)", MUTED: "var(--muted)", GRID: "var(--grid)", PAPER: "var(--paper)"}
LONG = re.compile(r"-?\d+\.\d{3,}")


def inline(fig: Figure, key: str, title: str = "") -> str:
    """SVG text for the inside of an HTML page; colors are the CSS variables --ink, --muted, --grid and --paper.

    Args:
        fig: The figure.
        key: What its ids begin with, so that several figures can stand on one page: letters, digits and dashes.
        title: A text for readers who cannot see the figure.
    """
    fig.patch.set_gid(BACKGROUND)
    # XML has no control characters
    svg = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "", rendered(fig, "svg").decode())
    root = ElementTree.fromstring(svg)
    kept = {"viewBox": root.get("viewBox", ""), "xmlns": SVG, "role": "img", "aria-label": title}
    # what matplotlib writes in a style sheet, which would apply to the whole page
    kept |= {"stroke-linejoin": "round", "stroke-linecap": "butt"}
    used = {name for element in root.iter() for name in _references(element)}
    texts = _text_colors(fig)
    _strip(root)
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{SVG}}}")
        element.tail = None
        if element.tag not in ("text", "tspan"):
            element.text = None
        _rewrite(element, key, used, texts)
    root.attrib.clear()
    root.attrib.update(kept)
    return ElementTree.tostring(root, encoding="unicode")


def _text_colors(fig: Figure) -> dict[str, str]:
    """The colors of words, and the color of the line that each belongs to: the page mixes that with its own ink."""
    colors = {to_hex(line.get_color()) for line in fig.findobj(Line2D) if isinstance(line, Line2D)}
    return {text_color(color): color for color in {*colors, CASCADED, SERIAL} - set(INKS)}


def _references(element: Element) -> list[str]:
    """Ids that an element refers to."""
    values = (value for name, value in element.attrib.items() if name.endswith(("href", "style", "clip-path")))
    return [name for value in values if "data:" not in value for name in re.findall(r"(?:url\(#|^#)([\w.-]+)", value)]


def _strip(parent: Element) -> None:
    """Remove metadata, style sheets and the background."""
    for child in list(parent):
        if child.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}style") or child.get("id") == BACKGROUND:
            parent.remove(child)
        else:
            _strip(child)


def _rewrite(element: Element, key: str, used: set[str], texts: Mapping[str, str]) -> None:
    """Rewrite the attributes of one element."""
    for name, value in list(element.attrib.items()):
        del element.attrib[name]
        bare = name.rpartition("}")[2]
        if bare == "id":
            if value in used:
                element.set("id", f"{key}-{value}")
        elif bare == "href":
            element.set("href", f"#{key}-{value[1:]}" if value.startswith("#") else value)
        elif bare == "style":
            element.set("style", _styled(value, key, texts if element.tag == "text" else {}))
        elif bare == "clip-path":
            element.set("clip-path", value.replace("url(#", f"url(#{key}-"))
        elif bare in ("d", "x", "y"):
            element.set(bare, LONG.sub(_short, value))
        elif not (bare == "transform" and value.startswith("rotate(-0 ")):
            element.set(bare, value)


def _styled(style: str, key: str, texts: Mapping[str, str]) -> str:
    """A style in the page's colors and font; colors of words keep their contrast on any background."""
    parts = [each.strip() for each in style.split(";") if each.strip() and not each.strip().startswith("font-family")]
    parts = [re.sub(r"^font: (?:(\d+) )?([\d.]+px).*", _font, each) for each in parts]
    text = ";".join(each.replace(": ", ":") for each in parts).replace("url(#", f"url(#{key}-")
    for color, own in texts.items():
        # the first for browsers that cannot mix
        text = text.replace(f"fill:{color}", f"fill:{own};fill:color-mix(in srgb,{own} 67%,var(--ink))")
    for ink, variable in INKS.items():
        text = text.replace(ink, variable)
    return text


def _font(found: re.Match[str]) -> str:
    """Weight and size; the family is the page's."""
    return f"font-weight:{found[1] or 400};font-size:{found[2]}"


def _short(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
