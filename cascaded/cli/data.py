"""`cascaded data`: list, show and check data sets."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from tyro.conf import Positional

from cascaded.errors import InputError, MissingSplitError, between
from cascaded.progress import counted, print_line, table, wide_console
from cascaded.shell import help_default, program

if TYPE_CHECKING:
    from cascaded.data.catalogue import Source
    from cascaded.data.images import Images
    from cascaded.data.problems import Problems, Size

LISTED = 40
"""Classes in a table; of more, the smallest and the largest are printed."""


def data(
    action: Positional[Literal["list", "show", "check", "noise"]],
    name: Annotated[
        Positional[str | None], tyro.conf.arg(metavar="NAME", help_behavior_hint="(required, except for list)")
    ] = None,
    *,
    split: Annotated[str | None, help_default("train or the first split; check: all of a path", "STR")] = None,
    image_size: Annotated[int | None, help_default("the size of the images", "INT")] = None,
    image_column: Annotated[str | None, help_default("the only column with images", "STR")] = None,
    label_column: Annotated[str | None, help_default("the only column with classes, or `label`", "STR")] = None,
    classes: Annotated[tuple[str, ...], help_default("all", "[STR [STR ...]]")] = (),
    out: Annotated[Path | None, help_default("NAME-SPLIT.png in this folder", "FILE")] = None,
    seed: int = 0,
) -> None:
    """List, show and check data sets.

    list prints every data set that has a name; show counts the images of one and draws some of them; check reads all
    images of one and lists all problems; noise draws some images under each noise, step by step.

    Example: cascaded data show cifar10

    Args:
        action: What to do.
        name: A data set: a name, a Parquet file, a folder of Parquet files or of images, or OWNER/NAME on the hub.
        split: The split to read.
        image_size: Resize all images to this height and width.
        image_column: The column with the images.
        label_column: The column with the labels.
        classes: Only these classes, by name.
        out: The PNG file to write.
        seed: Seed of the choice of images.
    """
    between(0, 2**63 - 1, seed=seed)
    given = {"image_size": image_size, "image_column": image_column, "label_column": label_column, "classes": classes}
    if action == "list":
        list_sources(name)
    elif name is None:
        command = f"{program()} data"
        raise InputError(f"{action} needs a data set: try {command} {action} digits, or see {command} list")
    elif action == "check":
        check(name, split, given)
    else:
        draw(action, name, split, given, None if out is None else check_png(out), seed)


def list_sources(name: str | None) -> None:
    """Print every data set that has a name, and where it is loaded from."""
    from rich.markup import escape

    from cascaded.data.catalogue import SOURCES
    from cascaded.data.open import local_splits

    if name is not None:
        raise InputError(f"list needs no name, {name!r} was given: try {program()} data show {shlex.quote(name)}")
    console, rows = wide_console(), []
    for source in SOURCES.values():
        local = list(local_splits(source))
        splits = " ".join(dict.fromkeys([*source.splits, *local]))
        place = escape(location(source, local))
        rows.append({"name": source.name, "description": source.about, "splits": splits, "from": place})
    console.print(table(rows))
    print_line(console, f"next: {program()} data show digits")


def location(source: Source, local: list[str]) -> str:
    """Where a source is loaded from."""
    from cascaded.data.cache import cache_folder

    if source.hub is None:
        return "embedded"
    places = [f"$CASCADED_DATA/{source.folder or source.name} ({' '.join(local)})"] if local else []
    files = cache_folder().glob(f"{source.name}-*-*.safetensors")
    splits = {file.stem.removeprefix(f"{source.name}-").rsplit("-", 1)[0] for file in files} & {*source.splits, *local}
    if splits:
        places.append(f"cached ({' '.join(sorted(splits))})")
    return ", ".join(places) or f"hub, {source.hub}"


def draw(action: str, name: str, split: str | None, given: dict[str, Any], out: Path | None, seed: int) -> None:
    """Print counts of a split, and draw some of its images."""
    from cascaded.data.open import splits_of
    from cascaded.data.sheet import class_sheet, noise_sheet
    from cascaded.data.sources import describe, load
    from cascaded.files import write_whole

    split = split or splits_of(describe(name, **given))[0]
    ending = "-noise" if action == "noise" else ""
    out = out or check_png(Path(f"{Path(name).resolve().name}-{split}{ending}.png"))
    console, images = wide_console(), load(name, split, **given)
    if action == "show":
        print_counts(images, console)
    sheet = class_sheet(images, seed) if action == "show" else noise_sheet(images, seed)
    write_whole(out, lambda part: sheet.save(part, "PNG"))
    print_line(console, f"wrote {out}")
    print_line(console, next_command(name, given, bool(images.classes)))


def print_counts(images: Images, console: Any) -> None:
    """Print number, size, mean, standard deviation and classes of images."""
    items, channels, height, width = images.images.shape
    kind = "gray image" if channels == 1 else "color image"
    print_line(console, f"{images.name} {images.split}: {counted(items, kind)}, {width} x {height} pixels")
    mean, std = (" ".join(f"{value:.4f}" for value in values) for values in images.statistics())
    print_line(console, f"mean {mean}, standard deviation {std}, of values in 0..1")
    if not images.classes:
        print_line(console, "no labels")
    levels = {"class": (images.labels, images.classes), "coarse class": (images.coarse, images.coarse_classes)}
    for what, (labels, classes) in levels.items():
        if labels is not None and classes:
            class_table(what, labels.bincount(minlength=len(classes)).tolist(), classes, console)


def class_table(what: str, counts: list[int], classes: Sequence[str], console: Any) -> None:
    """Print the number of images per class."""
    from rich.markup import escape

    low, high = min(counts), max(counts)
    per_class = counted(high, "image") if low == high else f"{low:,} to {high:,} images (median {median(counts):,.0f})"
    print_line(console, f"{counted(len(classes), what)}, {per_class} per {what}")
    numbers = list(range(len(classes)))
    if len(numbers) > LISTED:
        ordered = sorted(numbers, key=counts.__getitem__)
        numbers = sorted([*ordered[: LISTED // 2], *ordered[-LISTED // 2 :]])
        print_line(console, f"the {LISTED // 2} smallest and the {LISTED // 2} largest:")
    rows = [{"number": str(n), "name": escape(classes[n]), "images": f"{counts[n]:,}"} for n in numbers]
    console.print(table(rows, numbers=("number", "images")))


def check(name: str, split: str | None, given: dict[str, Any]) -> None:
    """Read all images of a split, or of all splits, and print every problem; raises `InputError` if there are any."""
    from cascaded.data.open import splits_of
    from cascaded.data.problems import SUGGESTED, check_classes, suggested_size
    from cascaded.data.sources import describe

    console, source = wide_console(), describe(name, **given)
    read: dict[str, Problems] = {}
    for each in [split] if split else splits_of(source):
        read[each] = problems = read_split(source, each)
        problems.suggestion = next((suggested_size(other.sizes) for other in read.values() if other.sizes), None)
        lines = problems.all()
        some = f", {counted(len(lines), 'problem')}:" if lines else ""
        print_line(console, f"{name} {each}: {counted(problems.labels.total(), 'image')}{some}")
        for line in lines:
            print_line(console, f"  {line}")
    for each, problems in read.items():
        print_summary(each if len(read) > 1 else "", problems, console)
    count = sum(len(problems.all()) for problems in read.values())
    sizes = sum((problems.sizes for problems in read.values()), Counter["Size"]())
    if not count and len(sizes) > 1 and source.size is None:
        raise InputError(f"the splits of {name} have different sizes: use --image-size {suggested_size(sizes)}")
    if count:
        where, them = f"{name} {split}" if split else name, "it" if count == 1 else "them"
        raise InputError(f"{where} has {counted(count, 'problem')}, listed above: correct {them}, then check again")
    if "train" in read:
        check_classes(source.classes or read["train"].table.classes, name)
    print_line(console, "no problems")
    labeled = any(problems.table.classes for problems in read.values())
    if source.size is None and max(max(size) for size in sizes) > max(SUGGESTED):  # large images train for hours
        given = {**given, "image_size": suggested_size(sizes)}
    print_line(console, next_command(name, given, labeled))


def read_split(source: Source, split: str) -> Problems:
    """The problems of a split. Images are decoded in their own size, to see which sizes there are."""
    from cascaded.data.build import decode_rows
    from cascaded.data.open import locate
    from cascaded.data.problems import start_problems

    opened = locate(source, split).open(source.columns)
    problems = start_problems(opened, source, split)
    for _ in decode_rows(opened, replace(source, size=None), problems):
        pass
    return problems


def print_summary(split: str, problems: Problems, console: Any) -> None:
    """Print the sizes and the classes of a split."""
    if problems.sizes:
        print_line(console, f"{split} {size_line(problems.sizes)}".strip())
    classes = problems.table.classes
    if problems.wanted is None and classes:
        class_table("class", [problems.labels[number] for number in range(len(classes))], classes, console)


def size_line(sizes: Counter[Size]) -> str:
    """The sizes of all images in one line."""
    (common, times), *others = sizes.most_common()
    if not others:
        return "size: {} x {} pixels".format(*common)
    by_area = sorted(sizes, key=lambda size: (size[0] * size[1], size))
    named = {"smallest": by_area[0], "largest": by_area[-1], "most common": common}
    three = ", ".join(f"{which} {width} x {height}" for which, (width, height) in named.items())
    return f"{len(sizes):,} sizes in pixels: {three} ({counted(times, 'image')})"


def next_command(name: str, given: dict[str, Any], labeled: bool) -> str:
    """The command that uses these images: training, or where they cannot be trained on, recording."""
    from cascaded.data.open import locate
    from cascaded.data.sources import describe

    words = [shlex.quote(name)]
    for option, value in given.items():
        values = value if isinstance(value, (list, tuple)) else [value] if value else []
        words += [f"--{option.replace('_', '-')}"] * bool(values) + [shlex.quote(str(each)) for each in values]
    try:
        locate(describe(name, **given), "train")
    except MissingSplitError:
        labeled = False
    if not labeled:
        return f"these images are for evaluation (--data {words[0]}), see {program()} record --help"
    return f"next: {program()} train --data {' '.join(words)} --out runs/mine"


def check_png(file: Path) -> Path:
    """Check the name of the file to write before images are decoded."""
    if file.is_dir():
        raise InputError(f"--out is {file}, a folder: give the name of a file in it")
    if file.suffix.lower() != ".png":
        raise InputError(f"--out is {file}: give a name that ends in .png")
    return file
