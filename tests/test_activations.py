"""Activations of every block at every step, compared with the outputs of the network."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from cascaded.cascade.film import still
from cascaded.data.sources import load
from cascaded.traces.activations import load_activations, save_activations
from cascaded.traces.capture import compute_activations, convergence_of, record_activations, serial_stages, stages_of
from cascaded.traces.config import Provenance, RecordingConfig
from cascaded.traces.protocols import make_protocol
from cascaded.traces.record import provenance, record
from cascaded.traces.store import load_trace
from cascaded.training.load import load_run
from tests.refused import refused
from tests.tiny_runs import tiny_run  # noqa: F401


@pytest.fixture
def run(tiny_run, tmp_path):  # noqa: F811
    folder = shutil.copytree(tiny_run("cascaded-td"), tmp_path / "run" / "0")
    return load_run(folder)


def config_of(run, schedule="cascaded"):
    return make_protocol(run, RecordingConfig(schedule=schedule)).config


@torch.no_grad()
def test_the_last_block_is_the_input_of_the_output_layer(run):
    images = torch.rand(3, *run.inputs.shape)
    for schedule in ("cascaded", "serial"):
        logits, stages = stages_of(run.net, images, config_of(run, schedule))
        assert len(stages) == len(run.net.blocks) + 1
        for t, features in enumerate(stages[-1], start=1):
            output = run.net.readout(still(features, steps=1, start=t))[0]
            torch.testing.assert_close(output, logits[t - 1])


@torch.no_grad()
def test_block_k_of_a_cascade_has_converged_at_step_k_plus_1_and_not_before(run):
    _, stages = stages_of(run.net, torch.rand(4, *run.inputs.shape), config_of(run))
    convergence = convergence_of(stages)
    assert (convergence[:, :, 0] == 1).all()  # the stem is final at once
    for k in range(1, len(stages)):
        assert (convergence[0, :, k] == 0).all()
        torch.testing.assert_close(convergence[k:, :, k], torch.ones_like(convergence[k:, :, k]), atol=1e-3, rtol=0)
        assert (convergence[k - 1, :, k] < 0.999).any()


def test_with_shallow_deep_heads_blocks_that_are_not_computed_are_zero(tiny_run):  # noqa: F811
    run = load_run(tiny_run("shallow-deep"))
    with torch.no_grad():
        stages = serial_stages(run.net, torch.rand(2, *run.inputs.shape), len(run.net.blocks) + 1)
    for k, stage in enumerate(stages):
        assert not stage[:k].any()
        assert stage[k:].any()
        assert (stage[k:] == stage[-1]).all()


def test_a_serial_network_is_computed_block_by_block(tiny_run):  # noqa: F811
    run = load_run(tiny_run("serial-td-multihead"))
    images = load("digits", "test").select(torch.arange(5))
    found = compute_activations(run, images, config_of(run, "serial"), Provenance())
    assert (found.convergence == np.tri(*found.convergence.shape[::2])[:, None]).all()
    assert len(found.cascaded) == 0
    assert (found.serial == np.tri(len(found.serial), len(found.serial) - 1, -1)).all()


def test_activations_come_back_from_their_file(run, tmp_path):
    images = load("digits", "test").select(torch.arange(11))
    before = compute_activations(run, images, config_of(run), Provenance(run="here"))
    save_activations(before, tmp_path / "a.safetensors")
    back = load_activations(tmp_path / "a.safetensors")
    assert (back.config, back.provenance) == (before.config, before.provenance)
    assert (back.images == images.images.numpy()).all()
    assert (back.maps == before.maps).all()
    assert back.maps.max() == 255
    np.testing.assert_allclose(back.cascaded, back.convergence[:, :8, 1:].mean(axis=1), atol=1e-6)


def test_recording_takes_the_same_number_per_class_and_skips_finished_files(run):
    config = RecordingConfig(max_images=60, activations=20)
    trace, file = record(run, config)
    whole = load_trace(trace)
    assert file == run.folder / "activations" / "digits-test-osd-9.safetensors"
    found = load_activations(file)
    items = [whole.indices.tolist().index(each) for each in found.indices]
    np.testing.assert_allclose(found.logits, whole.logits[:, items], atol=1e-4)
    assert np.bincount(found.labels).tolist() == [2] * 10
    assert (found.config.activations, found.config.data, found.config.steps) == (20, "digits", 9)
    assert record(run, config) == {trace: False, file: False}
    assert record(run, replace(config, activations=30)) == {trace: False, file: True}
    assert len(load_activations(file).labels) == 30


def test_images_of_other_classes_are_refused(run):
    images = replace(load("digits", "test"), name="strange", classes=tuple("abcdefghij"))
    source = provenance(run, images, torch.arange(5))
    message = r"strange has other classes than .* was trained on.*: leave out --activations"
    refused(message, record_activations, run, images, config_of(run), source)
