"""What a set of images looks like: counts as tables, images on a contact sheet."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

import torch
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from torch import Generator, Tensor

from cascaded.data.cache import cache_folder
from cascaded.data.images import Images
from cascaded.data.noise import NOISES
from cascaded.data.sheet import contact_sheet
from cascaded.data.sources import SOURCES, Source, local_splits
from cascaded.data.split import limit
from cascaded.progress import counted

if TYPE_CHECKING:
    from PIL.Image import Image

COLUMNS = 10
"""Images in a row of a sheet."""

ROWS = 40
"""Classes on a sheet or in a table; of more, so many are drawn that it stays readable."""


def catalogue() -> Table:
    """Every data set with a name, and where it would come from."""
    table = Table(box=None, header_style="bold")
    for heading in ("name", "what it is", "splits", "from"):
        table.add_column(heading)
    for source in SOURCES.values():
        here = local_splits(source)
        splits = dict.fromkeys([*source.splits, *here])
        table.add_row(source.name, source.about, " ".join(splits), escape(whence(source, list(here))))
    return table


def whence(source: Source, here: list[str]) -> str:
    """Where a source would come from."""
    if source.hub is None:
        return "embedded"
    places = [f"$CASCADED_DATA/{source.folder or source.name} ({' '.join(here)})"] if here else []
    cached = sorted(cache_folder().glob(f"{source.name}-*-*.safetensors"))
    splits = {file.stem.removeprefix(f"{source.name}-").rsplit("-", 1)[0] for file in cached} & {*source.splits, *here}
    if splits:
        places.append(f"cached ({' '.join(sorted(splits))})")
    return ", ".join(places) or f"hub, {source.hub}"


def describe(images: Images, console: Console) -> None:
    """How many, how large, of which classes, and what to normalise with."""
    items, channels, height, width = images.images.shape
    kind = "grey" if channels == 1 else "colour"
    console.print(f"{escape(images.name)} {images.split}: {counted(items, f'{kind} image')}, {width} x {height} pixels")
    mean, std = (" ".join(f"{value:.4f}" for value in values) for values in images.statistics())
    console.print(f"mean {mean}, standard deviation {std}, of values in 0..1")
    if not images.classes:
        console.print("no labels")
    if images.classes:
        class_table("class", counts(images.labels, images.classes), images.classes, console)
    if images.coarse is not None:
        class_table("coarser class", counts(images.coarse, images.coarse_classes), images.coarse_classes, console)


def counts(labels: Tensor, classes: Sequence[str]) -> list[int]:
    """Images of each class."""
    return labels.bincount(minlength=len(classes)).tolist()


def class_table(what: str, counts: list[int], classes: Sequence[str], console: Console) -> None:
    """Images of each class, in a sentence and one by one; of many classes the smallest and the largest."""
    equal = min(counts) == max(counts)
    of = "of" if equal else f"of {min(counts):,} to"
    middle = "" if equal else f", median {median(counts):,.0f}"
    console.print(f"{counted(len(classes), what)} {of} {counted(max(counts), 'image')}{middle}")
    table = Table(box=None, header_style="bold")
    for heading in ("number", "name", "images"):
        table.add_column(heading, justify="left" if heading == "name" else "right")
    rows = list(enumerate(zip(classes, counts, strict=True)))
    if len(rows) > ROWS:
        few = sorted(rows, key=lambda row: row[1][1])
        rows = sorted([*few[: ROWS // 2], *few[-ROWS // 2 :]])
        console.print(f"the {ROWS // 2} smallest and the {ROWS // 2} largest:")
    for number, (name, count) in rows:
        table.add_row(str(number), escape(name), f"{count:,}")
    console.print(table)


def class_sheet(images: Images, seed: int) -> Image:
    """Some images of each class, a class a row."""
    generator = Generator().manual_seed(seed)
    if not images.classes:
        some = torch.randperm(len(images), generator=generator)[: COLUMNS * COLUMNS]
        return contact_sheet([("", row) for row in images.images[some].split(COLUMNS)])
    numbers = torch.linspace(0, len(images.classes) - 1, min(ROWS, len(images.classes))).round().long().tolist()
    rows = []
    for number in numbers:
        there = (images.labels == number).nonzero().flatten()
        some = there[torch.randperm(len(there), generator=generator)[:COLUMNS]]
        if len(some):
            rows.append((images.classes[number].split(",")[0], images.images[some]))
    return contact_sheet(rows)


def noise_sheet(images: Images, seed: int) -> Image:
    """Two images under every noise, each over some steps: a row a noise, as a network sees it over time."""
    two = limit(images, min(2, len(images)), seed)
    clean = two.images.float() / 255
    steps = COLUMNS // len(two)
    rows = [("clean", two.images.repeat_interleave(steps, 0))]
    for name, noise in NOISES.items():
        film = noise.film(clean, steps, Generator().manual_seed(seed))
        rows.append((name, (film.transpose(0, 1).flatten(0, 1) * 255).round().clamp(0, 255).to(torch.uint8)))
    return contact_sheet(rows)
