"""Networks on the Hugging Face hub, downloaded once and then read from its cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

from cascaded.errors import InputError
from cascaded.training.run_file import CONFIG, WEIGHTS

TIMEOUT = 10.0
"""Seconds to wait for the hub before the cache is used."""


def download(
    name: str,
    *,
    revision: str | None = None,
    token: str | bool | None = None,
    local_files_only: bool = False,
    **options: Any,
) -> Path:
    """The folder in the hub's cache with a network's files. If the hub cannot be reached, the cached files are used.

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
