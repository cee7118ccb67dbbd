"""What users give: folders with several runs or a damaged checkpoint, images in a wrong range; `cascaded models`."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import cascaded
from cascaded.cli.models import models
from cascaded.cli.predict import predict
from cascaded.errors import InputError
from cascaded.hub.locate import shipped
from cascaded.shell import program
from cascaded.training import checkpoint
from cascaded.training.checkpoint import DamagedCheckpoint
from tests.made_networks import STEP, made, made_run, pixels
from tests.pictures import encoded, picture
from tests.refused import refused


def test_a_folder_with_several_runs_is_refused_with_a_list_of_them(tmp_path):
    for name in ("a/0", "a/1", "b/0"):
        made_run(tmp_path / name, made())
    listed = ", ".join(str(tmp_path / name) for name in ("a/0", "a/1", "b/0"))
    with pytest.raises(InputError) as raised:
        cascaded.load(tmp_path)
    assert str(raised.value) == f"{tmp_path} contains 3 runs: give one of {listed}"
    for number in range(2, 10):
        made_run(tmp_path / "a" / str(number), made())
    refused(r"contains 10 runs: .*a/7 and 2 more$", cascaded.load, tmp_path / "a")


@pytest.fixture
def damaged(tmp_path):
    """A run whose newest checkpoint is damaged, and the network of the one before it."""
    net = made(accuracy=(0.5,))
    folder = made_run(tmp_path / "0", net, step=STEP + 1)
    newer = checkpoint.save(folder, STEP + 1, made(seed=1).net.state_dict(), {}, {"step": STEP + 1})
    file = newer / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    return folder, net


@torch.no_grad()
def test_an_older_checkpoint_is_used_with_one_warning_and_without_the_accuracy_of_the_newer(damaged):
    folder, net = damaged
    with pytest.warns(DamagedCheckpoint, match=rf"{STEP + 1:09d} does not fit its manifest") as warned:
        found = cascaded.load(folder)
    assert len(warned) == 1
    assert torch.equal(found(pixels()), net(pixels()))
    assert found.accuracy == ()


def test_the_commands_warn_about_a_damaged_checkpoint_once(damaged, tmp_path, capsys):
    folder, _ = damaged
    (tmp_path / "photo.png").write_bytes(encoded(picture()))
    for command in (
        lambda: predict((tmp_path / "photo.png",), model=str(folder), figure=False),
        lambda: models(str(folder)),
    ):
        with pytest.warns(DamagedCheckpoint) as warned:
            command()
        assert len(warned) == 1
        assert str(folder) in capsys.readouterr().out


def entry_points(net):
    """The functions that take images."""
    return {
        "forward": net,
        "normalized": net.prepare,
        "early exit": lambda images: cascaded.early_exit(net, images, 0.5),
    }


NORMALIZED, UNSCALED = (pixels() / 255 - 0.3) / 0.4, pixels().float()


@pytest.mark.parametrize("entry", ["forward", "normalized", "early exit"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("images", "interval"),
    [
        (NORMALIZED, r"from -0\.7\d* to 1\.7\d*"),
        (UNSCALED, "from 0 to 25[456]"),
        (pixels() / 255 + 0.1, r"from 0\.\d+ to 1\.\d+"),
        (torch.full((1, 1, 8, 8), torch.nan), "from nan to nan"),
        (torch.full((1, 1, 8, 8), torch.inf), "from inf to inf"),
    ],
)
def test_floats_outside_zero_to_one_are_refused_with_their_range(images, interval, dtype, entry):
    fix = r"bytes \(torch\.uint8\) or floats from 0 to 1: divide 0\.\.255 by 255, .*pass normalized=True"
    refused(rf"^images are floats ({interval}), .*{fix}$", entry_points(made())[entry], images.to(dtype))


def test_every_frame_of_a_sequence_is_checked():
    frames = (pixels() / 255).repeat(4, 1, 1, 1, 1)
    made()(frames)
    frames[3, 2, 0, 7, 7] = 2
    refused("to 2, this network takes", made(), frames)


@torch.no_grad()
def test_a_rounding_error_of_a_resize_is_accepted():
    images = pixels() / 255
    images[0, 0, 0, :2] = torch.tensor([-5e-4, 1 + 5e-4])
    torch.testing.assert_close(made()(images), made()(images.clamp(0, 1)), rtol=1e-2, atol=1e-2)


@torch.no_grad()
def test_normalized_images_give_the_same_outputs_with_normalized_true():
    net = made()
    torch.testing.assert_close(net(NORMALIZED, normalized=True), net(pixels()), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(net(NORMALIZED.double(), normalized=True), net(pixels()), rtol=1e-4, atol=1e-4)
    predictions = cascaded.early_exit(net, NORMALIZED, 1.0, normalized=True).predictions
    assert torch.equal(predictions, cascaded.early_exit(net, pixels(), 1.0).predictions)
    refused(
        r"images are torch\.uint8, which are not normalized: leave normalized=True out", net, pixels(), normalized=True
    )


@pytest.fixture(autouse=True)
def _in_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_list_has_one_row_per_network_with_three_accuracies(capsys):
    models()
    out = capsys.readouterr().out
    for name in shipped():
        assert re.search(rf"^ *{name} +\S.* +\d\.\d MB( +[\d.]+%){{3}} *$", out, flags=re.MULTILINE)
    assert f"next: {program()} models {shipped()[0]}" in out


def test_control_characters_in_names_and_files_are_not_printed(capsys):
    net = made(data="my\x1b]0;data")
    net.inputs = replace(net.inputs, classes=("\x1b[31mred", *"123456789"))
    net.save_pretrained("mi\x1b[2Jne")
    models("mi\x1b[2Jne", save=Path("again"))
    out = capsys.readouterr().out
    assert "\x1b" not in out
    for each in ("mi\ufffd[2Jne\n", "my\ufffd]0;data", "\ufffd[31mred, 1, 2"):
        assert each in out
    assert "\x1b" not in Path("again/README.md").read_text(encoding="utf-8")
    assert cascaded.load("again").inputs == net.inputs


def test_one_network_is_described_with_its_accuracy_per_step(capsys):
    models("cifar10-td0")
    out = capsys.readouterr().out
    net = cascaded.load("cifar10-td0")
    assert "CascadedTD(0) (cascaded-td)" in out
    assert ", ".join(net.classes) in out
    assert re.findall(r"^ +(\d) +([\d.]+%) *$", out, flags=re.MULTILINE) == [
        (str(step), f"{each:.1%}") for step, each in enumerate(net.accuracy, 1)
    ]
    assert f"{program()} predict IMAGE... --model cifar10-td0" in out


@pytest.mark.parametrize("folder", ["runs/td0/0", "runs/td0"])
@torch.no_grad()
def test_a_run_is_saved_and_can_be_loaded_as_printed(folder, capsys):
    net = made()
    made_run(Path("runs/td0/0"), net)
    models(folder, save=Path("my-network"))
    out = capsys.readouterr().out
    assert "test accuracy is not known\n" in out
    assert "wrote my-network: README.md, config.json, model.safetensors" in out
    assert "cascaded.load('my-network')" in out
    assert torch.equal(cascaded.load("my-network")(pixels()), net(pixels()))
    refused("--save is my-network, which exists: give a new folder", models, "cifar10-td0", save=Path("my-network"))


@torch.no_grad()
def test_a_folder_with_a_shipped_name_can_be_loaded_as_printed(capsys):
    net = made()
    made_run(Path("runs/td0/0"), net)
    models("runs/td0/0", save=Path("cifar10-td0"))
    out = capsys.readouterr().out
    assert "--model ./cifar10-td0\n" in out
    (location,) = re.findall(r"cascaded\.load\('(.*)'\)", out)
    assert torch.equal(cascaded.load(location)(pixels()), net(pixels()))
