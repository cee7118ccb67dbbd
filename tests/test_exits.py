"""Exits of the serial schedule: merged blocks compute the same, and those are chosen that save time."""

import sys
from itertools import combinations, pairwise

import numpy as np
import pytest
import torch

import cascaded
from cascaded.cli import main as cli
from cascaded.errors import InputError
from cascaded.runtime import Runner
from cascaded.runtime.early_exit import early_exit
from cascaded.runtime.exits import THRESHOLDS, best_exits, describe_exits
from cascaded.runtime.result import confidence
from tests.exports import images, inputs_of, tiny_net
from tests.made_networks import made, pixels
from tests.test_export import NETWORKS, assert_close

pytest.importorskip("onnx", reason="exporting needs the extra `export`")
pytest.importorskip("onnxruntime", reason="running exported networks needs the extra `export`")


@pytest.mark.parametrize("heads", ["shared", "per_step", "shallow_deep"])
@pytest.mark.parametrize("kind", NETWORKS)
def test_every_choice_of_exits_has_the_outputs_of_the_eager_network(kind, heads, tmp_path):
    net = tiny_net(kind, heads)
    early, frames = range(1, net.serial_steps), images(3)
    with torch.no_grad():
        trace = net(frames, schedule="serial")
    for number, exits in enumerate(each for count in (1, 2) for each in combinations(early, count)):
        config = cascaded.export(net, tmp_path / str(number), inputs=inputs_of(net), exits=exits)
        runner, state = Runner(tmp_path / str(number), schedule="serial"), None
        steps = config.schedules["serial"]
        assert (steps.exits, steps.steps) == ((*exits, net.serial_steps), len(exits) + 1)
        for step, end in enumerate((*steps.exits, net.serial_steps)):  # at one more, nothing changes
            logits, state = runner.step(None if step else frames.numpy(), state, normalized=True)
            assert_close(logits, trace[end - 1])
        assert_close(runner.full_pass(frames.numpy(), normalized=True), trace[-1])


def test_items_exit_where_they_are_confident_and_accuracy_is_that_of_the_exits(tmp_path):
    net = made("shallow-deep", accuracy=[step / 10 for step in range(1, 10)])
    config = cascaded.export(net, tmp_path / "out", exits=(3, 6))
    assert config.schedules["serial"].accuracy == (0.3, 0.6, 0.9)
    runner, frames = Runner(tmp_path / "out"), pixels()
    with torch.no_grad():
        sure = net(frames).softmax(dim=-1).amax(dim=-1)[[2, 5]]
    threshold = float(sure.max(dim=0).values.sort().values[: len(frames) // 2 + 1][-2:].mean())
    found = runner.predict(frames.numpy(), threshold)
    expected = [next((n for n, each in enumerate(item, 1) if each > threshold), 3) for item in sure.T.tolist()]
    assert found.steps.tolist() == expected
    assert len(set(expected)) > 1
    for item, step in enumerate(expected):
        at = early_exit(net, frames[item : item + 1], 1.0, steps=(3, 6, 9)[step - 1])
        assert found.predictions[item] == int(at.predictions)


def test_exits_that_do_not_exist_are_refused(tmp_path):
    net = tiny_net("resnet")
    for exits, message in (((0, 2), "exit 0 is not a step"), ((2, 5), "exit 5 .* give steps from 1 to 4")):
        with pytest.raises(InputError, match=message):
            cascaded.export(net, tmp_path / "out", inputs=inputs_of(net), exits=exits)
    assert list(tmp_path.iterdir()) == []


def literal_time(steps, threshold, sure, correct, seconds):
    """Accuracy, upper limit of its loss, and mean time relative to a full pass, item by item."""
    ends, overhead = (0, *steps, len(sure)), seconds[-1]
    full, total, right = sum(seconds[:-1]) - (len(sure) - 1) * overhead, 0.0, []
    for item in range(sure.shape[1]):
        for first, last in pairwise(ends):
            total += sum(seconds[first:last]) - (last - first - 1) * overhead
            if sure[last - 1, item] > threshold or last == len(sure):
                right.append(int(correct[last - 1, item]))
                break
    lost = np.array([int(last) - early for last, early in zip(correct[-1], right, strict=True)])
    return np.mean(right), lost.mean() + 1.645 * lost.std() / np.sqrt(len(lost)), total / sure.shape[1] / full


@pytest.mark.parametrize("seed", range(5))
def test_the_predicted_time_is_that_of_the_chosen_exits_item_by_item(seed):
    numbers = np.random.default_rng(seed)
    labels = numbers.integers(0, 3, 60)
    logits = numbers.normal(size=(5, 60, 3)) + np.eye(3)[labels] * np.array([1, 2, 4, 5, 5])[:, None, None]
    seconds = [*numbers.uniform(2, 5, 5), 1.0]
    found = best_exits(logits, labels, seconds, within=0.1)
    sure, correct = np.stack([confidence(each) for each in logits]), logits.argmax(axis=-1) == labels
    assert found is not None
    accuracy, lost, time = literal_time(found.steps, found.threshold, sure, correct, seconds)
    assert (found.accuracy, found.relative_time) == pytest.approx((accuracy, time))
    assert lost <= 0.1
    for step in range(1, 5):  # no single exit is faster
        for threshold in THRESHOLDS:
            _, lost, time = literal_time((step,), threshold, sure, correct, seconds)
            assert time >= found.relative_time - 1e-9 or lost > 0.1
    assert f"predicted time {found.relative_time:.2f}" in describe_exits(found)


def test_where_a_call_costs_as_much_as_the_rest_no_exit_is_chosen():
    labels = np.zeros(10, int)
    logits = np.zeros((3, 10, 2))
    logits[..., 0] = 5
    assert best_exits(logits, labels, [1.0, 1.0, 1.0, 0.1]) is not None
    logits[:2, :, 0] = -5  # wrong before the last step
    assert best_exits(logits, labels, [1.0, 1.0, 1.0, 0.1]) is None
    assert describe_exits(None).startswith("no early exit saves time")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_item_and_several_have_the_same_confidence(value):
    logits = np.random.default_rng(0).normal(size=(4, 10)).astype(np.float32)
    np.testing.assert_allclose(
        np.concatenate([confidence(each[None]) for each in logits]), confidence(logits), rtol=1e-6
    )
    logits[2, 3] = value
    for one, several in zip((confidence(each[None]) for each in logits), confidence(logits), strict=True):
        np.testing.assert_allclose(one[0], several, rtol=1e-6)


def cascaded_export(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["cascaded", "export", *map(str, words)])
    cli.main()


def test_exits_are_chosen_from_the_command_line(tmp_path, monkeypatch, capsys):
    made("shallow-deep", accuracy=[0.1] * 9).save_pretrained(tmp_path / "saved")
    cascaded_export(monkeypatch, tmp_path / "saved", "-o", tmp_path / "some", "--exits", 4, 6)
    assert Runner(tmp_path / "some").config.schedules["serial"].exits == (4, 6, 9)
    capsys.readouterr()
    monkeypatch.setattr(
        "cascaded.runtime.exits.best_exits",
        lambda logits, labels, seconds: best_exits(logits, labels, seconds, within=1.0),
    )
    cascaded_export(monkeypatch, tmp_path / "saved", "-o", tmp_path / "out", "--exits", "auto")
    out = capsys.readouterr().out
    assert "exits after step 1 at threshold 0: accuracy" in out
    assert "threshold=0)" in out
    assert Runner(tmp_path / "out").config.schedules["serial"].exits == (1, 9)


def test_a_word_that_is_not_a_step_is_refused(tmp_path, monkeypatch, capsys):
    with pytest.raises(SystemExit) as ended:
        cascaded_export(monkeypatch, "cifar10-td0", "-o", tmp_path / "out", "--exits", "auto", 4)
    assert ended.value.code == 2
    assert "auto is not a step: give numbers of steps, or auto" in capsys.readouterr().err
