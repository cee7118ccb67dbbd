"""Files that were damaged, or made by a stranger: every reader returns a value or raises `InputError`.

The normal suite reads a few damaged files per reader. `pytest -m long tests/test_fuzz.py` reads at least 10,000.
"""

from __future__ import annotations

import ast
import struct
import zlib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

import cascaded
from cascaded.data import load as load_images
from cascaded.errors import InputError
from cascaded.files import read_json, write_json
from cascaded.runtime.images import read_image
from tests.damage import any_damage
from tests.guard import guarded
from tests.readers import sample as sample
from tests.samples import READERS, Sample
from tests.tiny_runs import tiny_run as tiny_run

SHORT, LONG = 10, 360
"""Damaged inputs per reader."""

ROOT = Path(__file__).parent.parent


def read_damaged(sample: Sample, examples: int) -> int:
    """Damage a file so many times, and return how often it was read; the file is the same afterwards."""
    whole, count = sample.file.read_bytes(), 0

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(any_damage(whole, sample.kind))
    def attempt(content: bytes) -> None:
        nonlocal count
        count += 1
        sample.file.write_bytes(content)
        if sample.prepare is not None:
            sample.prepare()
        with guarded(), suppress(InputError):
            sample.read()

    try:
        attempt()
    finally:
        sample.file.write_bytes(whole)
        if sample.prepare is not None:
            sample.prepare()
    return count


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_read_or_refused_in_a_sentence(name, sample):
    assert read_damaged(sample(name), SHORT) >= SHORT


@pytest.mark.long
@pytest.mark.parametrize("name", READERS)
def test_many_damaged_files_are_read_or_refused_in_a_sentence(name, sample):
    assert read_damaged(sample(name), LONG) >= LONG


@pytest.mark.parametrize("name", READERS)
def test_the_undamaged_file_is_read(name, sample):
    with guarded():
        sample(name).read()


def test_the_documentation_says_how_many_damaged_files_are_read():
    assert LONG * len(READERS) >= 10_000
    for page in ("SECURITY.md", "docs/files.md"):
        assert f"{LONG * len(READERS):,} damaged files" in (ROOT / page).read_text()


@pytest.mark.parametrize("side", [20_000, 2**31 - 1])
def test_an_image_that_promises_too_many_pixels_is_refused_before_it_is_decoded(side, tmp_path):
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    content = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    (tmp_path / "a").mkdir()
    file = tmp_path / "a" / "bomb.png"
    file.write_bytes(b"\x89PNG\r\n\x1a\n" + content)
    for read in (lambda: read_image(file), lambda: load_images(tmp_path, cache=tmp_path / ".cache")):
        with pytest.raises(InputError, match="cannot be read"), guarded():
            read()


def test_weights_that_are_smaller_than_their_config_asks_for_are_refused_before_memory_is_taken(tiny_run, tmp_path):
    cascaded.load(tiny_run()).save_pretrained(tmp_path)
    config = read_json(tmp_path / "config.json")
    config["config"]["width"] = 4096  # 180 GB of weights
    write_json(tmp_path / "config.json", config)
    with pytest.raises(InputError, match=r"the network needs \(4096"), guarded():
        cascaded.load(tmp_path)


def test_no_source_unpickles():
    calls = {ast.unparse(call.func): call for file in (ROOT / "cascaded").rglob("*.py") for call in calls_in(file)}
    assert not {"torch.load", "pickle.load", "pickle.loads", "joblib.load", "pandas.read_pickle"} & set(calls)
    assert {word.arg: ast.unparse(word.value) for word in calls["np.load"].keywords} == {"allow_pickle": "False"}


def calls_in(file: Path) -> list[ast.Call]:
    """Every call in a source file."""
    return [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
