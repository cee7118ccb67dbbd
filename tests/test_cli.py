"""The command line as a newcomer types it, right and wrong."""

import json
import os
import subprocess
import sys

import pytest

from cascaded.cli import main as cli
from cascaded.cli.main import COMMANDS


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def started(*arguments, **options):
    """The command line in a process of its own, as a shell starts it."""
    command = [sys.executable, "-m", "cascaded", *arguments]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, timeout=300, **options)


@pytest.fixture
def cascaded(monkeypatch):
    """The command line in this process, which has torch already."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["cascaded", *arguments])
        cli.main()

    return run


HELPING = """
import io, json, sys
from contextlib import redirect_stdout
from cascaded.cli.main import main

output = {}
for words in json.loads(sys.argv[1]):
    sys.argv, code = ["cascaded", *words], 0
    with redirect_stdout(io.StringIO()) as printed:
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    output[" ".join(words)] = code, printed.getvalue(), "torch" in sys.modules
print(json.dumps(output))
"""
HELP = [["--version"], ["--help"], *([name, "--help"] for name in COMMANDS)]


@pytest.fixture(scope="module")
def helped():
    """Exit code, output and whether torch was imported, for every way to get help; all in one process."""
    command = [sys.executable, "-c", HELPING, json.dumps(HELP)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout)


def test_help_lists_every_command_with_an_example(helped):
    code, output, _ = helped["--help"]
    assert code == 0
    assert all(name in output for name in COMMANDS)
    assert "Example:" in output


def test_a_reader_who_has_had_enough_sees_no_traceback():
    reading, writing = os.pipe()
    os.close(reading)
    output = started("--help", stdout=writing, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    os.close(writing)
    assert output.returncode == 141
    assert output.stderr == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name, helped):
    code, output, _ = helped[f"{name} --help"]
    assert code == 0
    assert f"Example: cascaded {name}" in output


@pytest.mark.parametrize("name", ["predict", "models", "latency"])
def test_help_shows_what_happens_by_default_and_never_none(name, helped):
    _, output, _ = helped[f"{name} --help"]
    words = " ".join(output.replace("│", " ").split())
    assert "(default:" in words
    assert "(default: None)" not in words
    assert "(default: )" not in words


@pytest.mark.parametrize("words", [" ".join(words) for words in HELP])
def test_help_does_not_import_torch(words, helped):
    code, _, torch_is_there = helped[words]
    assert (code, torch_is_there) == (0, False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no command given: give one of demo"),
        (["bnech"], "there is no command 'bnech': did you mean bench?"),
        (["xyz"], "there is no command 'xyz': see cascaded --help"),
        (["bench", "--width", "0"], "--width is 0: give numbers of at least 1"),
        (["bench", "--batch-size"], "--batch-size is empty: give numbers of at least 1"),
        (["bench", "--repeats", "0"], "--repeats is 0: give numbers of at least 1"),
        (["bench", "--json", os.curdir], "a folder: give the name of a file in it"),
        (["bench", "--json", "/proc/nowhere/bench.json"], "cannot be written"),
        (["bench", "--image-size", "1", "--batch-size", "1"], "give a batch size of at least 2"),
        (["bench", "--arch", "alexnet"], "resnet18"),
        (["train", "--data", "cifar11"], "there is no data set 'cifar11': did you mean cifar10?"),
        (["train", "--data", "no/such/folder"], "there is no file or folder no/such/folder"),
        (["train", "--method", "cascaded-ce", "--lam", "0"], "cascaded-ce is trained on the last step only"),
        (["train", "--lam", "half"], "--lam is 'half': give a number"),
        (["train", "--method", "td"], "cascaded-td"),
        (["train", "--lr", "-1"], "lr is -1.0: give a positive number"),
        (["train", "--threads", "0"], "threads is 0: give at least 1"),
        (["train", "--device", "toaster"], "give auto, cpu, cuda"),
        (["train", "--label-column", "foo"], "has no column 'foo'"),
        (["train", "--noise", "fog"], "fog"),
        (["train", "--out", "/proc/nowhere"], "cannot be written"),
        (["sweep", "--num-workers", "0"], "num_workers is 0: give at least 1"),
        (["sweep", "--seeds"], "--seeds is empty: give at least one"),
        (["sweep", "--methods", "cascaded-td", "--lam", "7"], "lam is 7.0"),
        (["sweep", "--lr", "0"], "lr is 0.0"),
        (["data", "show"], "show needs a data set"),
        (["data", "show", "digts"], "did you mean digits?"),
    ],
)
def test_wrong_commands_end_in_a_sentence_and_exit_code_two(arguments, message, cascaded, capsys):
    with pytest.raises(SystemExit) as ended:
        cascaded(*arguments)
    assert ended.value.code == 2
    output = capsys.readouterr().err
    assert message in output
    assert output.startswith("cascaded: ")
    assert output.count("\n") == 1


def test_a_wrong_command_shows_no_traceback():
    output = started("bench", "--width", "0")
    assert output.returncode == 2
    assert output.stderr == "cascaded: --width is 0: give numbers of at least 1\n"


def test_train_from_nothing_then_again(tmp_path, cascaded, capsys):
    words = [
        "train",
        "--data",
        "digits",
        "--max-images",
        "64",
        "--epochs",
        "1",
        "--width",
        "2",
        "--batch-size",
        "32",
        "--out",
    ]
    cascaded(*words, str(tmp_path / "runs"))
    output = capsys.readouterr().out
    assert "test accuracy" in output
    assert f"wrote {tmp_path / 'runs' / '0'}" in output
    with pytest.raises(SystemExit) as ended:
        cascaded(*words, str(tmp_path / "runs"))
    assert ended.value.code == 2
    assert "contains this run already: resume it with" in capsys.readouterr().err
