"""Networks on the Hugging Face hub: their two files, fetched once and kept in its cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cascaded.data.open import TIMEOUT, UnreachableError
from cascaded.errors import InputError
from cascaded.hub.config import CONFIG, WEIGHTS, check_files

OPTIONS = ("force_download", "token", "cache_dir", "local_files_only", "revision")
"""What `from_pretrained` hands on to the hub."""


def fetched(name: str, **options: Any) -> Path:
    """The folder in the hub's cache that holds a network's files; with the hub out of reach, what was fetched before.

    Args:
        name: OWNER/NAME.
        options: Those of `huggingface_hub.hf_hub_download` that stand in `OPTIONS`.
    """
    unreachable = None
    try:
        if not options.get("local_files_only"):
            check_there(name, options.get("revision"), options.get("token"))
    except UnreachableError as error:
        unreachable = error
        options = {**options, "local_files_only": True, "force_download": False}
    try:
        return download(name, options)
    except Exception as error:  # the libraries below fail in many ways; none of them gave an answer
        raise unreachable or InputError(
            f"{name} cannot be fetched from the hub ({reason(error)}): try again, or put its files into a folder"
        ) from error


def check_there(name: str, revision: str | None, token: str | bool | None) -> None:
    """That the hub has the files: one short question, so that being offline is noticed at once."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

    try:
        told = HfApi().model_info(name, revision=revision, token=token, timeout=TIMEOUT)
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise InputError(
            f"there is no folder {name} here, and the hub shows no network of that name: check it, and if it is "
            f"private or gated accept its terms at https://huggingface.co/{name} and run hf auth login"
        ) from error
    except RevisionNotFoundError as error:
        raise InputError(f"{name} on the hub has no revision {revision!r}: leave it out for the newest") from error
    except Exception as error:
        raise UnreachableError(
            f"there is no folder {name} here, and the hub, where it could be, cannot be reached ({reason(error)}): "
            "check the path, connect, or take one that `cascaded models` lists"
        ) from error
    check_files(name, {each.rfilename for each in told.siblings or ()})


def download(name: str, options: dict[str, Any]) -> Path:
    """Fetch both files, or find them in the cache."""
    from huggingface_hub import hf_hub_download

    config = Path(hf_hub_download(name, CONFIG, **options))
    # of the same commit, whatever is pushed in between
    return Path(hf_hub_download(name, WEIGHTS, **{**options, "revision": config.parent.name})).parent


def reason(error: Exception) -> str:
    """The first sentence of what the library says."""
    told = str(error).strip() or type(error).__name__
    return "offline mode" if "offline mode" in told.lower() else told.split("\n")[0].split(". ")[0].rstrip(".")
