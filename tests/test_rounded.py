"""Copies of weights in half precision: what is rounded, what they are rounded from, and what is no such copy."""

import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

import cascaded
from cascaded.files import sha256
from cascaded.hub.locate import NETWORKS
from cascaded.training.load import load_run
from cascaded.training.rounded import half, rounded_from, trained_weights, write_rounded
from cascaded.training.runs import weights_digest
from tests.refused import refused
from tests.tiny_runs import tiny_run as tiny_run


@given(st.floats(-60_000, 60_000, width=32))
def test_convolutions_are_rounded_to_the_nearest_half_and_all_else_stays(value):
    kernel = np.full((1, 1, 1, 1), value, np.float32)
    assert half(kernel).dtype == np.float16
    assert abs(float(half(kernel).item()) - value) <= max(abs(value) * 2**-11, 2**-25)
    assert np.array_equal(half(kernel[0]), kernel[0])


def test_a_copy_is_a_saved_network_that_names_what_it_is_rounded_from(tiny_run, tmp_path):
    run, copy, again = tiny_run(), tmp_path / "copy", tmp_path / "again"
    for folder in (copy, again):
        folder.mkdir()
        shutil.copy(run / "config.json", folder)
    assert write_rounded(run, copy)
    assert rounded_from(copy) == trained_weights(copy) == trained_weights(run) == weights_digest(run)
    assert load_run(copy).weights == weights_digest(copy) == sha256(copy / "model.safetensors") != weights_digest(run)
    names = {name for name, each in load_file(copy / "model.safetensors").items() if each.dtype == np.float16}
    assert names == {f"net.{name}" for name, each in load_run(run).net.named_parameters() if each.dim() == 4}
    assert cascaded.load(copy).classes == cascaded.load(run).classes
    assert write_rounded(copy, again)  # it is not rounded from a rounded copy
    assert (again / "model.safetensors").read_bytes() == (copy / "model.safetensors").read_bytes()


def test_what_is_no_rounded_copy(tiny_run, tmp_path):
    assert rounded_from(tiny_run()) is None
    assert (rounded_from(tmp_path), trained_weights(tmp_path)) == (None, None)
    assert not write_rounded(tmp_path, tmp_path / "copy")
    file = tmp_path / "model.safetensors"
    for metadata in (None, {"cascaded": '{"rounded_from": "somewhere"}'}, {"cascaded": "{"}):
        save_file({"weight": np.ones(2, np.float32)}, file, metadata)
        assert rounded_from(tmp_path) is None
        assert trained_weights(tmp_path) == sha256(file)
    save_file({"weight": np.full((1, 1, 1, 1), 7e4, np.float32)}, file)
    refused("has weights that are too large for half precision: copy", write_rounded, tmp_path, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    file.write_bytes(b"damaged")
    assert rounded_from(tmp_path) is None


@pytest.mark.parametrize("name", ["cifar10-td0", "cifar10-shallow-deep"])
def test_shipped_networks_are_no_copies(name):
    """They are rounded as well, and everything that is known about them was measured on these weights."""
    assert rounded_from(NETWORKS / name) is None
