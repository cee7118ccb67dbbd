"""`cascaded models` as a newcomer types it, and the cards of networks."""

import re
import shlex
from dataclasses import replace
from io import StringIO
from itertools import chain
from pathlib import Path

import pytest
import torch
import tyro
from huggingface_hub import ModelCard
from rich.console import Console

import cascaded
from cascaded.cli.models import models
from cascaded.errors import InputError
from cascaded.hub.card import command, model_card
from cascaded.hub.shipped import HEADINGS, listed, names
from cascaded.shell import program
from cascaded.training.config import RECIPES, RunConfig
from tests.made_networks import made, made_run, pixels
from tests.tiny_runs import tiny_config


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_list_has_a_row_a_network_with_three_accuracies(capsys):
    models()
    told = capsys.readouterr().out
    for name in names():
        assert re.search(rf"^ *{name} +\S.* +\d\.\d MB( +[\d.]+%){{3}} *$", told, flags=re.MULTILINE)
    assert f"next: {program()} models NAME" in told


@pytest.fixture
def shown(monkeypatch):
    """What a terminal of so many columns shows, as lines of words without colours."""

    def show(columns, *asked):
        console = Console(width=columns, force_terminal=True, file=StringIO(), highlight=False)
        monkeypatch.setattr("cascaded.cli.models.wide_console", lambda: console)
        models(*asked)
        return [line.split() for line in re.sub(r"\x1b\[[\d;]*m", "", console.file.getvalue()).splitlines()]

    return show


def test_a_terminal_of_80_columns_shows_the_list_whole(shown):
    heading, *rows = shown(80)[:-1]
    assert heading == " ".join(HEADINGS).split()
    assert rows == [" ".join(row).split() for row in listed()]


@pytest.mark.parametrize(("columns", "tables"), [(80, 1), (60, 2), (20, 9)])
def test_no_accuracy_is_cut_however_narrow_the_terminal(columns, tables, shown):
    lines = shown(columns, "cifar10-td0")
    steps = [line[1:] for line in lines if line[0] == "step"]
    told = [line[2:] for line in lines if line[:2] == ["test", "accuracy"]]
    assert list(chain(*steps)) == list("123456789")
    assert list(chain(*told)) == [f"{each:.1%}" for each in cascaded.load("cifar10-td0").accuracy]
    assert len(told) == tables


def test_what_strangers_write_does_not_reach_the_terminal(capsys):
    net = made(data="my\x1b]0;data", noise="\x1b[5mfocus")
    net.inputs = replace(net.inputs, classes=("\x1b[31mred", "half \ud800", *"23456789"))
    net.save_pretrained("mi\x1b[2Jne")
    models("mi\x1b[2Jne", save=Path("again"))
    told = capsys.readouterr().out
    assert "\x1b" not in told
    for each in ("mi\ufffd[2Jne\n", "my\ufffd]0;data", "\ufffd[5mfocus", "\ufffd[31mred, half \ufffd, 2"):
        assert each in told
    assert "\x1b" not in Path("again/README.md").read_text(encoding="utf-8")
    assert cascaded.load("again").inputs == net.inputs


def test_one_network_is_told_with_every_step(capsys):
    models("cifar10-td0")
    told = capsys.readouterr().out
    net = cascaded.load("cifar10-td0")
    assert "CascadedTD(0), cascaded-td" in told
    assert ", ".join(net.classes) in told
    assert all(f"{each:.1%}" in told for each in net.accuracy)
    assert f"{program()} predict photo.jpg --model cifar10-td0" in told


@pytest.mark.parametrize("place", ["runs/td0/0", "runs/td0"])
@torch.no_grad()
def test_a_run_is_saved_and_loads_by_what_is_said(place, capsys):
    net = made()
    made_run(Path("runs/td0/0"), net)
    models(place, save=Path("my-network"))
    told = capsys.readouterr().out
    assert "its test accuracy is not known\n" in told
    assert "wrote my-network: README.md, config.json, model.safetensors" in told
    assert 'cascaded.load("my-network")' in told
    assert torch.equal(cascaded.load("my-network")(pixels()), net(pixels()))
    with pytest.raises(InputError, match="--save is my-network, where something is already: name a new folder"):
        models("cifar10-td0", save=Path("my-network"))


@torch.no_grad()
def test_a_folder_called_like_a_network_of_the_package_loads_by_what_is_said(capsys):
    net = made()
    made_run(Path("runs/td0/0"), net)
    models("runs/td0/0", save=Path("cifar10-td0"))
    told = capsys.readouterr().out
    assert "--model ./cifar10-td0," in told
    (place,) = re.findall(r'cascaded\.load\("(.*)"\)', told)
    assert torch.equal(cascaded.load(place)(pixels()), net(pixels()))


def test_saving_needs_a_network():
    with pytest.raises(InputError, match="--save is out, and no network is named: say which"):
        models(save=Path("out"))


def test_a_card_says_what_the_hub_reads():
    card = ModelCard(str(model_card(made(accuracy=(0.5, 0.75), data="cifar10"), "me/mine")))
    assert (card.data.library_name, card.data.pipeline_tag) == ("cascaded", "image-classification")
    assert {"anytime-prediction", "pytorch_model_hub_mixin"} <= set(card.data.tags)
    assert (card.data.datasets, card.data.license) == (["uoft-cs/cifar10"], None)
    (result,) = card.data.eval_results
    assert (result.dataset_name, result.metric_type, result.metric_value) == ("cifar10", "accuracy", 0.75)
    assert 'cascaded.load("me/mine")' in card.text
    assert card.text.count("\n# ") == 1


def test_a_card_of_data_without_a_name_claims_no_data_set_of_the_hub():
    card = model_card(made("serial-ce", accuracy=(0.5,), data="my/flowers"))
    assert (card.data.datasets, card.data.eval_results) == (None, None)
    assert "# SerialCE\n\nSerialCE on my/flowers" in card.text
    assert "one after the other" in card.text


@pytest.mark.parametrize("option", [{"classes": tuple("012345")}, {"image_size": 8}, {"label_column": "coarse_label"}])
def test_a_card_claims_no_result_of_the_hub_for_another_task(option):
    card = model_card(made(accuracy=(0.5,), data="cifar100", **option))
    assert (card.data.datasets, card.data.eval_results) == (["uoft-cs/cifar100"], None)
    of = "10 of the classes of cifar100" if "classes" in option else "cifar100"
    assert f"Measured on the test images of {of}.\n" in card.text


def test_a_card_tells_what_a_network_began_with_and_what_it_has_seen():
    told = model_card(made(max_images=320, fold=(3, 10), init_from="5" * 64)).text
    assert "| limit | 320 training images, the same of every class |" in told
    assert "| fold | 3 of 10, held out of the training images |" in told
    assert f"| start | weights of another run, SHA-256 {'5' * 64} |" in told
    assert "has learned from digits: another picture" in told
    plain = model_card(made(max_images=None)).text
    assert not re.search(r"^\| (limit|fold|start|noise) \|", plain, flags=re.MULTILINE)
    assert "has learned from digits alone: another picture" in plain
    assert "Not measured.\n" in plain


@pytest.mark.parametrize(
    "config",
    [
        tiny_config(),
        tiny_config(seed=3, lam=(1.0, 0.25), cutout=0, classes=("3", "a b"), image_column="x"),
        tiny_config("shallow-deep", fold=(3, 10), max_images=None, lr_schedule="steps", noise="focus", flip=False),
        tiny_config("serial-ce", data="my pictures", arch="resnet34", image_size=16, nesterov=False),
    ],
)
def test_the_command_of_a_card_trains_the_same_run(config):
    words = shlex.split((command(config) or "").replace("\\\n", ""))
    assert words[:2] == ["cascaded", "train"]
    recipe = RECIPES["paper" if "paper" in words else "laptop"]
    words = [word for word in words[2:] if word not in ("--recipe", "paper")]
    assert tyro.cli(RunConfig, default=recipe, args=words) == config


def test_a_run_that_starts_from_another_has_no_command_in_its_card():
    assert command(tiny_config(init_from="5" * 64)) is None
    assert "cascaded train" not in model_card(made(init_from="5" * 64)).text
