"""Public names that are imported when they are first used."""

import importlib
import subprocess
import sys

import pytest


def test_the_names_under_type_checking_are_public_and_no_others(tmp_path, monkeypatch):
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text(
        "from typing import TYPE_CHECKING\n"
        "from cascaded.lazy import lazy\n"
        "if TYPE_CHECKING:\n"
        "    from shop import counter as counter\n"
        "    from shop.counter import Till as Till\n"
        "__getattr__, __dir__ = lazy(__name__)\n"
    )
    (tmp_path / "shop" / "counter.py").write_text("class Till: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    shop = importlib.import_module("shop")
    assert "shop.counter" not in sys.modules
    assert shop.__all__ == ["Till", "counter"]
    assert {"Till", "counter", "__name__"} <= set(dir(shop))
    assert shop.Till is shop.counter.Till
    with pytest.raises(AttributeError, match="module 'shop' has no attribute 'Lazy'"):
        shop.Lazy  # noqa: B018


def test_public_names_exist():
    for package in ("cascaded", "cascaded.data", "cascaded.analysis", "cascaded.results", "cascaded.figures"):
        module = importlib.import_module(package)
        assert all(getattr(module, name) is not None for name in module.__all__)


def test_analyses_of_arrays_do_not_import_torch():
    names = "speed_accuracy, selection_latency, prototypicality, taxonomic_compliance, transient_noise"
    program = f"import sys; from cascaded.analysis import {names}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=300).returncode == 0
