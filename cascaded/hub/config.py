"""The files of a saved network: `config.json`, so that it can be built before its weights are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cascaded.errors import InputError
from cascaded.files import read_json
from cascaded.progress import readable
from cascaded.training.run_file import CONFIG, WEIGHTS, RunFile

CARD = "README.md"


def parse_config(content: Any) -> RunFile:
    """What `config.json` says, checked: files from the hub may say anything."""
    if isinstance(content, dict) and "spec" in content:
        raise InputError("it was saved by cascaded 0.1: save the network again with save_pretrained of this version")
    try:
        file = RunFile.from_json(content)
        if not file.inputs.classes:
            raise ValueError("its classes have no names")
        if file.config.lam == ():
            raise ValueError("lam is empty")
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(
            f"it does not describe a network ({readable(str(error))}): save it again with save_pretrained"
        ) from error
    return file


def check_files(name: str, files: set[str]) -> None:
    """That a network's files are among some; a pickle does not count as weights."""
    if CONFIG not in files:
        raise InputError(f"{name} holds no saved network, there is no {CONFIG}: write one with save_pretrained")
    if WEIGHTS not in files:
        raise InputError(
            f"{name} holds no {WEIGHTS}, and other weights, such as pytorch_model.bin, are never unpickled: save the "
            "network again with save_pretrained of cascaded"
        )


def check_folder(folder: Path, name: str | None = None) -> None:
    """A folder that holds a network in the form of `save_pretrained`, before anything is built from it.

    Args:
        folder: Where its files are.
        name: What it is called in messages, where that is not the folder.
    """
    name = name or str(folder)
    check_files(name, {file.name for file in folder.iterdir()})
    try:
        parse_config(read_json(folder / CONFIG))
    except InputError as error:
        raise InputError(f"{CONFIG} of {name}: {error}") from error
