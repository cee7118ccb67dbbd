"""Finished runs to record and to analyse: tiny ones, each trained once in all the tests, by whoever needs it first."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from filelock import FileLock

from cascaded import RunConfig
from cascaded.training.config import ExecutionConfig
from cascaded.training.loop import train
from cascaded.training.runs import is_done
from tests.shared_folder import shared_folder

TINY = RunConfig(width=4, epochs=1, batch_size=32, lr=0.05, lr_schedule="one-cycle", max_images=320)


def tiny_config(method: str = "cascaded-td", seed: int = 0, **options) -> RunConfig:
    """The configuration of a tiny run: digits, few images, one epoch; any other field can be given."""
    return replace(TINY, method=method, seed=seed, **options)


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory) -> Callable[..., Path]:
    """`tiny_run("cascaded-td", seed=0, val_fraction=0.2)` is the folder of a finished run; copy it to write into it."""
    place = shared_folder(tmp_path_factory)

    def run(method: str = "cascaded-td", seed: int = 0, **options) -> Path:
        config = tiny_config(method, seed, **options)
        folder = place / "tiny" / hashlib.sha256(repr(config).encode()).hexdigest()[:16] / str(seed)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.parent / "made"), pytest.MonkeyPatch.context() as patched, torch.enable_grad():
            patched.setenv("CASCADED_CACHE", str(place / "cache"))
            if not is_done(folder):
                train(config, folder, ExecutionConfig("cpu"), resume=True)
        return folder

    return run
