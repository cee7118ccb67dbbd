"""Training that survives anything: killed, stopped, diverged, refused."""

import json
import os
import random
import shutil
import signal
import warnings
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from cascaded import RunConfig
from cascaded.training import checkpoint
from cascaded.training import loop as training
from cascaded.training.config import ExecutionConfig
from cascaded.training.loop import train
from cascaded.training.method import METHODS
from cascaded.training.runs import checkpoint_places, read_metrics
from cascaded.training.trainer import DivergedError
from tests.forked import code_of, forked, kill_at_call
from tests.refused import refused

TINY = RunConfig(width=2, epochs=2, batch_size=64, lr=0.05, lr_schedule="one-cycle", max_images=320)
HERE = ExecutionConfig("cpu", checkpoint_seconds=0.0)  # a checkpoint a step


OPTIONS = {
    "with options": {"ema": 0.9, "decay_norms": False, "pool": False, "optimizer": "adamw", "lr": 1e-3},
    "filled": {"method": "cascaded-ce", "fill_statistics": True},
}


def tiny(**changes):
    return replace(TINY, **changes)


def named(name):
    """A method, CascadedTD(0) with every option that adds to the state of a run, or CascadedCE with all statistics."""
    return tiny(**OPTIONS.get(name, {"method": name}))


def result(folder):
    found = checkpoint.newest(folder)
    return {**found.model, **{f"momentum of {name}": each for name, each in found.optimizer.items()}}


def metrics_of(folder):
    """What the metrics say, but for the time it took."""
    return [
        {name: value for name, value in line.items() if name not in ("seconds", "processor_seconds")}
        for line in read_metrics(folder)
    ]


def assert_same(one, other):
    found, expected = result(one), result(other)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert metrics_of(one) == metrics_of(other)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """The runs that others are compared with, by name."""
    made = {}

    def run(model):
        if model not in made:
            made[model] = tmp_path_factory.mktemp("uninterrupted")
            train(named(model), made[model], ExecutionConfig("cpu"))
        return made[model]

    return run


MOMENTS = [  # where a run may be killed, and how often it gets there in a step
    (training.Trainer, "step", 1),
    (Path, "replace", 4),  # the files of a checkpoint get their names
    (os, "fsync", 9),  # these files and their folders get to the disk, and so does a line of the metrics
    (shutil, "rmtree", 1),  # an old checkpoint goes
]


def is_killed(folder, model, moment, draws):
    """Train in a process of its own, killed at a drawn call of the next four steps; whether it was, or had ended."""
    owner, name, calls = moment
    call, after = draws.randint(1, 4 * calls), draws.random() < 0.5

    def work():
        kill_at_call(owner, name, call, after=after)
        train(named(model), folder, HERE, resume=True)

    code = code_of(forked(work))
    assert code in (0, -signal.SIGKILL)
    return code != 0


@pytest.mark.parametrize("fewest", [4, pytest.param(20, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "model", [*(pytest.param(each, marks=pytest.mark.long) for each in ("cascaded-td", "filled")), "with options"]
)
def test_kills_at_drawn_moments_change_nothing(model, fewest, uninterrupted, tmp_path):
    """Every kind of moment by turns, and so each at least once; five times as often with `make fuzz`."""
    expected, draws = uninterrupted(model), random.Random(model)
    kills = runs = 0
    for attempt in range(120):
        folder = tmp_path / str(runs)
        if is_killed(folder, model, MOMENTS[attempt % len(MOMENTS)], draws):
            kills += 1
            continue
        assert_same(folder, expected)
        runs += 1
        if kills >= fewest:
            return
    pytest.fail(f"{kills} kills and {runs} finished runs in 120 attempts")


def test_a_run_that_is_asked_to_stop_keeps_everything_and_goes_on(uninterrupted, tmp_path, monkeypatch):
    expected, step = uninterrupted("cascaded-td"), training.Trainer.step

    def stepping(self):
        loss = step(self)
        if self.position.step == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return loss

    monkeypatch.setattr(training.Trainer, "step", stepping)
    with pytest.raises(training.StoppedError, match="stopped after step 3 of 10"):
        train(tiny(), tmp_path, ExecutionConfig("cpu"))
    assert checkpoint.newest(tmp_path).position["step"] == 3
    train(tiny(), tmp_path, HERE, resume=True)
    assert_same(tmp_path, expected)


def test_a_damaged_checkpoint_costs_a_few_steps_and_nothing_else(uninterrupted, tmp_path, monkeypatch):
    expected, step = uninterrupted("cascaded-td"), training.Trainer.step

    def stepping(self):
        if self.position.step == 7:
            raise RuntimeError("power cut")
        return step(self)

    monkeypatch.setattr(training.Trainer, "step", stepping)
    with pytest.raises(RuntimeError, match="power cut"):
        train(tiny(), tmp_path, HERE)
    monkeypatch.undo()
    newest = checkpoint_places(tmp_path)[-1] / "model.safetensors"
    newest.write_bytes(newest.read_bytes()[:-1])
    with pytest.warns(checkpoint.DamagedCheckpoint, match="000000007 .*; checkpoint 000000006 is used instead"):
        train(tiny(), tmp_path, HERE, resume=True)
    assert_same(tmp_path, expected)


def test_a_finished_run_is_not_run_again(uninterrupted, monkeypatch):
    folder = uninterrupted("cascaded-td")
    monkeypatch.setattr(training.Trainer, "step", None)
    assert train(tiny(), folder, HERE, resume=True)["epoch"] == 2


def test_another_run_in_the_folder_is_refused(uninterrupted):
    folder = uninterrupted("cascaded-td")
    refused(r"is another run \(seed 0 -> 1\)", train, tiny(seed=1), folder, HERE, resume=True)
    refused("resume it with", train, tiny(), folder, HERE)


@pytest.mark.parametrize(
    ("change", "advice"),
    [({}, "lower the peak, e.g. --lr 3.3e"), ({"lr_schedule": "steps"}, "or warm up with --lr-schedule one-cycle")],
)
def test_a_loss_that_is_not_finite_stops_the_run_and_keeps_the_last_good_checkpoint(tmp_path, change, advice):
    with pytest.raises(DivergedError, match=r"at step \d+ of 200 \(epoch \d+, lr .*, batch seed \d+\)") as raised:
        train(tiny(lr=1e15, epochs=40, **change), tmp_path, HERE)
    assert advice in str(raised.value)
    assert all(tensor.isfinite().all() for tensor in result(tmp_path).values())


def test_mixed_precision_is_suspected_first(tmp_path, monkeypatch):
    def diverged(self):
        raise self._diverged("the loss is nan", 0)

    monkeypatch.setattr(training.Trainer, "step", diverged)
    with pytest.raises(DivergedError, match="first try --precision float32"):
        train(tiny(precision="bfloat16"), tmp_path, HERE)


@pytest.mark.parametrize(("poisoned_step", "epoch"), [(3, 1), (10, 2)])
def test_weights_that_are_not_finite_are_never_kept(tmp_path, monkeypatch, poisoned_step, epoch):
    step = training.Trainer.step

    def poisoned(self):
        loss = step(self)
        if self.position.step == poisoned_step:
            next(self.net.parameters()).data[0] = float("nan")
        return loss

    monkeypatch.setattr(training.Trainer, "step", poisoned)
    place = rf"a weight is not finite at step {poisoned_step} of 10 \(epoch {epoch}, lr 0\.\d*[1-9]"
    with pytest.raises(DivergedError, match=place):
        train(tiny(), tmp_path, HERE)
    assert checkpoint.newest(tmp_path).position["step"] == poisoned_step - 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 4000}, "batch_size is 4000, there are 320 training images"),
        ({"data": "digist"}, "there is no data set 'digist': did you mean digits"),
        ({"arch": "resnet19"}, "there is no architecture 'resnet19': did you mean resnet18"),
        ({"noise": "fokus"}, "focus"),
        ({"pad": 9}, "pad is 9, images are 8 x 8"),
    ],
)
def test_what_cannot_be_trained_is_refused_in_a_sentence(tmp_path, change, message):
    folder = tmp_path / "runs" / "0"
    refused(message, lambda: train(tiny(**change), folder, HERE))
    assert not folder.parent.exists()  # no lock, no config.json that the right command would be refused for


@pytest.mark.parametrize("model", METHODS)
def test_every_model_trains_from_nothing(model, tmp_path):
    folder = tmp_path / model
    metrics = train(tiny(method=model, epochs=1), folder, ExecutionConfig("cpu"))
    assert len(metrics["accuracy"]) == len(metrics["test"]) == 9
    assert checkpoint.newest(folder).position["step"] == 5


@pytest.mark.parametrize("network", ["resnet34", "resnet50"])
def test_every_network_trains_from_nothing(network, tmp_path):
    metrics = train(tiny(arch=network, max_images=64, epochs=1), tmp_path, ExecutionConfig("cpu"))
    assert len(metrics["accuracy"]) == 17


def test_cascaded_and_serial_cross_entropy_have_the_same_weights(uninterrupted):
    names = ("cascaded-ce", "serial-ce", "filled")
    one, other, filled = (checkpoint.newest(uninterrupted(name)).model for name in names)
    statistics = {name for name in one if "running" in name or "batches" in name}
    assert len(one.keys() - statistics) > 50
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert all(torch.equal(one[name], filled[name]) for name in one.keys() - statistics)
    assert all(len(filled[name]) > 1 == len(one[name]) for name in statistics)


def test_the_metrics_tell_every_epoch(uninterrupted):
    lines = read_metrics(uninterrupted("cascaded-td"))
    assert [(line["epoch"], line["step"]) for line in lines] == [(1, 5), (2, 10)]
    assert all(len(line["accuracy"]) == 9 for line in lines)
    assert "test" not in lines[0]
    assert len(lines[-1]["test"]) == 9
    json.dumps(lines)


def test_a_run_says_what_it_is(uninterrupted):
    written = json.loads((uninterrupted("cascaded-td") / "config.json").read_text())
    assert written["made_with"]["torch"] == torch.__version__
    assert len(written.pop("images")) == 64
    assert written["inputs"]["shape"] == [1, 8, 8]
    assert written["config"] == json.loads(json.dumps(asdict(tiny(method="cascaded-td"))))


def test_training_warns_of_nothing(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(tiny(epochs=1, noise="translation"), tmp_path, HERE)
    assert read_metrics(tmp_path)[-1]["epoch"] == 1
