"""`cascaded models`: the trained networks that come with the package, and one's own in the same form."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from tyro.conf import Positional

from cascaded.errors import InputError
from cascaded.progress import say, wide_console

if TYPE_CHECKING:
    from rich.table import Table

    from cascaded.pretrained.pretrained import Pretrained


def models(
    name: Annotated[Positional[str | None], tyro.conf.arg(metavar="NAME")] = None,
    *,
    save: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None,
) -> None:
    """Trained networks: those that come with the package, what is known of one, and your own to be kept or shared.

    Without a name it lists the networks of the package with their test accuracies; with one it tells about that
    network, and how often it is right at every step. --save writes any of them, above all a run of yours, as
    model.safetensors, config.json and a model card: a folder that cascaded.load reads and the Hugging Face hub takes.

    Example: cascaded models cifar10-td0

    Example: cascaded models runs/td0/0 --save my-network

    Args:
        name: A network of the package, a run, a folder that was saved, or OWNER/NAME on the hub.
        save: Where to write it, a folder that is not there yet.
    """
    if name is not None:
        tell(name, save)
    elif save is not None:
        raise InputError(f"--save is {save}, and no network is named: say which, as in cascaded models runs/td0/0")
    else:
        list_all()


def list_all() -> None:
    """What comes with the package."""
    from cascaded.pretrained.shipped import HEADINGS, listed

    console = wide_console()
    console.print(_table(HEADINGS, listed(), left=3))
    say(console, "next: cascaded models NAME tells more of one, cascaded predict photo.jpg --model NAME asks it")


def tell(name: str, save: Path | None) -> None:
    """What is known of a network; and write it, if asked to."""
    if save is not None and save.exists() and (not save.is_dir() or any(save.iterdir())):
        raise InputError(f"--save is {save}, where something is already: name a new folder")
    from cascaded.pretrained.card import facts, some
    from cascaded.pretrained.places import load

    net, console = load(name), wide_console()
    say(console, name)
    for what, told in facts(net):
        say(console, f"  {what:10}{told.replace('`', '')}")
    say(console, f"  {'classes':10}{some(net.classes)}")
    if net.accuracy:
        console.print(_accuracies(net))
    else:
        say(console, "  its test accuracy is not known: the run has not ended")
    if save is not None:
        net.save_pretrained(save)
        say(console, f"wrote {save}: {', '.join(sorted(file.name for file in save.iterdir()))}")
    place = shlex.quote(str(save or name))
    say(console, f'next: cascaded predict photo.jpg --model {place}, or in Python cascaded.load("{save or name}")')


def _accuracies(net: Pretrained) -> Table:
    from cascaded.pretrained.shipped import percent

    steps = range(1, len(net.accuracy) + 1)
    return _table(
        ("step", *map(str, steps)), [("test accuracy", *(percent(net.accuracy, step) for step in steps))], left=1
    )


def _table(headings: tuple[str, ...], rows: list[tuple[str, ...]], left: int) -> Table:
    """Words at the left, numbers at the right."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, header_style="bold")
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place < left else "right")
    for row in rows:
        table.add_row(*map(escape, row))
    return table
