"""Which column contains the images, which the labels; the names of the classes, and which of them are wanted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from cascaded.errors import InputError

LABELS = ("label", "labels", "fine_label", "class")
LARGEST = 100_000
"""Integers above this are dates or identifiers, not class numbers."""
WORDNET = re.compile(r"(n\d{8})(?: (.+))?")


@dataclass(frozen=True)
class Columns:
    """Names of columns; None where a column is to be detected, or where there is none."""

    image: str | None = None
    label: str | None = None
    coarse: str | None = None


def refuse_columns(reason: str, given: Columns) -> None:
    """Refuse columns of data that has none."""
    for kind, column in (("image", given.image), ("label", given.label)):
        if column is not None:
            raise InputError(f"{reason} and has no column {column!r}: leave --{kind}-column out")


def find_columns(given: Columns, features: Mapping[str, Any]) -> Columns:
    """The given columns; a column that is not given is detected if there is only one candidate."""
    others = {name: feature for name, feature in features.items() if name != given.coarse}
    columns = Columns(given.image or _image_column(features), given.label or _label_column(others), given.coarse)
    for kind, column in (("image", columns.image), ("label", columns.label), ("label", columns.coarse)):
        if column is None:
            continue
        fix = f"choose one with --{kind}-column"
        if column not in features:
            raise InputError(f"there is no column {column!r}, there are {', '.join(features)}: {fix}")
        if not (_is_image if kind == "image" else _is_label)(features[column]):
            needed = "no images" if kind == "image" else "labels are integers or strings"
            raise InputError(f"column {column!r} contains {_kind(features[column])}, {needed}: {fix}")
    return columns


def _image_column(features: Mapping[str, Any]) -> str:
    """The only column with images: declared as images, or the bytes of image files."""
    for is_image in IMAGE_KINDS:
        candidates = [name for name, feature in features.items() if is_image(feature)]
        if len(candidates) > 1:
            raise InputError(f"columns {', '.join(candidates)} all contain images: choose one with --image-column")
        if candidates:
            return candidates[0]
    raise InputError(f"no column contains images, there are {', '.join(features)}: choose one with --image-column")


def _label_column(features: Mapping[str, Any]) -> str | None:
    """The only column with classes, or the one with a usual name, or none."""
    declared = [name for name, feature in features.items() if class_names(feature) is not None]
    usual = [name for name in LABELS if name in (declared or features)]
    if len(declared) > 1 and not usual:
        raise InputError(f"columns {', '.join(declared)} all contain classes: choose one with --label-column")
    return declared[0] if len(declared) == 1 else next(iter(usual), None)


# features of `datasets`, recognized without importing it, which takes a second
def class_names(feature: Any) -> tuple[str, ...] | None:
    """The class names that a column declares."""
    names = getattr(feature, "names", None)
    return None if names is None else tuple(names)


def _kind(feature: Any) -> str:
    kind = str(getattr(feature, "dtype", type(feature).__name__))
    return "integers" if kind.startswith(("int", "uint")) else "strings" if "string" in kind else kind


IMAGE_KINDS = (
    lambda feature: type(feature).__name__ == "Image",
    lambda feature: isinstance(feature, dict) and "bytes" in feature,
    lambda feature: _kind(feature) in ("binary", "large_binary"),
)


def _is_image(feature: Any) -> bool:
    return any(is_image(feature) for is_image in IMAGE_KINDS)


def _is_label(feature: Any) -> bool:
    return class_names(feature) is not None or _kind(feature) in ("integers", "strings")


def names_of_values(values: Iterable[Any]) -> tuple[str, ...]:
    """Class names of a column that declares none: the numbers up to the largest, or the strings in order."""
    distinct = {value for value in values if value is not None}
    if not all(isinstance(value, int) for value in distinct):
        return tuple(sorted(map(str, distinct)))
    if (largest := max(distinct, default=-1)) > LARGEST:
        raise InputError(f"labels go up to {largest}, too large for class numbers: choose another with --label-column")
    return tuple(map(str, range(largest + 1)))


def select_classes(wanted: Sequence[str], classes: Sequence[str]) -> list[int]:
    """The numbers of the wanted classes, in their order.

    A class can be given by its name, by its first synonym ("tench" for "tench, Tinca tinca"), by its WordNet id, or by
    both as "n01440764 tench".
    """
    numbers = {_first(name): number for number, name in reversed(list(enumerate(classes)))}
    numbers |= {name: number for number, name in enumerate(classes)}
    selected = []
    for name in wanted:
        number = next((numbers[alias] for alias in _aliases(name) if alias in numbers), None)
        if number is None:
            near = get_close_matches(name, numbers, n=1, cutoff=0.0)
            fix = f"did you mean {near[0]!r}?" if near else "leave --classes out"
            raise InputError(f"there is no class {name!r} among the {len(classes)} classes: {fix}")
        if number in selected:
            raise InputError(f"class {classes[number]!r} is given twice: give each class once")
        selected.append(number)
    return selected


def most_numerous(count: int, word: str, classes: Sequence[str], labels: Iterable[int]) -> tuple[str, ...]:
    """The classes with the most labels of those whose name contains a word, in their order; of equals the first."""
    named = [number for number, name in enumerate(classes) if word in name.casefold()]
    if len(named) < count:
        raise InputError(
            f"{len(named)} of the {len(classes)} classes have {word!r} in their name, {count} are needed: give the "
            f"classes that you want with --classes"
        )
    images = Counter(labels)
    return tuple(classes[number] for number in sorted(sorted(named, key=lambda number: -images[number])[:count]))


def _aliases(name: str) -> list[str]:
    match = WORDNET.fullmatch(name)
    parts = [part for part in (match.groups() if match else ()) if part]
    return [name, *parts, *(_first(part) for part in (*parts, name))]


def _first(name: str) -> str:
    return name.split(",")[0].strip()
