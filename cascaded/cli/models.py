"""`cascaded models`: the shipped networks, and the user's own in the same format."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from cascaded.errors import InputError
from cascaded.progress import print_line, readable, table, wide_console
from cascaded.shell import help_default, program


def models(
    name: Annotated[Positional[str | None], help_default("list the shipped networks", "NAME")] = None,
    *,
    save: Annotated[Path | None, help_default("nothing is written", "FOLDER")] = None,
) -> None:
    """List the shipped networks, describe a trained network, or save one to share it.

    Without a name: the shipped networks with their test accuracy. With a name: its training and its test accuracy per
    step. --save writes model.safetensors, config.json and a model card to a folder that cascaded.load reads and that
    can be uploaded to the Hugging Face hub.

    Example: cascaded models

    Example: cascaded models cifar10-td0

    Example: cascaded models runs/td0 --save my-network

    Args:
        name: A shipped network, a run folder, a saved network, or OWNER/NAME on the Hugging Face hub.
        save: Folder to write the network to; it must not exist yet.
    """
    if name is not None:
        _describe(name, save)
    elif save is not None:
        raise InputError(f"--save is {save}, but no network is given: give one, as in {program()} models runs/td0/0")
    else:
        _list()


def _list() -> None:
    from cascaded.hub.card import COLUMNS, shipped_networks

    console = wide_console()
    rows: list[dict[str, str]] = [dict(zip(COLUMNS, row, strict=True)) for row in shipped_networks()]
    console.print(table(rows, numbers=COLUMNS[3:]))
    print_line(console, f"next: {program()} models {rows[0]['name']}")


def _describe(name: str, save: Path | None) -> None:
    save = save and Path(os.path.expanduser(save))
    if save is not None and save.exists() and (not save.is_dir() or any(save.iterdir())):
        raise InputError(f"--save is {save}, which exists: give a new folder")
    from cascaded.hub.card import facts
    from cascaded.hub.locate import path_of
    from cascaded.hub.pretrained import load

    net, console = load(name), wide_console()
    print_line(console, readable(name))
    for fact, value in facts(net.run_file, net.num_parameters):
        print_line(console, f"  {fact:20}{value.replace('`', '')}")
    if net.accuracy:
        rows = [{"step": str(step), "test accuracy": f"{each:.1%}"} for step, each in enumerate(net.accuracy, 1)]
        console.print(table(rows, numbers=rows[0]))
    else:
        print_line(console, "  test accuracy is not known")
    if save is not None:
        net.save_pretrained(save)
        print_line(console, readable(f"wrote {save}: {', '.join(sorted(file.name for file in save.iterdir()))}"))
    location = name if save is None else path_of(save)
    print_line(console, readable(f"in Python: cascaded.load({location!r})"))
    print_line(console, readable(f"on your own images: {program()} predict IMAGE... --model {shlex.quote(location)}"))
