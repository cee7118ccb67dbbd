"""`cascaded convert`: the skip connections of a user's own model, and what its steps cost."""

import pytest

from cascaded.cli import main as cli
from cascaded.errors import InputError

MODELS = """
from torch import nn
from cascaded.models.gpt import GPT
from cascaded.models.vit import ViT

def vit():
    return ViT(5, 16, 8, depth=2, width=8, heads=2)

def gpt():
    return GPT(11, 8, depth=2, width=8, heads=2)

def number():
    return 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "users_nets.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


def test_the_table_and_the_cost_of_every_step_are_printed(folder, capsys):
    cli.run(["convert", "users_nets:vit", "--input", "2x3x16x16"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:5]] == ["layers.0", "layers.0#2", "layers.1", "layers.1#2"]
    rows = [line.split() for line in lines if line.strip()[:1].isdigit() or line.strip().startswith("all")]
    assert [row[0] for row in rows] == ["1", "2", "3", "4", "5", "all"]
    assert 1 <= float(rows[-1][5].strip("(")) < 1.1  # the serial schedule computes every layer once, the head aside
    assert 1 < float(rows[-1][2].strip("(")) < 5 / 2 + 0.5


def test_whole_layers_of_a_language_model(folder, capsys):
    cli.run(["convert", "users_nets:gpt", "--input", "2x8:int11", "--joins", r"layers\.\d+"])
    output = capsys.readouterr().out
    assert "layers.1         layer  3" in output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["users_nets:vit", "--input", "2xa"], r"--input is '2xa': give a shape"),
        (["users_nets", "--input", "2x3"], r"model is 'users_nets': give package\.module:function"),
        (["users_nets:none", "--input", "2x3"], "users_nets has no function none"),
        (["users_nets:number", "--input", "2x3"], "returns a int"),
        (["not_there:vit", "--input", "2x3"], r"cannot import not_there \(No module named 'not_there'\)"),
    ],
)
def test_bad_input_is_one_sentence(folder, arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        cli.run(["convert", *arguments])
