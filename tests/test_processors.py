"""Predicted times with several processors, against schedules worked out by hand."""

import pandas as pd
import pytest
import torch

from cascaded.figures.timing import measured_time, predicted_time
from cascaded.runtime.processors import PROCESSORS, BlockTimes, makespan, measure_blocks, predict_times
from tests.exports import images, tiny_net

TIMES = BlockTimes(stem=1.0, blocks=(4.0, 3.0, 2.0), head=0.5)


@pytest.mark.parametrize(
    ("processors", "end"), [(1, 9), (2, 5), (3, 4), (8, 4), (None, 4)]
)  # two processors: 4 beside 3 + 2
def test_the_longest_blocks_are_started_first(processors, end):
    assert makespan([2, 3, 4], processors) == end
    assert makespan([], processors) == 0


def test_at_every_step_the_blocks_whose_input_changes_are_updated():
    assert TIMES.cascaded(1) == [1.5, 1.5 + 9.5, 11 + 5.5, 16.5 + 2.5]
    assert TIMES.cascaded(2) == [1.5, 1.5 + 5.5, 7 + 3.5, 10.5 + 2.5]
    assert TIMES.cascaded(None) == TIMES.cascaded(3) == [1.5, 6.0, 9.5, 12.0]
    assert TIMES.serial() == [
        1.5,
        6.0,
        9.5,
        12.0,
    ]  # without limit a cascade takes as long per step as its slowest block
    assert TIMES.full_pass() == 10.5


def test_blocks_are_measured_and_accuracies_are_those_of_the_network():
    pytest.importorskip("onnx", reason="exporting needs the extra `export`")
    pytest.importorskip("onnxruntime", reason="running exported networks needs the extra `export`")
    net, frames, labels = tiny_net("densenet"), images(12), torch.arange(12) % 5
    times = measure_blocks(net, frames[:1], rounds=3)
    assert len(times.blocks) == len(net.blocks)
    assert min(times.stem, *times.blocks, times.head) > 0
    rows = predict_times(net, frames, labels)
    assert [row["processors"] for row in rows if row["rule"] == "cascaded"] == list(PROCESSORS)
    with torch.no_grad():
        expected = (net(frames).argmax(dim=-1) == labels).double().mean(dim=1).tolist()
    assert rows[0]["accuracy"] == pytest.approx(expected)
    assert all(row["seconds"] == sorted(row["seconds"]) for row in rows)
    assert rows[-1]["accuracy"] == pytest.approx(expected[-1:])


def test_figures_have_a_line_per_rule_and_a_point_for_the_full_pass():
    keys = [("torch", "full pass", None), ("onnx", "serial", 0.5), ("onnx", "serial", 0.9), ("onnx", "full pass", None)]
    rows = [dict(zip(("runtime", "rule", "threshold"), key, strict=True)) for key in keys]
    df = pd.DataFrame(
        [
            {"network": ""} | row | {"batch_size": size, "accuracy": 0.5, "typical": 0.001}
            for row in [*rows, rows[-1] | {"network": "narrow"}]
            for size in (1, 16)
        ]
    )
    fig = measured_time(df)
    assert [len(ax.lines) for ax in fig.axes] == [4, 4]
    assert [len(line.get_xdata()) for line in fig.axes[0].lines] == [1, 2, 1, 1]
    assert fig.legends[0].get_texts()[-1].get_text() == "exported full pass of narrow"
    steps = [
        {"rule": rule, "processors": count, "step": step, "milliseconds": step, "accuracy": 0.5}
        for rule, count in [*(("cascaded", count) for count in PROCESSORS), ("serial", 1), ("full pass", 1)]
        for step in ((1,) if rule == "full pass" else (1, 2, 3))
    ]
    labels = [text.get_text() for text in predicted_time(pd.DataFrame(steps)).legends[0].get_texts()]
    assert labels[0] == "cascaded, 1 processor"
    assert labels[4:] == ["cascaded, unlimited processors", "serial, one block per step", "full pass"]
