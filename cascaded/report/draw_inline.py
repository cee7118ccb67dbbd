"""A drawing made fit to stand in a page: without what only files need, in the page's own ink and font."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from cascaded.report.draw_text import plain
from cascaded.report.look import GRID, INK, MUTED, PAPER

SVG = "http://www.w3.org/2000/svg"
GROUND = "ground"
"""The id of the background, which a page does without."""

INKS = {INK: "var(--ink)", MUTED: "var(--muted)", GRID: "var(--grid)", PAPER: "var(--paper)"}
FINE = re.compile(r"-?\d+\.\d{3,}")


def inline(svg: str, key: str, title: str, words: Mapping[str, str]) -> str:
    """SVG text for the inside of an HTML page.

    Args:
        svg: A file as matplotlib writes it.
        key: What ids begin with, so that several drawings can stand on one page.
        title: What a reader who cannot see it is told.
        words: Colours of words, and the colour that each stands for: the page mixes that with its own ink.
    """
    root = ElementTree.fromstring(svg)
    kept = {"viewBox": root.get("viewBox", ""), "xmlns": SVG, "role": "img", "aria-label": plain(title)}
    # what matplotlib says in a style sheet, which on a page would hold for everything else as well
    kept |= {"stroke-linejoin": "round", "stroke-linecap": "butt"}
    used = {name for element in root.iter() for name in _references(element)}
    _strip(root)
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{SVG}}}")
        element.tail = None
        if element.tag != "text":
            element.text = None
        _dress(element, key, used, words)
    _flatten(root)
    root.attrib.clear()
    root.attrib.update(kept)
    return ElementTree.tostring(root, encoding="unicode")


def _references(element: Element) -> list[str]:
    """Ids that an element needs."""
    said = (value for name, value in element.attrib.items() if name.endswith(("href", "style", "clip-path")))
    return [found for value in said if "data:" not in value for found in re.findall(r"(?:url\(#|^#)([\w.-]+)", value)]


def _strip(parent: Element) -> None:
    """Leave out what tells where a file is from, style sheets, and the background."""
    for child in list(parent):
        if child.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}style") or child.get("id") == GROUND:
            parent.remove(child)
        else:
            _strip(child)


def _dress(element: Element, key: str, used: set[str], words: Mapping[str, str]) -> None:
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
            element.set("style", _styled(value, key, words if element.tag == "text" else {}))
        elif bare == "clip-path":
            element.set("clip-path", value.replace("url(#", f"url(#{key}-"))
        elif bare in ("d", "x", "y"):
            element.set(bare, FINE.sub(_short, value))
        elif not (bare == "transform" and value.startswith("rotate(-0 ")):
            element.set(bare, value)


def _styled(style: str, key: str, words: Mapping[str, str]) -> str:
    """A style in the page's ink and font; colours of words keep their contrast on any paper."""
    said = [each.strip() for each in style.split(";") if each.strip() and not each.strip().startswith("font-family")]
    said = [re.sub(r"^font: (\d+ )?([\d.]+px).*", _font, each) for each in said]
    text = ";".join(each.replace(": ", ":") for each in said).replace("url(#", f"url(#{key}-")
    for colour, own in words.items():
        # the first for browsers that cannot mix
        text = text.replace(f"fill:{colour}", f"fill:{own};fill:color-mix(in srgb,{own} 67%,var(--ink))")
    for ink, variable in INKS.items():
        text = text.replace(ink, variable)
    return text


def _font(said: re.Match[str]) -> str:
    weight = f"font-weight: {said[1].strip()};" if said[1] else ""
    return f"{weight}font-size: {said[2]}"


def _short(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _flatten(parent: Element) -> None:
    """Put the content of groups that say nothing in their place."""
    children: list[Element] = []
    for child in parent:
        _flatten(child)
        if child.tag in ("g", "defs") and not child.attrib and (child.tag == "g" or not len(child)):
            children += list(child)
        else:
            children.append(child)
    parent[:] = children
