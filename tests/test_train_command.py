"""`cascaded train` as a user types it: small folders, resuming, and what is printed."""

import shlex
import shutil
import sys
from dataclasses import replace

import pytest

from cascaded import load_run
from cascaded.cli import main as cli
from cascaded.shell import program
from cascaded.training.config import RECIPES, train_args
from cascaded.training.fit import fit
from cascaded.training.runs import is_done, read_config
from tests.pictures import image_folder
from tests.queues import fork
from tests.tiny_data import tiny_data
from tests.tiny_runs import tiny_run as tiny_run

EXECUTED = ["--device", "cpu", "--threads", "1"]


@pytest.fixture
def cascaded(tmp_path, monkeypatch):
    """The command line in this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["cascaded", *words])
        cli.main()

    return run


@pytest.fixture
def refused(cascaded, capsys):
    """What is printed when a command is refused."""

    def run(*words):
        with pytest.raises(SystemExit) as ended:
            cascaded(*words)
        assert ended.value.code == 2
        return capsys.readouterr().err

    return run


@pytest.fixture
def unfinished(tiny_run, tmp_path):
    """A run of seed 3 in runs/mine that has no checkpoint yet; and the one it should become."""
    expected = tiny_run(seed=3)
    folder = shutil.copytree(expected, tmp_path / "runs" / "mine" / "3")
    shutil.rmtree(folder / "checkpoints")
    (folder / "metrics.jsonl").unlink()
    return folder, expected


@pytest.mark.parametrize(
    "words", [["--resume", "runs/mine"], ["--resume", "runs/mine/3"], ["--resume", "--out", "runs/mine"]]
)
def test_a_run_is_resumed_with_the_options_of_its_own_file(words, unfinished, cascaded):
    folder, expected = unfinished
    cascaded("train", *words, *EXECUTED, "--checkpoint-seconds", "30")
    assert is_done(folder)
    assert load_run(folder).weights == load_run(expected).weights


def test_options_that_differ_from_the_run_are_refused_with_both_values(unfinished, refused):
    output = refused("train", "--resume", "runs/mine", "--epochs", "7", "--data", "cluttered-digits", "--width", "4")
    assert "runs/mine/3 is another run (data digits -> cluttered-digits, epochs 1 -> 7): leave these" in output
    assert "(arch resnet18 -> resnet34)" in refused("train", "--resume", "runs/mine", "--arch", "resnet34")
    assert "(seed 3 -> 0)" in refused("train", "--resume", "runs/mine/3", "--seed", "0")  # though 0 is the default
    output = refused("train", "--resume", "runs/mine", "--out", "runs/other")
    assert "--resume is runs/mine and --out is runs/other: give one" in output


def test_a_run_whose_data_is_not_here_is_refused_with_where_it_is(unfinished, refused):
    file = unfinished[0] / "config.json"
    file.write_text(file.read_text().replace('"digits"', '"photos"'))
    message = "runs/mine/3 was trained on photos, a path that does not exist from here: run this command from the"
    assert message in refused("train", "--resume", "runs/mine")
    assert "there is no data set 'photos'" in refused("train", "--data", "photos")


def test_what_is_refused_leaves_nothing(refused, tmp_path):
    assert "there is no folder runs/nowhere" in refused("train", "--resume", "runs/nowhere")
    assert "there are 320 training images" in refused("train", "--max-images", "320", "--batch-size", "4000")
    assert list(tmp_path.iterdir()) == []


def test_a_small_folder_without_test_images_is_trained_and_the_next_command_works(tmp_path, cascaded, capsys):
    image_folder(tmp_path / "my images", ["dark", "light"], each=20)
    cascaded("train", "--data", "my images", "--width", "2", "--epochs", "3", "--out", "my runs", *EXECUTED)
    output = capsys.readouterr()
    config = read_config(tmp_path / "my runs" / "0")
    assert (config.batch_size, config.epochs, config.width) == (8, 3, 2)
    chosen, warning, *_ = output.err.splitlines()
    assert chosen.startswith("chosen for 36 training images: batch_size 8 (weight updates: 12; the recipe's")
    assert warning.startswith("cascaded: warning: few weight updates (12: 36 training images, batch_size 8, epochs 3)")
    lines = output.out.splitlines()
    assert "validation accuracy" in lines[0]
    assert lines[-3:] == [
        f"next: {program()} record 'my runs/0' --split validation",
        f"      {program()} analyze 'my runs/0'",
        f"      {program()} report 'my runs/0'",
    ]
    cascaded(*shlex.split(lines[-3].removeprefix(f"next: {program()} ")), *EXECUTED)
    assert list((tmp_path / "my runs" / "0" / "traces").glob("*.safetensors"))


def test_nothing_is_chosen_where_all_is_given_or_enough():
    config = replace(RECIPES["laptop"], epochs=20, batch_size=32, max_images=640)
    for given in ((), ("epochs", "batch_size")):
        chosen, lines = fit(config, given)
        assert chosen == config
        assert not [line for line in lines if line.startswith("chosen")]


@pytest.mark.parametrize("command", ["train", "sweep"])
def test_other_recipes_are_not_changed_but_few_updates_are_warned_of(command, tmp_path, cascaded, capsys, monkeypatch):
    fork(monkeypatch)
    image_folder(tmp_path / "images", ["dark", "light"], each=20)
    words = ["--data", "images", "--width", "2", "--epochs", "1", "--batch-size", "36", "--recipe", "paper"]
    cascaded(command, *words, "--out", "runs", "--threads", "1", *(["--seeds", "0"] if command == "sweep" else []))
    assert "cascaded: warning: few weight updates (1: 36 training images, batch_size 36" in capsys.readouterr().err
    (config,) = [read_config(file.parent) for file in (tmp_path / "runs").rglob("config.json")]
    assert (config.epochs, config.batch_size, config.lr_schedule) == (1, 36, "steps")


def test_the_strong_recipe_trains_in_two_phases(tmp_path, cascaded, monkeypatch):
    monkeypatch.setenv("CASCADED_DATA", str(tiny_data(tmp_path / "data")))
    one_step = ["--epochs", "1", "--batch-size", "64", *EXECUTED]  # 108 training images
    words = ["train", "--data", "cifar10", "--recipe", "strong", "--width", "4"]
    cascaded(*words, "--method", "cascaded-ce", "--out", "runs/strong-ce", *one_step)
    cascaded(*words, "--init-from", "runs/strong-ce/0", "--lr", "0.05", "--out", "runs/strong", *one_step)
    first, second = (load_run(tmp_path / "runs" / name / "0") for name in ("strong-ce", "strong"))
    assert (first.step, second.step) == (1, 1)
    assert second.config.init_from == first.weights
    strong = replace(RECIPES["strong"], data="cifar10", width=4, epochs=1, batch_size=64)
    assert first.config == replace(strong, method="cascaded-ce")
    assert second.config == replace(strong, init_from=first.weights, lr=0.05)
    assert train_args(RECIPES["strong"]) == ["--recipe", "strong"]


@pytest.mark.parametrize("recipe", RECIPES)
def test_help_shows_the_values_of_the_recipe(recipe, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for name in ("sweep", "train"):
        with pytest.raises(SystemExit):
            cli.run([name, "--recipe", recipe, "--help"])
        out = capsys.readouterr().out
        assert "None" not in out, name
    assert f"Channels of the first stage. (default: {RECIPES[recipe].width})" in out
    assert f"chooses more. (default: {RECIPES[recipe].epochs})" in out
