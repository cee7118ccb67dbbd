"""States: what every block holds at every step, against the network's own answers."""

import shutil

import numpy as np
import pytest
import torch

from cascaded import OneStepDelay
from cascaded.cascade.film import still
from cascaded.cli.record import Showing, check_states, record_run
from cascaded.data.sources import load
from cascaded.errors import InputError
from cascaded.traces.activations import nearness_of, record_states, serial_stages, stages_of, watched
from cascaded.traces.config import Origin
from cascaded.traces.protocols import Still
from cascaded.traces.states_file import load_states, save_states
from cascaded.training.load import load_run
from tests.tiny_runs import tiny_run  # noqa: F401


@pytest.fixture
def run(tiny_run, tmp_path):  # noqa: F811
    folder = shutil.copytree(tiny_run("cascaded-td"), tmp_path / "run" / "0")
    return load_run(folder)


def view_of(run, schedule="cascaded"):
    return Still(OneStepDelay(), schedule, len(run.net.blocks) + 1)


@torch.no_grad()
def test_what_the_last_block_holds_is_what_the_head_reads(run):
    images = torch.rand(3, *run.inputs.shape)
    for schedule in ("cascaded", "serial"):
        logits, stages = stages_of(run.net, images, view_of(run, schedule))
        assert len(stages) == len(run.net.blocks) + 1
        for t, features in enumerate(stages[-1], start=1):
            said = run.net.readout(still(features, steps=1, start=t))[0]
            torch.testing.assert_close(said, logits[t - 1])


@torch.no_grad()
def test_states_are_those_of_a_network_that_is_run_step_by_step(run):
    images, state, last = torch.rand(2, *run.inputs.shape), None, []
    for _ in range(len(run.net.blocks) + 1):
        _, state = run.net.step(images, state)
        last.append(state.features)
    _, stages = stages_of(run.net, images, view_of(run))
    torch.testing.assert_close(stages[-1], torch.stack(last))


@torch.no_grad()
def test_block_k_of_a_cascade_has_come_all_the_way_at_step_k_plus_1_and_not_before(run):
    _, stages = stages_of(run.net, torch.rand(4, *run.inputs.shape), view_of(run))
    nearness = nearness_of(stages)
    assert (nearness[:, :, 0] == 1).all()  # the stem has nowhere to go
    for k in range(1, len(stages)):
        assert (nearness[0, :, k] == 0).all()
        torch.testing.assert_close(nearness[k:, :, k], torch.ones_like(nearness[k:, :, k]), atol=1e-3, rtol=0)
        assert (nearness[k - 1, :, k] < 0.999).any()


def test_heads_on_each_blocks_own_features_leave_nothing_beyond_what_was_computed(tiny_run):  # noqa: F811
    run = load_run(tiny_run("shallow-deep"))
    with torch.no_grad():
        stages = serial_stages(run.net, torch.rand(2, *run.inputs.shape), len(run.net.blocks) + 1)
    for k, film in enumerate(stages):
        assert not film[:k].any()
        assert film[k:].any()
        assert (film[k:] == film[-1]).all()


def test_a_serial_network_is_computed_block_by_block(tiny_run):  # noqa: F811
    run = load_run(tiny_run("serial-td-multihead"))
    images = load("digits", "test").select(torch.arange(5))
    states = watched(run, images, view_of(run, "serial"), Origin())
    assert (states.nearness == np.tri(*states.nearness.shape[::2])[:, None]).all()
    assert len(states.cascaded) == 0
    assert (states.serial == np.tri(len(states.serial), len(states.serial) - 1, -1)).all()


def test_states_come_back_from_their_file_as_they_were(run, tmp_path):
    images = load("digits", "test").select(torch.arange(11))
    states = watched(run, images, view_of(run), Origin(run="here", data="digits"))
    save_states(states, tmp_path / "states.safetensors")
    back = load_states(tmp_path / "states.safetensors")
    assert back.origin == states.origin
    assert (back.images == images.images.numpy()).all()
    assert (back.maps == states.maps).all()
    assert back.maps.max() == 255
    np.testing.assert_allclose(back.cascaded, back.nearness[:, :8, 1:].mean(axis=1), atol=1e-6)


def test_recording_keeps_as_many_of_every_class_and_skips_what_is_there(run):
    files = record_run(run, Showing(limit=60), states=20)
    file = next(file for file in files if file.parent.name == "states")
    assert files[file]
    states = load_states(file)
    assert np.bincount(states.labels).tolist() == [2] * 10
    again = record_run(run, Showing(limit=60), states=20)
    assert not any(again.values())
    images = load("digits", "test")
    more, new = record_states(run, images, view_of(run), torch.arange(len(images)), 30)
    assert new
    assert len(load_states(more).labels) == 30


def test_what_is_said_in_a_trace_is_what_is_said_in_states(run):
    from cascaded import load_trace

    files = [*record_run(run, Showing(), states=10)]
    trace, states = load_trace(files[0]), load_states(files[1])
    items = [trace.indices.tolist().index(each) for each in states.indices]
    np.testing.assert_allclose(states.logits, trace.logits[:, items], atol=1e-4)


def test_states_that_cannot_be_are_refused(tmp_path):
    with pytest.raises(InputError, match="--states is 0: give a number of images"):
        check_states(0, None)
    with pytest.raises(InputError, match="--states are of still images, --noise is occlusion"):
        check_states(3, "occlusion")
    with pytest.raises(InputError, match="cannot be read"):
        load_states(tmp_path / "none")
    (tmp_path / "odd").write_bytes(b"what is this")
    with pytest.raises(InputError, match="record it again with --states"):
        load_states(tmp_path / "odd")


def test_states_of_images_of_other_classes_are_refused(run):
    from dataclasses import replace

    images = load("digits", "test")
    strange = replace(images, name="strange", classes=tuple("abcdefghij"))
    with pytest.raises(InputError, match=r"strange has other classes than .* was trained on.*: leave out --states"):
        record_states(run, strange, view_of(run), torch.arange(len(images)), 5)
