"""The moving average of the weights: the formula, and that training does not depend on it."""

import copy

import pytest
import torch

from cascaded.training import checkpoint
from cascaded.training.config import ExecutionConfig
from cascaded.training.loop import train
from cascaded.training.trainer import RAW, Trainer
from tests.tiny_runs import tiny_config

CPU = ExecutionConfig("cpu")


@pytest.fixture
def averaged(tmp_path, monkeypatch):
    """A run with an average: its checkpoint, and the weights and statistics in training before and after every step."""
    seen, step = [], Trainer.step

    def stepping(self):
        if not seen:
            seen.append(copy.deepcopy(self.net.state_dict()))
        loss = step(self)
        seen.append(copy.deepcopy(self.net.state_dict()))
        return loss

    monkeypatch.setattr(Trainer, "step", stepping)

    def run(**options):
        train(tiny_config(ema=0.5, **options), tmp_path / "0", CPU)
        return checkpoint.newest(tmp_path / "0"), seen

    return run


@pytest.mark.parametrize("method", ["cascaded-td", "serial-ce"])
def test_the_saved_network_is_the_average_over_all_steps(averaged, method):
    found, seen = averaged(method=method)
    initial, *after = seen
    assert len(after) == 10
    for name, average in initial.items():
        if average.shape != after[0][name].shape:  # statistics of the steps that the first batch has shown
            average = after[0][name]
        for t, now in enumerate(after):
            decay = min(0.5, (1 + t) / (10 + t))
            average = decay * average.double() + (1 - decay) * now[name]
        expected = after[-1][name] if name.endswith("batches") else average.float()
        torch.testing.assert_close(found.model[name], expected, rtol=1e-5, atol=1e-6)


def test_training_does_not_depend_on_the_average(averaged, tmp_path):
    found, _ = averaged()
    train(tiny_config(), tmp_path / "without", CPU)
    without = checkpoint.newest(tmp_path / "without")
    raw = {name.removeprefix(RAW): each for name, each in found.optimizer.items() if name.startswith(RAW)}
    assert raw.keys() == without.model.keys() == found.model.keys()
    assert all(torch.equal(raw[name], without.model[name]) for name in raw)
    assert all(torch.equal(found.optimizer[name], each) for name, each in without.optimizer.items())
    assert not torch.equal(found.model["stem.0.weight"], raw["stem.0.weight"])
