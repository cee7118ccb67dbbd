"""Where a network comes from: the package, a folder, a run, or the hub."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path

import torch

from cascaded.errors import InputError
from cascaded.hub.pretrained import Pretrained
from cascaded.hub.shipped import NETWORKS, names
from cascaded.shell import program
from cascaded.training.runs import CONFIG, has_config

LISTED = 8
"""How many runs an error lists."""


def load(name_or_path: str | Path, device: torch.device | str = "cpu") -> Pretrained:
    """A trained network that takes images as they are, in evaluation mode.

    Args:
        name_or_path: One that comes with the package (`cascaded models` lists them), such as "cifar10-td0"; a folder
            that `save_pretrained` wrote; a run, such as "runs/td0/0", or a folder with one run in it, "runs/td0"; or
            OWNER/NAME on the Hugging Face hub.
        device: Where to put it.
    """
    return found(name_or_path).to(device)


def found(name_or_path: str | Path) -> Pretrained:
    """Look where a name could lead, the package first; a path is a path."""
    name = str(name_or_path)
    if isinstance(name_or_path, str) and name in names():
        return Pretrained.from_pretrained(NETWORKS / name)
    folder = Path(os.path.expanduser(name))
    if folder.is_dir():
        return in_folder(folder)
    if isinstance(name_or_path, str) and is_on_hub(name):
        return Pretrained.from_pretrained(name)
    if "/" in name or isinstance(name_or_path, Path) or folder.exists():
        raise InputError(f"there is no folder {name}: give one that save_pretrained wrote, or a run, as runs/td0/0")
    near = get_close_matches(name, names(), n=1)
    way = f"say {near[0]}?" if near else f"see {program()} models, or give a folder, or OWNER/NAME on the hub"
    raise InputError(f"there is no network {name!r}: {way}")


def in_folder(folder: Path) -> Pretrained:
    """A run, the only run below a folder, or what `save_pretrained` wrote."""
    if has_config(folder):
        is_run = (folder / "checkpoints").exists() or (folder / "metrics.jsonl").exists()
        return Pretrained.of_run(folder) if is_run else Pretrained.from_pretrained(folder)
    runs = sorted(file.parent for file in folder.glob(f"**/{CONFIG}"))
    for old in folder.glob("**/spec.json"):
        has_config(old.parent)
    if not runs:
        raise InputError(
            f"{folder} contains neither a run nor a saved network, no {CONFIG} is in or below it: give OUT or OUT/SEED "
            "of a cascaded train, or a folder that save_pretrained wrote"
        )
    if len(runs) > 1:
        others = f" and {len(runs) - LISTED} more" if len(runs) > LISTED else ""
        raise InputError(
            f"{folder} contains {len(runs)} runs: give one of {', '.join(map(str, runs[:LISTED]))}{others}"
        )
    return Pretrained.of_run(runs[0])


def is_on_hub(name: str) -> bool:
    """Whether a name that is no folder has the form OWNER/NAME."""
    owner, _, rest = name.partition("/")
    return bool(rest) and "/" not in rest and owner not in ("", ".", "..", "~")
