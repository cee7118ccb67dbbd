"""`cascaded data`: what there is, what it looks like, and whether it is in order."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import Positional

from cascaded.errors import InputError
from cascaded.progress import say, wide_console
from cascaded.shell import help_default, program


def data(
    action: Positional[Literal["list", "show", "check", "noise"]],
    name: Annotated[
        Positional[str | None], tyro.conf.arg(metavar="NAME", help_behavior_hint="(required, except for list)")
    ] = None,
    *,
    split: Annotated[str | None, help_default("train; for check all splits of a path", "STR")] = None,
    size: Annotated[int | None, help_default("the size they have", "INT")] = None,
    image: Annotated[str | None, help_default("the only column with images", "STR")] = None,
    label: Annotated[str | None, help_default("the only column with classes, or the one called label", "STR")] = None,
    classes: Annotated[tuple[str, ...], help_default("all", "[STR [STR ...]]")] = (),
    out: Annotated[Path | None, help_default("NAME-SPLIT.png in this folder", "FILE")] = None,
    seed: int = 0,
) -> None:
    """Images to train on: what there is, what it looks like, and whether it is in order.

    list shows every data set with a name; show counts one and draws some of its images; check reads all of one and
    lists what is wrong with it; noise draws some of its images under each noise, step by step.

    Example: cascaded data show cifar10

    Args:
        action: What to do.
        name: A data set: a name, a Parquet file, a folder of Parquet files or of images, or OWNER/NAME on the hub.
        split: Which part of it.
        size: Bring all images to this height and width.
        image: The column with the images.
        label: The column with the labels.
        classes: Only these classes, by name.
        out: Where to draw, a PNG file.
        seed: Another seed draws other images.
    """
    if not 0 <= seed < 2**63:
        raise InputError(f"--seed is {seed}: give a number from 0 to {2**63 - 1}")
    options = {"size": size, "image": image, "label": label, "classes": classes}
    if action == "list":
        list_all(name)
    elif name is None:
        typed = f"{program()} data"
        raise InputError(f"{action} needs a data set: try {typed} {action} digits, or see {typed} list")
    elif action == "check":
        check_all(name, split, options)
    else:
        split, ending = split or "train", "-noise" if action == "noise" else ""
        default = Path(f"{Path(name).resolve().name}-{split}{ending}.png")
        draw(action, name, split, options, checked(out or default), seed)


def list_all(name: str | None) -> None:
    """What there is, and where it would come from."""
    from cascaded.data.show import catalogue

    if name is not None:
        raise InputError(f"list takes no name, {name!r} was given: try {program()} data show {shlex.quote(name)}")
    console = wide_console()
    console.print(catalogue())
    say(console, f"next: {program()} data show digits")


def check_all(name: str, split: str | None, options: dict[str, Any]) -> None:
    """What is wrong."""
    from cascaded.data.check import check

    console = wide_console()
    labelled, size = check(name, split, console, **options)
    say(console, _next(name, {**options, "size": size}, labelled))


def draw(action: str, name: str, split: str, options: dict[str, Any], out: Path, seed: int) -> None:
    """What it looks like."""
    from cascaded.data import show
    from cascaded.data.sources import load
    from cascaded.files import write_whole

    console = wide_console()
    images = load(name, split, **options)
    if action == "show":
        show.describe(images, console)
    sheet = (show.class_sheet if action == "show" else show.noise_sheet)(images, seed)
    write_whole(out, lambda part: sheet.save(part, "PNG"))
    say(console, f"wrote {out}")
    say(console, _next(name, options, bool(images.classes)))


def _next(name: str, options: dict[str, Any], labelled: bool) -> str:
    """The command that uses these images: without labels there is nothing to learn."""
    use, out = ("train", " --out runs/mine") if labelled else ("record RUN", "")
    return f"next: {program()} {use} --data {_typed(name, options)}{out}"


def _typed(name: str, options: dict[str, Any]) -> str:
    """A data set and its options as one types them."""
    given = {option: value for option, value in options.items() if value}
    words = {option: value if isinstance(value, (list, tuple)) else [value] for option, value in given.items()}
    told = [f"--{option} {' '.join(shlex.quote(str(word)) for word in value)}" for option, value in words.items()]
    return " ".join([shlex.quote(name), *told])


def checked(file: Path) -> Path:
    """A place for a drawing; better to know now than when all is decoded."""
    if file.is_dir():
        raise InputError(f"--out is {file}, a folder: give the name of a file in it")
    if file.suffix.lower() != ".png":
        raise InputError(f"--out is {file}: it will be a PNG, so give a name that ends in .png")
    return file
