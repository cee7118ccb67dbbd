"""Trained networks by name: shipped with the package, a run folder, a saved folder, or on the Hugging Face hub."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from cascaded.errors import InputError, unknown
from cascaded.hub.download import download
from cascaded.hub.pretrained import Pretrained
from cascaded.hub.shipped import NETWORKS, names
from cascaded.shell import program
from cascaded.training.runs import find_runs

MAX_LISTED = 8
"""Number of runs that an error lists."""


def load(name_or_path: str | Path, device: torch.device | str = "cpu") -> Pretrained:
    """Load a trained network, in evaluation mode.

    Args:
        name_or_path: The name of a shipped network (`cascaded models` lists them), such as "cifar10-td0"; a folder
            that `save_pretrained` wrote; a run folder, such as "runs/td0/0", or a folder with one run in it,
            "runs/td0"; or OWNER/NAME on the Hugging Face hub.
        device: The device of the network.
    """
    return Pretrained.of_run(locate(name_or_path)).to(device)


def locate(name_or_path: str | Path) -> Path:
    """The folder of a trained network; shipped names come first, and a `Path` is never a name."""
    name, is_name = str(name_or_path), isinstance(name_or_path, str)
    if is_name and name in names():
        return NETWORKS / name
    folder = Path(os.path.expanduser(name))
    if folder.is_dir():
        return _only_run(folder)
    if is_name and _is_hub_name(name):
        return download(name)
    if "/" in name or not is_name or folder.exists():
        raise InputError(f"there is no folder {name}: give a run folder, as runs/td0/0, or a saved network")
    raise unknown("network", name, names(), f"see {program()} models, or give a folder, or OWNER/NAME on the hub")


def _only_run(folder: Path) -> Path:
    runs = find_runs([folder])
    if len(runs) > 1 and folder not in runs:
        more = f" and {len(runs) - MAX_LISTED} more" if len(runs) > MAX_LISTED else ""
        raise InputError(
            f"{folder} contains {len(runs)} runs: give one of {', '.join(map(str, runs[:MAX_LISTED]))}{more}"
        )
    return folder if folder in runs else runs[0]


def _is_hub_name(name: str) -> bool:
    """Whether a name that is no folder has the form OWNER/NAME."""
    owner, _, rest = name.partition("/")
    return bool(rest) and "/" not in rest and owner not in ("", ".", "..", "~")
