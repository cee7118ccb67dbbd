"""Public names that are imported when they are first used."""

import subprocess
import sys

import pytest

import cascaded
from cascaded.lazy import lazy


def test_names_come_from_their_homes_and_parts_from_within():
    get, listed = lazy("cascaded", {"cascaded.errors": ["InputError"]}, parts=["data"])
    assert get("InputError") is cascaded.errors.InputError
    assert get("data") is sys.modules["cascaded.data"]
    assert {"InputError", "data", "__version__"} <= set(listed())
    with pytest.raises(AttributeError, match="module 'cascaded' has no attribute 'nothing'"):
        get("nothing")


def test_analyses_of_arrays_do_not_import_torch():
    names = "speed_accuracy, selection_latency, prototypicality, taxonomic_compliance, transient_noise, lambda_effect"
    program = f"import sys; from cascaded.analysis import {names}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=300).returncode == 0
