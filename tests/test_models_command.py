"""`cascaded models`: the list, one network, and saving one."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import cascaded
from cascaded.cli.models import models
from cascaded.errors import InputError
from cascaded.hub.locate import shipped
from cascaded.shell import program
from tests.made_networks import made, made_run, pixels


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
    with pytest.raises(InputError, match="--save is my-network, which exists: give a new folder"):
        models("cifar10-td0", save=Path("my-network"))


@torch.no_grad()
def test_a_folder_with_a_shipped_name_can_be_loaded_as_printed(capsys):
    net = made()
    made_run(Path("runs/td0/0"), net)
    models("runs/td0/0", save=Path("cifar10-td0"))
    out = capsys.readouterr().out
    assert "--model ./cifar10-td0\n" in out
    (location,) = re.findall(r"cascaded\.load\('(.*)'\)", out)
    assert torch.equal(cascaded.load(location)(pixels()), net(pixels()))


def test_saving_needs_a_network():
    with pytest.raises(InputError, match="--save is out, but no network is given: give one"):
        models(save=Path("out"))
