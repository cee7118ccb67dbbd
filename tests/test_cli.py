"""The command line as a newcomer types it, right and wrong."""

import json
import os
import subprocess
import sys

import pytest

from cascaded import cli
from cascaded.cli import COMMANDS


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def cascaded(*arguments, **options):
    command = [sys.executable, "-m", "cascaded", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **options)


def test_help_lists_every_command_with_an_example():
    told = cascaded("--help")
    assert told.returncode == 0
    assert all(name in told.stdout for name in COMMANDS)
    assert "Example:" in told.stdout


def test_a_reader_who_has_had_enough_sees_no_traceback():
    command = [sys.executable, "-m", "cascaded", "--help"]
    reading, writing = os.pipe()
    os.close(reading)
    told = subprocess.run(
        command, stdout=writing, stderr=subprocess.PIPE, check=False, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    os.close(writing)
    assert told.returncode == 141
    assert told.stderr == b""


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name):
    told = cascaded(name, "--help")
    assert told.returncode == 0
    assert f"Example: cascaded {name}" in told.stdout


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)])
def test_help_does_not_import_torch(arguments):
    program = (
        "import sys, atexit, cascaded.cli; atexit.register(lambda: print('torch' in sys.modules)); cascaded.cli.main()"
    )
    told = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert told.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no command given: say one of demo"),
        (["bnech"], "there is no command 'bnech': say bench?"),
        (["xyz"], "there is no command 'xyz': see cascaded --help"),
        (["bench", "--width", "0"], "--width is 0: give numbers of at least 1"),
        (["bench", "--batch"], "--batch is empty: give numbers of at least 1"),
        (["bench", "--repeats", "0"], "--repeats is 0: give numbers of at least 1"),
        (["bench", "--json", os.curdir], "a folder: give the name of a file in it"),
        (["bench", "--json", "/proc/nowhere/bench.json"], "which cannot be written"),
        (["bench", "--size", "1", "--batch", "1", "--no-memory"], "give a batch of at least 2"),
        (["bench", "--widht", "3"], "Perhaps you meant"),
        (["bench", "--width", "wide"], "--width"),
        (["bench", "--model", "alexnet"], "resnet18"),
        (["train", "--data", "cifar11"], "there is no data set 'cifar11': say cifar10?"),
        (["train", "--data", "no/such/folder"], "there is no file or folder no/such/folder"),
        (["train", "--model", "cascaded-ce", "--lam", "0"], "cascaded-ce learns from the last step alone"),
        (["train", "--lam", "half"], "--lam is 'half': give a number"),
        (["train", "--model", "td"], "cascaded-td"),
        (["train", "--rate", "-1"], "rate is -1.0: give a positive number"),
        (["train", "--threads", "0"], "--threads is 0: give at least 1"),
        (["train", "--device", "toaster"], "say auto, cpu, cuda"),
        (["train", "--label", "foo"], "digits has no column 'foo'"),
        (["train", "--noise", "fog"], "fog"),
        (["train", "--out", "/proc/nowhere"], "cannot be written"),
        (["sweep", "--jobs", "0"], "--jobs is 0: give at least 1"),
        (["sweep", "--seeds"], "--seeds is empty: give at least one"),
        (["sweep", "--models", "cascaded-td", "--lam", "7"], "lam is 7.0"),
        (["sweep", "--rate", "0"], "rate is 0.0"),
        (["data", "show"], "show needs a data set"),
        (["data", "show", "digts"], "say digits?"),
    ],
)
def test_wrong_commands_end_in_a_sentence_and_exit_code_two(arguments, message, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["cascaded", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_a_wrong_command_shows_no_traceback():
    told = cascaded("train", "--data", "cifar11")
    assert told.returncode == 2
    assert told.stderr == "cascaded: there is no data set 'cifar11': say cifar10?\n"


def test_bench_writes_what_it_shows(tmp_path):
    small = ["--width", "2", "--batch", "4", "--size", "16", "--repeats", "1", "--threads", "1", "--no-memory"]
    told = cascaded("bench", *small, "--record", "10", "--json", str(tmp_path / "new" / "bench.json"))
    assert told.returncode == 0, told.stderr
    assert "faster than loop" in told.stdout
    assert "recording 10 images at width 2" in told.stdout
    assert f"wrote {tmp_path / 'new' / 'bench.json'}" in told.stdout.replace("\n", "")
    written = json.loads((tmp_path / "new" / "bench.json").read_text())
    assert [setting["task"] for setting in written["settings"]] == ["train", "evaluate"]
    assert [each["items"] for each in written["recording"]] == [10]
    assert set(written["analyses"]) >= {"speed_accuracy", "prototypicality"}


def test_train_from_nothing_then_again(tmp_path):
    words = ["train", "--data", "digits", "--limit", "64", "--epochs", "1", "--width", "2", "--batch", "32", "--out"]
    told = cascaded(*words, str(tmp_path / "runs"))
    assert told.returncode == 0, told.stderr
    assert "test accuracy" in told.stdout
    assert f"wrote {tmp_path / 'runs' / '0'}" in told.stdout
    again = cascaded(*words, str(tmp_path / "runs"))
    assert again.returncode == 2
    assert "holds this run already: say --resume" in again.stderr
