"""Examples that train a converted network print one row per step, and the last step has learned something."""

import runpy
from pathlib import Path

import pytest
import torch
from torch.nn.functional import cross_entropy

EXAMPLES = Path(__file__).parent.parent / "examples"


ABOVE_CHANCE = {  # epochs, rows, and whether the last step is better than a network that learned nothing
    "anytime_unet.py": (1, 3, lambda value: value > 20),  # all background: 18 %
    "anytime_gpt.py": (1, 3, lambda value: value < 6),  # all 96 characters alike: 6.6 bits
    "anytime_vit.py": (3, 5, lambda value: value > 30),  # chance: 10 %
}


@pytest.fixture
def steps(capsys, monkeypatch):
    """The values per step that a quick run of an example prints."""
    monkeypatch.syspath_prepend(str(EXAMPLES))

    def values(name, *words):
        runpy.run_path(str(EXAMPLES / name))["main"](["--quick", *words])
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        rows = [words for words in lines if words[0].isdigit()]
        assert [int(row[0]) for row in rows] == list(range(1, len(rows) + 1))
        return [float(row[1].removesuffix("%")) for row in rows]

    return values


@pytest.mark.parametrize("name", ABOVE_CHANCE)
def test_a_converted_network_learns_with_the_td_loss(steps, name):
    epochs, rows, better = ABOVE_CHANCE[name]
    values = steps(name, "--epochs", str(epochs))
    assert len(values) == rows
    assert better(values[-1])


def test_cross_entropy_and_another_lambda_are_other_losses(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    example = runpy.run_path(str(EXAMPLES / "anytime.py"))
    trace, labels = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(0)), torch.arange(4)
    options = [example["parse"]("A test.", words) for words in ([], ["--lam", "1"], ["--ce"])]
    td0, td1, ce = (float(example["chosen_loss"](each)(trace, labels)) for each in options)
    per_step = [float(cross_entropy(logits, labels)) for logits in trace]
    assert td1 == pytest.approx(sum(per_step))
    assert ce == pytest.approx(per_step[-1])
    assert td0 not in (td1, ce)
