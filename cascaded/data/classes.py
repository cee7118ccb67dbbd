"""Which classes are wanted, by any of the names they go by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

from cascaded.errors import InputError

WORDNET = re.compile(r"(n\d{8})(?: (.+))?")


def chosen(wanted: Sequence[str], classes: Sequence[str]) -> list[int]:
    """The numbers of the wanted classes, in the order in which they are wanted.

    A class goes by its name, by the first of its synonyms ("tench" for "tench, Tinca tinca"), or by its WordNet id;
    "n01440764 tench" goes by both, whichever the data use.
    """
    numbers = {first(name): number for number, name in reversed(list(enumerate(classes)))}
    numbers |= {name: number for number, name in enumerate(classes)}
    found = []
    for each in wanted:
        fitting = [numbers[name] for name in called(each) if name in numbers]
        if not fitting:
            near = get_close_matches(each, numbers, n=1, cutoff=0.0)
            way = f"say {near[0]!r}?" if near else "leave --classes out"
            raise InputError(f"there is no class {each!r} among the {len(classes)} that there are: {way}")
        if fitting[0] in found:
            raise InputError(f"class {classes[fitting[0]]!r} is asked for twice: name each class once")
        found.append(fitting[0])
    return found


def called(name: str) -> list[str]:
    """All that a wanted class may be called."""
    both = WORDNET.fullmatch(name)
    parts = [part for part in (both.groups() if both else ()) if part]
    return [name, *parts, *(first(part) for part in (*parts, name))]


def first(name: str) -> str:
    """The first of some synonyms."""
    return name.split(",")[0].strip()
