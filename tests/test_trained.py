"""A trained network from its folder: the one that was trained, and nothing else."""

import re
import shutil

import pytest
import torch

import cascaded
from cascaded.data.sources import load
from cascaded.files import read_json, sha256, write_json
from cascaded.shell import program
from cascaded.training import checkpoint
from cascaded.training.load import load_run
from cascaded.training.runs import checkpoint_places, find_runs, is_done, read_metrics, weights_digest
from tests.refused import refused
from tests.tiny_runs import tiny_run as tiny_run


@pytest.fixture
def own_copy(tiny_run, tmp_path):
    """A run that a test may spoil."""
    return shutil.copytree(tiny_run(), tmp_path / "0")


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("cascaded-td", {}),
        ("cascaded-td", {"ema": 0.9, "pool": False}),
        ("cascaded-ce", {"ema": 0.5}),
        ("cascaded-ce", {"fill_statistics": True}),
        ("serial-td-multihead", {}),
        ("shallow-deep", {"pool": False}),
    ],
)
@torch.no_grad()
def test_the_network_is_right_exactly_as_often_as_when_it_was_trained(tiny_run, model, options):
    run = load_run(tiny_run(model, **options))
    assert any(isinstance(layer, torch.nn.MaxPool2d) for layer in run.net.stem) == options.get("pool", True)
    assert not any(module.training for module in run.net.modules())
    test = load("digits", "test")
    predictions = run.net(run.normalized(test.images), schedule=run.config.get_method().schedule).argmax(dim=-1)
    right = (predictions == test.labels).double().mean(dim=1)
    assert right.tolist() == read_metrics(run.folder)[-1]["test"]
    assert (run.step, run.inputs.shape, run.inputs.classes) == (10, (1, 8, 8), test.classes)
    assert (run.config.data, run.config.method, run.config.seed) == ("digits", model, 0)


@torch.no_grad()
def test_a_run_trained_on_the_last_step_is_loaded_with_the_statistics_of_that_step_only(tiny_run, tmp_path):
    """Earlier runs of cascaded-ce have filled statistics, and no such field in config.json."""
    filled = load_run(tiny_run("cascaded-ce", fill_statistics=True))
    earlier = shutil.copytree(filled.folder, tmp_path / "0")
    content = read_json(earlier / "config.json")
    del content["config"]["fill_statistics"]
    write_json(earlier / "config.json", content)
    images = torch.randn(4, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    found, all_rows = load_run(earlier).net(images), filled.net(images)
    assert torch.equal(found[-1], all_rows[-1])
    assert not torch.allclose(found[1], all_rows[1])


@pytest.mark.parametrize("bytes_or_floats", [True, False])
def test_images_are_normalized_by_what_was_trained_on_stills_and_films_alike(tiny_run, bytes_or_floats):
    run = load_run(tiny_run())
    pixels = torch.randint(0, 256, (3, 2, 1, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    film = run.normalized(pixels if bytes_or_floats else pixels / 255)
    expected = (pixels / 255 - run.inputs.mean[0]) / run.inputs.std[0]
    torch.testing.assert_close(film, expected, rtol=1e-5, atol=1e-5)
    for frame, each in zip(film, pixels, strict=True):
        assert torch.equal(run.normalized(each if bytes_or_floats else each / 255), frame)


def test_a_damaged_checkpoint_does_not_count_for_the_digest(own_copy):
    before = weights_digest(own_copy)
    assert load_run(own_copy).weights == sha256(checkpoint_places(own_copy)[-1] / "model.safetensors") == before
    later = shutil.copytree(checkpoint_places(own_copy)[-1], own_copy / "checkpoints" / "000000099")
    (later / "model.safetensors").write_bytes(b"damaged")
    assert weights_digest(own_copy) == before
    shutil.rmtree(own_copy / "checkpoints")
    assert weights_digest(own_copy) is None


@torch.no_grad()
def test_a_saved_network_is_a_run_without_checkpoints(tiny_run, tmp_path):
    cascaded.load(tiny_run()).save_pretrained(tmp_path / "saved")
    run, saved = load_run(tiny_run()), load_run(tmp_path / "saved")
    assert (saved.config, saved.inputs, saved.step) == (run.config, run.inputs, 0)
    assert saved.weights == sha256(tmp_path / "saved" / "model.safetensors") == weights_digest(tmp_path / "saved")
    images = run.normalized(load("digits", "test").images[:4])
    assert torch.equal(saved.net(images), run.net(images))
    assert find_runs([tmp_path]) == [tmp_path / "saved"]
    assert is_done(tmp_path / "saved")


def test_the_newest_checkpoint_counts(own_copy):
    before = load_run(own_copy)
    now = checkpoint.newest(own_copy)
    model = {name: each + 1 if "linear" in name else each for name, each in now.model.items()}
    checkpoint.save(own_copy, 99, model, now.optimizer, {**now.position, "step": 99})
    after = load_run(own_copy)
    assert after.step == 99
    assert after.weights != before.weights
    assert torch.equal(after.net.readout.linear.bias, before.net.readout.linear.bias + 1)


def test_runs_and_networks_of_version_0_1_are_refused(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "spec.json").write_text("{}")
    for read in (load_run, lambda folder: find_runs([folder]), cascaded.load):
        refused(r"run is a run of cascaded 0\.1, which this version does not read", read, tmp_path / "run")
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "config.json").write_text('{"spec": {}, "inputs": {}}')
    refused(r"saved is a network of cascaded 0\.1", load_run, tmp_path / "saved")


def test_folders_that_cannot_be_loaded_are_refused(own_copy, tmp_path):
    refused(r"contains no run, there is no config\.json: give OUT/SEED of a cascaded train", load_run, tmp_path)
    content = read_json(own_copy / "config.json")
    write_json(own_copy / "config.json", {**content, "config": {**content["config"], "width": 8}})
    refused(r"are of another network .*: bring back those of its config\.json", load_run, own_copy)
    shutil.rmtree(own_copy / "checkpoints")
    command = re.escape(f"{program()} train --resume {own_copy}")
    refused(f"has no checkpoint yet.*: wait for the first one, or run {command}", load_run, own_copy)
    write_json(own_copy / "config.json", {"config": content["config"]})
    refused(r"config\.json does not describe a run \(it has no config and inputs\)", load_run, own_copy)


def test_images_of_another_shape_or_range_are_refused_with_both(tiny_run):
    run = load_run(tiny_run())
    for shape, found in (((2, 3, 8, 8), "3 channels of 8 x 8"), ((8, 8), "8 x 8 without channels")):
        message = f"^images are {found}, {run.folder} was trained on 1 channel of 8 x 8: resize them to that$"
        refused(message, run.normalized, torch.zeros(shape))
    message = r"^images are floats from 0 to 255, .* normalized already give them to run\.net$"
    refused(message, run.normalized, torch.tensor([0.0, 255.0]).repeat(1, 1, 8, 4))
    assert run.normalized(torch.zeros(0, 1, 8, 8)).shape == (0, 1, 8, 8)
