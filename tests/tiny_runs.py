"""Finished runs to record and to analyse: tiny ones, each trained once in all the tests, by whoever needs it first."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from filelock import FileLock

from cascaded import Recipe, Spec
from cascaded.training.loop import Where, train
from cascaded.training.runs import is_done
from tests.shared_folder import shared_folder

TINY = Recipe(width=4, epochs=1, batch=32, rate=0.05, schedule="one-cycle")


def tiny_spec(model: str = "cascaded-td", seed: int = 0, **options) -> Spec:
    """What a tiny run is: digits, a few images, one epoch; any field of a spec or of a recipe can be another."""
    names = {field.name for field in fields(Recipe)} - {field.name for field in fields(Spec)}
    recipe = TINY.but(**{name: value for name, value in options.items() if name in names})
    rest = {name: value for name, value in options.items() if name not in names}
    return Spec(**{"data": "digits", "model": model, "recipe": recipe, "seed": seed, "limit": 320, **rest})


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory) -> Callable[..., Path]:
    """`tiny_run("cascaded-td", seed=0, held_out=0.2)` is the folder of a finished run; copy it to write into it."""
    place = shared_folder(tmp_path_factory)

    def run(model: str = "cascaded-td", seed: int = 0, **options) -> Path:
        spec = tiny_spec(model, seed, **options)
        folder = place / "tiny" / hashlib.sha256(repr(spec).encode()).hexdigest()[:16] / str(seed)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.parent / "made"), pytest.MonkeyPatch.context() as patched, torch.enable_grad():
            patched.setenv("CASCADED_CACHE", str(place / "cache"))
            if not is_done(folder):
                train(spec, folder, Where(torch.device("cpu")), resume=True)
        return folder

    return run
