"""What a run logs."""

import sys

import pytest

from cascaded import RunConfig
from cascaded.training.config import ExecutionConfig
from cascaded.training.log import summarize
from cascaded.training.loop import train
from cascaded.training.runs import read_metrics
from tests.refused import refused

TINY = RunConfig(width=2, epochs=2, batch_size=32, lr=0.05, max_images=64, lam=(1.0, 0.0))


def test_accuracy_is_told_at_the_first_the_middle_and_the_last_step():
    assert summarize([k / 10 for k in range(1, 10)]) == "10.0% at step 1, 50.0% at 5, 90.0% at 9"
    assert summarize([0.5]) == "50.0% at step 1"
    assert summarize([0.5, 0.75]) == "50.0% at step 1, 75.0% at 2"


def test_a_line_an_epoch_where_there_is_no_terminal(tmp_path, capsys):
    train(TINY, tmp_path, ExecutionConfig("cpu"))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == ["epoch 1/2", "epoch 2/2"]
    assert "validation" in lines[0]
    assert "test" in lines[1]
    assert "test" not in lines[0]
    assert [(line["lr"], line["lam"]) for line in read_metrics(tmp_path)] == [(0.05, 1.0), (0.05, 0.0)]
    for line, metrics in zip(lines, read_metrics(tmp_path), strict=True):
        assert f", loss {metrics['loss'] / 9:.3f} per step, " in line  # metrics.jsonl has the sum over nine steps


@pytest.mark.filterwarnings("ignore")  # of tensorboard's own reader
def test_tensorboard_reads_the_same_numbers(tmp_path):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")  # of cascaded[tensorboard]
    train(TINY, tmp_path, ExecutionConfig("cpu", tensorboard=True))
    events = reader.EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    metrics = read_metrics(tmp_path)
    assert [each.value for each in events.Scalars("loss")] == pytest.approx([line["loss"] for line in metrics])
    last = [each.value for each in events.Scalars("accuracy/step 9")]
    assert last == pytest.approx([line["accuracy"][8] for line in metrics])


def test_tensorboard_that_is_not_there_is_said_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    execution = ExecutionConfig("cpu", tensorboard=True)
    refused(r"pip install 'cascaded\[tensorboard\]'", train, TINY, tmp_path / "0", execution)
    assert not (tmp_path / "0").exists()
