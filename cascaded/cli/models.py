"""`cascaded models`: the trained networks that come with the package, and one's own in the same form."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional

from cascaded.errors import InputError
from cascaded.progress import readable, say, wide_console
from cascaded.shell import help_default, program

if TYPE_CHECKING:
    from rich.table import Table


def models(
    name: Annotated[Positional[str | None], help_default("list those of the package", "NAME")] = None,
    *,
    save: Annotated[Path | None, help_default("nothing is written", "FOLDER")] = None,
) -> None:
    """Trained networks: those that come with the package, what is known of one, and your own to be kept or shared.

    Without a name it lists the networks of the package with their test accuracies; with one it tells about that
    network, and how often it is right at every step. --save writes any of them, above all a run of yours, as
    model.safetensors, config.json and a model card: a folder that cascaded.load reads and the Hugging Face hub takes.

    Example: cascaded models cifar10-td0

    Example: cascaded models runs/td0 --save my-network

    Args:
        name: A network of the package, a run or a folder that contains one, a folder that was saved, or OWNER/NAME on
            the hub.
        save: Where to write it, a folder that is not there yet.
    """
    if name is not None:
        tell(name, save)
    elif save is not None:
        raise InputError(f"--save is {save}, and no network is named: say which, as in {program()} models runs/td0/0")
    else:
        list_all()


def list_all() -> None:
    """What comes with the package."""
    from cascaded.hub.shipped import HEADINGS, listed

    console = wide_console()
    console.print(_table(HEADINGS, listed(), left=3))
    more, asking = f"{program()} models NAME", f"{program()} predict photo.jpg --model NAME"
    say(console, f"next: {more} tells more of one, {asking} asks it")


def tell(name: str, save: Path | None) -> None:
    """What is known of a network; and write it, if asked to."""
    save = save and Path(os.path.expanduser(save))
    if save is not None and save.exists() and (not save.is_dir() or any(save.iterdir())):
        raise InputError(f"--save is {save}, where something is already: name a new folder")
    from cascaded.hub.card import facts, some
    from cascaded.hub.load import load
    from cascaded.hub.shipped import called

    net, console = load(name), wide_console()
    say(console, readable(name))
    for what, told in [*facts(net), ("classes", some(net.classes))]:
        say(console, f"  {what:10}{told.replace('`', '')}")
    if not net.accuracy:
        say(console, "  its test accuracy is not known")
    for table in _accuracies(net.accuracy, console.width):
        console.print(table)
    if save is not None:
        net.save_pretrained(save)
        say(console, readable(f"wrote {save}: {', '.join(sorted(file.name for file in save.iterdir()))}"))
    place = name if save is None else called(save)
    next_one = f'{program()} predict photo.jpg --model {shlex.quote(place)}, or in Python cascaded.load("{place}")'
    say(console, readable(f"next: {next_one}"))


def _accuracies(accuracy: Sequence[float], width: int) -> Iterator[Table]:
    """Test accuracies side by side, in as many tables as it takes to cut none."""
    from cascaded.hub.shipped import percent

    title, told = "test accuracy", {str(step): percent(accuracy, step) for step in range(1, len(accuracy) + 1)}
    room = max(1, (width - len(title)) // max(len(f"  {each}") for each in ("", *told.values())))
    for first in range(0, len(told), room):
        some = slice(first, first + room)
        yield _table(("step", *list(told)[some]), [(title, *list(told.values())[some])], left=1)


def _table(headings: tuple[str, ...], rows: list[tuple[str, ...]], left: int) -> Table:
    """Words at the left, numbers at the right; the first column is never cut."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place < left else "right", no_wrap=place == 0)
    for row in rows:
        table.add_row(*map(escape, row))
    return table
