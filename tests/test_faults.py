"""A full disk and a folder that cannot be written: one sentence, exit code 2, and nothing half-written."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from cascaded.cli.main import main, run
from tests.forked import code_of, forked, limit_files
from tests.made_traces import made_run, made_trace
from tests.tiny_data import tiny_data
from tests.tiny_runs import tiny_run as tiny_run

FULL = 256
"""Bytes that a file may have where the disk is full."""


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


class Capabilities(ctypes.Structure):
    """Header and sets of Linux's `capset`, version 3; the sets are empty."""

    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int), ("sets", ctypes.c_uint32 * 6))


def bind_root() -> None:
    """Permissions hold for this process from now on, even if it runs as root."""
    if os.geteuid() == 0:
        none = Capabilities(0x20080522, 0)
        sets = ctypes.byref(none, Capabilities.sets.offset)
        assert ctypes.CDLL(None).capset(ctypes.byref(none), sets) == 0


def typed(words: list[object], limit: int | None = None, bound: bool = False) -> tuple[int, str]:
    """Run a command in a process of its own; its exit code and what it printed.

    Args:
        words: The command.
        limit: Bytes that a file may have there: a write beyond fails, as it does on a full disk.
        bound: Whether permissions hold there for root too.
    """
    reading, writing = os.pipe()

    def work() -> None:
        os.close(reading)
        sys.stdout = sys.stderr = os.fdopen(writing, "w")  # a pipe: files are limited
        sys.argv = ["cascaded", *map(str, words)]
        if limit is not None:
            limit_files(limit)
        if bound:
            bind_root()
        try:
            main()
        finally:
            sys.stdout.flush()

    child = forked(work)
    os.close(writing)
    with os.fdopen(reading) as output:
        text = output.read()
    return code_of(child), text


def check_refused(code: int, output: str) -> None:
    """One sentence that says what cannot be written, and no traceback."""
    assert code == 2, output
    assert "Traceback" not in output
    (sentence,) = [line for line in output.splitlines() if line.startswith("cascaded: ")]
    assert "cannot be" in sentence or "is a file" in sentence, output


Command = Callable[[Path, Path], list[object]]
"""From a prepared folder and the place to write to, what is typed."""

TRAIN = ["--width", "4", "--epochs", "1", "--max-images", "320", "--threads", "1"]
SPEED = ["--no-galleries", "--only", "speed_accuracy"]
SMALL = ["--scale", "smoke", "--num-workers", "1"]

COMMANDS: dict[str, Command] = {
    "train": lambda made, out: ["train", *TRAIN, "--out", out],
    "sweep": lambda made, out: ["sweep", *TRAIN, "--seeds", "0", "1", "--out", out],
    "predict": lambda made, out: ["predict", made / "photo.png", "--model", made / "run", "--out", out],
    "models": lambda made, out: ["models", made / "run", "--save", out],
    "report": lambda made, out: ["report", made / "analysed", "--out", out],
    "demo": lambda made, out: ["demo", "--quick", "--out", out],
    "reproduce": lambda made, out: ["reproduce", "table-lambda", *SMALL, "--out", out],
    "record": lambda made, out: ["record", made / "run", "--max-images", "40", "--threads", "1"],
    "csv": lambda made, out: ["analyze", made / "analysed", *SPEED, "--csv", out / "all.csv"],
    "latencies": lambda made, out: ["analyze", made / "analysed", *SPEED, "--latencies", out / "all.csv"],
    "analyse": lambda made, out: ["analyse", made / "recorded", *SPEED],
}


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """The data that `reproduce` asks for."""
    return tiny_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def original(tiny_run, tmp_path_factory) -> Path:
    """A trained run, one that was recorded, one that was analysed, and a photograph."""
    folder = tmp_path_factory.mktemp("original")
    shutil.copytree(tiny_run(), folder / "run")
    trace = {"digits-test": made_trace(items=20, kernel="osd")}
    made_run(folder / "recorded", trace)
    made_run(folder / "analysed", trace)
    run(["analyse", str(folder / "analysed"), *SPEED])
    Image.effect_noise((48, 48), 64).convert("RGB").save(folder / "photo.png")
    return folder


@pytest.fixture
def made(original, tmp_path, data, monkeypatch) -> Path:
    """A copy of these, to write into."""
    monkeypatch.setenv("CASCADED_DATA", str(data))
    return shutil.copytree(original, tmp_path / "made")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_ends_in_a_sentence_and_leaves_what_was_there(name, made, tmp_path):
    before = contents(made)
    code, output = typed(COMMANDS[name](made, tmp_path / "out"), FULL)
    check_refused(code, output)
    after = contents(made)
    assert {file: after.get(file) for file in before} == before
    left = [file for file in (*after, *contents(tmp_path / "out")) if ".part" in file]
    assert not left


@pytest.mark.parametrize("name", COMMANDS)
def test_a_read_only_folder_is_refused_in_a_sentence(name, made, tmp_path):
    before = contents(made)
    out = tmp_path / "out"
    out.mkdir()
    places = [out, *(place for place in (made, *made.rglob("*")) if place.is_dir())]
    for place in places:
        place.chmod(0o555)
    try:
        check_refused(*typed(COMMANDS[name](made, out / "new"), bound=True))
        assert contents(made) == before
        assert not contents(out)
    finally:
        for place in places:
            place.chmod(0o755)
