"""Files that were damaged, or made by a stranger: every reader returns a value or raises `InputError`.

The normal suite reads a few damaged files per reader. `pytest -m long tests/test_fuzz.py` reads at least 10,000.
"""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings

from cascaded.errors import InputError
from tests.damage import any_damage
from tests.guard import guarded
from tests.readers import READERS, Sample
from tests.readers import sample as sample
from tests.tiny_runs import tiny_run as tiny_run

SHORT, LONG = 10, 300
"""Damaged inputs per reader."""

PROMISED = 10_000
"""Damaged inputs of the long test, as SECURITY.md says."""


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
        with suppress(InputError), guarded():
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


def test_the_long_test_reads_as_many_files_as_the_documentation_says():
    assert LONG * len(READERS) >= PROMISED
