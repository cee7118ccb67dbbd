"""Counts in printed lines."""

from __future__ import annotations


def plural(count: int, noun: str) -> str:
    """A count with its noun: 1 image, 1,200 images, 2 classes."""
    ending = "" if count == 1 else "es" if noun.endswith("s") else "s"
    return f"{count:,} {noun}{ending}"
