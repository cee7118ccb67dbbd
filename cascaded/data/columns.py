"""Which column holds the images, which the labels, and what the classes are called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cascaded.errors import InputError

LABELS = ("label", "labels", "fine_label", "class")
LARGEST = 100_000
"""Integers above this are dates or identifiers, not the numbers of classes."""


@dataclass(frozen=True)
class Columns:
    """Names of columns; None where they are to be found, or where there is no such column."""

    image: str | None = None
    label: str | None = None
    coarse: str | None = None


def found(asked: Columns, features: Mapping[str, Any]) -> Columns:
    """The columns that were asked for, and for those that were not, the ones that can only be meant."""
    for kind, column in (("image", asked.image), ("label", asked.label), ("label", asked.coarse)):
        if column is not None and column not in features:
            raise InputError(
                f"there is no column {column!r}, there are {', '.join(features)}: name one of them with --{kind}"
            )
    image = asked.image or the_image(features)
    if not any(holds(features[image]) for holds in HOLD_IMAGES):
        raise InputError(f"column {image!r} holds {kind_of(features[image])}, no images: name another with --image")
    label = asked.label or the_label({name: feature for name, feature in features.items() if name != asked.coarse})
    for column in filter(None, (label, asked.coarse)):
        if names(features[column]) is None and kind_of(features[column]) not in ("integers", "strings"):
            held = kind_of(features[column])
            raise InputError(f"column {column!r} holds {held}, labels are integers or strings: say --label OTHER")
    return Columns(image, label, asked.coarse)


def the_image(features: Mapping[str, Any]) -> str:
    """The one column with images: declared as such, or bytes of files in one of the usual ways."""
    for holds in HOLD_IMAGES:
        fitting = [name for name, feature in features.items() if holds(feature)]
        if len(fitting) > 1:
            raise InputError(f"columns {', '.join(fitting)} all hold images: name one of them with --image")
        if fitting:
            return fitting[0]
    raise InputError(f"no column holds images, there are {', '.join(features)}: name one with --image")


def the_label(features: Mapping[str, Any]) -> str | None:
    """The one column with classes, or the one with a usual name, or none."""
    declared = [name for name, feature in features.items() if names(feature) is not None]
    if len(declared) == 1:
        return declared[0]
    usual = [name for name in LABELS if name in (declared or features)]
    if not usual and declared:
        raise InputError(f"columns {', '.join(declared)} all hold classes: name one of them with --label")
    return usual[0] if usual else None


# the library's features, known by what they look like: it takes a second to import
def names(feature: Any) -> tuple[str, ...] | None:
    """The names of the classes where a column declares them."""
    given = getattr(feature, "names", None)
    return None if given is None else tuple(given)


def kind_of(feature: Any) -> str:
    """What a column holds, in a word."""
    kind = str(getattr(feature, "dtype", type(feature).__name__))
    if kind.startswith(("int", "uint")):
        return "integers"
    return "strings" if "string" in kind else kind


HOLD_IMAGES = (
    lambda feature: type(feature).__name__ == "Image",
    lambda feature: isinstance(feature, dict) and "bytes" in feature,
    lambda feature: kind_of(feature) in ("binary", "large_binary"),
)


def numbered(values: Iterable[Any]) -> tuple[str, ...]:
    """The names of classes that a column does not declare: numbers up to the largest, or strings in order."""
    there = {value for value in values if value is not None}
    if all(isinstance(value, int) for value in there):
        largest = max(there, default=-1)
        if largest > LARGEST:
            raise InputError(f"labels go up to {largest}, which are no numbers of classes: name another with --label")
        return tuple(map(str, range(largest + 1)))
    return tuple(sorted(map(str, there)))
