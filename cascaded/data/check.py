"""Reads a data set whole and lists every problem, not only the first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console

from cascaded.data.catalogue import Source
from cascaded.data.collect import read_all
from cascaded.data.columns import Columns
from cascaded.data.findings import SUGGESTED, Findings, Size, findings, suggested_size
from cascaded.data.show import class_table
from cascaded.data.sources import described, placed, splits_at
from cascaded.errors import InputError
from cascaded.progress import counted, say


def check(
    name: str,
    split: str | None,
    console: Console,
    *,
    size: int | None = None,
    image: str | None = None,
    label: str | None = None,
    classes: Sequence[str] = (),
) -> tuple[bool, int | None]:
    """Read all images of a split, or of all splits, and print every problem; raises `InputError` if there are any.

    Returns whether the images have labels, and the `--size` to train them with (None: as they are).
    """
    source = described(name, size, image, label, classes or None)
    read: dict[str, Findings] = {}
    for each in [split] if split else splits_at(source):
        read[each] = found = read_split(source, each)
        found.suggestion = next((suggested_size(other.sizes) for other in read.values() if other.sizes), None)
        list_problems(f"{name} {each}", found, console)
    for each, found in read.items():
        summarise(each if len(read) > 1 else "", found, console)
    problems = sum(len(found.all()) for found in read.values())
    sizes = sum((found.sizes for found in read.values()), Counter[Size]())
    if not problems and len(sizes) > 1 and source.size is None:
        raise InputError(f"the splits of {name} have different sizes: use --size {suggested_size(sizes)}")
    if problems:
        where, them = f"{name} {split}" if split else name, "it" if problems == 1 else "them"
        raise InputError(f"{where} has {counted(problems, 'problem')}, listed above: correct {them}, then check again")
    say(console, "no problems")
    return any(found.table.classes for found in read.values()), size or size_to_use(source, sizes)


def read_split(source: Source, split: str) -> Findings:
    """What is wrong with a split. Images are decoded in their own size, to tell which sizes there are."""
    table = placed(source, split).open(Columns(source.image, source.label, source.coarse))
    found = findings(table, source.classes, split, source.size)
    for _ in read_all(table, replace(source, size=None), found):
        pass
    return found


def size_to_use(source: Source, sizes: Counter[Size]) -> int | None:
    """The `--size` for training on images that all have one size: None unless they are large."""
    large = max(max(size) for size in sizes) > max(SUGGESTED)
    return suggested_size(sizes) if source.size is None and large else None


def list_problems(what: str, found: Findings, console: Console) -> None:
    """Print all problems of a split."""
    problems = found.all()
    some = f", {counted(len(problems), 'problem')}:" if problems else ""
    say(console, f"{what}: {counted(found.labels.total(), 'image')}{some}")
    for problem in problems:
        say(console, f"  {problem}")


def summarise(split: str, found: Findings, console: Console) -> None:
    """Print the sizes and the classes of a split."""
    if found.sizes:
        say(console, f"{split} {size_line(found.sizes)}".strip())
    if found.wanted is None and found.table.classes:
        numbers = range(len(found.table.classes))
        class_table("class", [found.labels[number] for number in numbers], found.table.classes, console)


def size_line(sizes: Counter[Size]) -> str:
    """The sizes of all images in one line."""
    (common, times), *others = sizes.most_common()
    if not others:
        return f"size: {pixels(common)}"
    smallest, largest = (pick(sizes, key=lambda size: (size[0] * size[1], size)) for pick in (min, max))
    return (
        f"{len(sizes):,} sizes: smallest {pixels(smallest)}, largest {pixels(largest)}, most common {pixels(common)} "
        f"({counted(times, 'image')})"
    )


def pixels(size: Size) -> str:
    """Width and height."""
    return f"{size[0]} x {size[1]} pixels"
