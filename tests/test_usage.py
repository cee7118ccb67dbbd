"""Command lines that fit no command: one sentence each, for every command."""

import sys

import pytest

from cascaded.cli import main as cli
from cascaded.cli import usage
from cascaded.cli.main import COMMANDS
from cascaded.shell import program

WRONG = [
    ("predict x --threshold abc", f"--threshold is 'abc': give a number; see {program()} predict --help"),
    ("predict x --threshold=abc", f"--threshold is 'abc': give a number; see {program()} predict --help"),
    (
        "predict x --threshold 0.5 --threshold abc",
        f"--threshold is 'abc': give a number; see {program()} predict --help",
    ),
    ("predict x --threshold", f"--threshold has no value: give a number; see {program()} predict --help"),
    (
        "predict x --threshold 0.9 0.8",
        f"unexpected argument '0.8': leave it out, or see {program()} predict --help",
    ),
    (
        "predict x --thresholdd 0.1",
        "there is no option --thresholdd of cascaded predict: did you mean --threshold?",
    ),
    (
        "predict x --thresholdd=0.1",
        "there is no option --thresholdd of cascaded predict: did you mean --threshold?",
    ),
    ("predict x --no-figre", "there is no option --no-figre of cascaded predict: did you mean --no-figure?"),
    ("predict x --figure=yes", f"unexpected argument 'yes': leave it out, or see {program()} predict --help"),
    ("predict x -s 3", f"there is no option -s of cascaded predict: see {program()} predict --help"),
    ("train foo", f"unexpected argument 'foo': leave it out, or see {program()} train --help"),
    ("train --epochs 1.5", f"--epochs is '1.5': give a whole number; see {program()} train --help"),
    ("train --epochs", f"--epochs has no value: give a whole number; see {program()} train --help"),
    ("train --val_frac x", "there is no option --val-frac of cascaded train: did you mean --val-fraction?"),
    ("train --data", f"--data has no value: give a word; see {program()} train --help"),
    ("train --out", f"--out has no value: give a path; see {program()} train --help"),
    ("train --thr 3", "there is no option --thr of cascaded train: did you mean --threads?"),
    ("bench --widht 3", "there is no option --widht of cascaded bench: did you mean --width?"),
    ("bench --width wide 3", f"--width is 'wide 3': give whole numbers; see {program()} bench --help"),
    ("latency runs --thresholds 0.5 x", f"--thresholds is '0.5 x': give numbers; see {program()} latency --help"),
    ("train --rate 0.1", "--rate is called --lr"),
    ("train --model cascaded-td", "--model is called --method"),
    ("sweep --models cascaded-td --jobs 1", "--models is called --methods"),
    ("clock runs", "the command clock is called latency: see cascaded --help"),
    ("crossval", "the command crossval is called sweep --folds 10: see cascaded --help"),
    ("data shoe", "action is 'shoe': give one of list, show, check, noise"),
    ("data --shwo", f"there is no option --shwo of cascaded data: see {program()} data --help"),
    ("data", "action is missing: give one of list, show, check, noise"),
]


def wrong(monkeypatch, capsys, line):
    monkeypatch.setattr(sys, "argv", ["cascaded", *line.split()])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    return err


@pytest.mark.parametrize(("line", "sentence"), WRONG, ids=[line for line, _ in WRONG])
def test_a_line_that_does_not_fit_is_explained_in_one_sentence(line, sentence, monkeypatch, capsys):
    assert wrong(monkeypatch, capsys, line) == f"cascaded: {sentence}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_an_option_that_it_does_not_have_in_one_sentence(name, monkeypatch, capsys):
    output = wrong(monkeypatch, capsys, f"{name} --xyzzy 3")
    assert output == f"cascaded: there is no option --xyzzy of cascaded {name}: see {program()} {name} --help\n"


def test_a_version_of_tyro_without_the_hook_explains_it_in_a_box(monkeypatch, capsys):
    monkeypatch.delattr(usage.tyro_errors, "on_parse_error")
    assert "could not convert string to float" in wrong(monkeypatch, capsys, "predict x --threshold abc")
    monkeypatch.setattr(usage, "tyro_errors", None)
    output = wrong(monkeypatch, capsys, "predict x --threshold abc")
    assert "could not convert string to float" in output
