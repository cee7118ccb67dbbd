"""Find a trained network by name: shipped with the package, in a folder, or on the Hugging Face hub."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

from cascaded.errors import InputError, unknown
from cascaded.shell import program
from cascaded.training.run_file import CONFIG, WEIGHTS
from cascaded.training.runs import find_runs

NETWORKS = Path(__file__).parent / "networks"
"""The shipped networks, one folder each."""
TIMEOUT = 10.0
"""Seconds to wait for the hub before the cache is used."""
MAX_LISTED = 8
"""Number of runs that an error lists."""


def shipped() -> list[str]:
    """Names of the shipped networks."""
    return sorted(config.parent.name for config in NETWORKS.glob(f"*/{CONFIG}"))


def path_of(folder: Path) -> str:
    """A folder as `cascaded.load` finds it, also if it has the name of a shipped network."""
    return f"./{folder}" if str(folder) in shipped() else str(folder)


def locate(name_or_path: str | Path) -> Path:
    """The folder of a trained network. Names of shipped networks come first, and a `Path` is never a name."""
    name, is_name = str(name_or_path), isinstance(name_or_path, str)
    if is_name and name in shipped():
        return NETWORKS / name
    folder = Path(os.path.expanduser(name))
    if folder.is_dir():
        return _only_run(folder)
    owner, _, rest = name.partition("/")
    if is_name and rest and "/" not in rest and owner not in ("", ".", "..", "~"):
        return download(name)
    if "/" in name or not is_name or folder.exists():
        raise InputError(f"there is no folder {name}: give a run folder, as runs/td0/0, or a saved network")
    raise unknown("network", name, shipped(), f"see {program()} models, or give a folder, or OWNER/NAME on the hub")


def _only_run(folder: Path) -> Path:
    runs = find_runs([folder])
    if folder in runs:
        return folder
    if len(runs) > 1:
        more = f" and {len(runs) - MAX_LISTED} more" if len(runs) > MAX_LISTED else ""
        names = ", ".join(map(str, runs[:MAX_LISTED]))
        raise InputError(f"{folder} contains {len(runs)} runs: give one of {names}{more}")
    return runs[0]


def download(
    name: str,
    *,
    revision: str | None = None,
    token: str | bool | None = None,
    local_files_only: bool = False,
    **options: Any,
) -> Path:
    """Download a network from the hub, once, and return its folder in the cache. Offline, the cached files are used.

    Args:
        name: OWNER/NAME.
        revision: Branch, tag or commit; the newest by default.
        token: Access token; the one of `hf auth login` by default.
        local_files_only: Use only the cache.
        options: `cache_dir` and `force_download` of `huggingface_hub.hf_hub_download`.
    """
    unreachable = None if local_files_only else _check_on_hub(name, revision, token)
    if unreachable:
        options = {**options, "force_download": False}
    options |= {"token": token, "local_files_only": local_files_only or unreachable is not None}
    try:
        config = Path(hf_hub_download(name, CONFIG, revision=revision, **options))
        # of the same commit, even if another one is pushed in between
        return Path(hf_hub_download(name, WEIGHTS, revision=config.parent.name, **options)).parent
    except Exception as error:  # the libraries below raise many types
        raise unreachable or InputError(
            f"{name} cannot be fetched from the hub ({_reason(error)}): try again, or download its files to a folder"
        ) from error


def _check_on_hub(name: str, revision: str | None, token: str | bool | None) -> InputError | None:
    """Raise an error if the hub has no such network; return one if the hub cannot be reached."""
    try:
        info = HfApi().model_info(name, revision=revision, token=token, timeout=TIMEOUT)
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise InputError(
            f"there is no folder {name} here, and the hub shows no network of that name: check it, and if it is "
            f"private or gated accept its terms at https://huggingface.co/{name} and run hf auth login"
        ) from error
    except RevisionNotFoundError as error:
        raise InputError(f"{name} on the hub has no revision {revision!r}: leave it out for the newest") from error
    except Exception as error:
        return InputError(
            f"there is no folder {name} here, and the hub, where it could be, cannot be reached ({_reason(error)}): "
            "check the path, connect, or use one that `cascaded models` lists"
        )
    for missing in {CONFIG, WEIGHTS} - {each.rfilename for each in info.siblings or ()}:
        raise InputError(
            f"{name} holds no {missing}, and other weights, such as pytorch_model.bin, are never unpickled: save the "
            "network again with save_pretrained of cascaded"
        )
    return None


def _reason(error: Exception) -> str:
    """The first sentence of an error message."""
    message = str(error).strip() or type(error).__name__
    return "offline mode" if "offline mode" in message.lower() else message.split("\n")[0].split(". ")[0].rstrip(".")
