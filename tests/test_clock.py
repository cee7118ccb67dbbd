"""Early exit by the clock: the answers are those of the trace, only sooner."""

import json
import shutil
import sys
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cascaded import Pretrained
from cascaded.cascade.named import make_kernel
from cascaded.cli import main as cli
from cascaded.data.sources import load
from cascaded.errors import InputError
from cascaded.runtime.early_exit import FULL, clock, early_exit, full_pass
from cascaded.training.load import load_run
from tests.tiny_runs import tiny_run  # noqa: F401

EWS = make_kernel("ews:0.5")
WAYS = [{"schedule": "cascaded"}, {"schedule": "serial"}, {"kernel": EWS, "steps": 12}]


@pytest.fixture
def shown(tiny_run):  # noqa: F811
    """A network in double precision, so that no confidence is on both sides of a threshold; images and labels."""
    run, test = load_run(tiny_run()), load("digits", "test")
    return run.net.double(), run.normalised(test.images[:24]).double(), test.labels[:24]


@torch.no_grad()
def first_above(net, images, threshold, **way):
    """From the whole trace: the first step at which an item is surer than a threshold, and what it says then."""
    trace = net(images, **way)
    sure, said = trace.softmax(dim=-1).max(dim=-1)
    above = sure > threshold
    above[-1] = True
    step = above.int().argmax(dim=0)
    return said.gather(0, step[None])[0], step + 1


@given(st.floats(0, 1), st.sampled_from([1, 3, 4]), st.sampled_from(WAYS))
@settings(max_examples=8)
def test_answers_are_those_of_the_trace_at_the_first_step_above_the_threshold(tiny_run, place, batch, way):  # noqa: F811
    run, test = load_run(tiny_run()), load("digits", "test")
    net, images = run.net.double(), run.normalised(test.images[:4]).double()
    with torch.no_grad():
        sure = net(images, **way).softmax(dim=-1).amax(dim=-1).flatten().sort().values
    below = int(place * (len(sure) - 2))
    threshold = float(sure[below : below + 2].mean())  # between two confidences that there are
    said, steps = first_above(net, images, threshold, **way)
    taken = [early_exit(net, some, threshold, **way) for some in images.split(batch)]
    assert torch.equal(torch.cat([each.said for each in taken]), said)
    assert torch.equal(torch.cat([each.steps for each in taken]), steps)


@pytest.mark.parametrize("way", WAYS)
def test_items_leave_at_different_steps(shown, way):
    net, images, _ = shown
    with torch.no_grad():
        sure = net(images, **way).softmax(dim=-1).amax(dim=-1).double()
    thresholds = sure.quantile(torch.linspace(0.1, 0.9, 9, dtype=torch.float64)).tolist()
    threshold = max(thresholds, key=lambda each: len(first_above(net, images, each, **way)[1].unique()))
    said, steps = first_above(net, images, threshold, **way)
    taken = early_exit(net, images, threshold, **way)
    assert len(set(steps.tolist())) > 2
    assert torch.equal(taken.steps, steps)
    assert torch.equal(taken.said, said)


@pytest.mark.parametrize("schedule", ["cascaded", "serial"])
def test_a_threshold_of_zero_leaves_at_the_first_step_and_one_of_one_at_the_last(shown, schedule):
    net, images, _ = shown
    assert early_exit(net, images, 0.0, schedule=schedule).steps.tolist() == [1] * 24
    assert early_exit(net, images, 1.0, schedule=schedule).steps.tolist() == [9] * 24
    assert early_exit(net, images, 1.0, steps=4, schedule=schedule).steps.tolist() == [4] * 24


def test_those_who_have_answered_are_not_computed_any_more(shown):
    net, images, _ = shown
    with torch.no_grad():
        threshold = float(net(images).softmax(dim=-1).amax(dim=-1).median())
    sizes = []
    net.readout.register_forward_pre_hook(lambda head, inputs: sizes.append(inputs[0].batch))
    steps = early_exit(net, images, threshold).steps
    assert sizes == [int((steps >= step).sum()) for step in range(1, int(steps.max()) + 1)]
    assert sizes[-1] < sizes[0]


def test_later_steps_take_longer(shown):
    net, images, _ = shown
    with torch.no_grad():
        threshold = float(net(images).softmax(dim=-1).amax(dim=-1).median())
    taken = early_exit(net, images, threshold)
    ends = [taken.seconds[taken.steps == step] for step in sorted(set(taken.steps.tolist()))]
    assert all(len(set(each.tolist())) == 1 for each in ends)  # who leaves together has taken as long
    assert all(earlier[0] < later[0] for earlier, later in pairwise(ends))
    assert taken.seconds.min() > 0
    assert taken.seconds.max() <= taken.total


@torch.no_grad()
def test_the_full_pass_says_what_the_network_says_without_time(shown):
    net, images, _ = shown
    taken = full_pass(net, images)
    assert torch.equal(taken.said, net.answer(images).argmax(dim=-1))
    assert torch.equal(taken.said, net.serial().eval()(images).argmax(dim=-1))
    assert taken.steps.tolist() == [9] * 24
    assert set(taken.seconds.tolist()) == {taken.total}


def test_every_rule_is_timed_beside_the_full_pass(shown):
    net, images, labels = shown
    told = []
    timings = clock(net, images, labels, thresholds=(0.0, 1.0), batches=(5, 24), told=told.append)
    rules = [(FULL, None), ("serial", 0.0), ("serial", 1.0), ("cascaded", 0.0), ("cascaded", 1.0)]
    assert [(each.batch, each.rule, each.threshold) for each in timings] == [
        (b, *rule) for b in (5, 24) for rule in rules
    ]
    assert sum(told) == 2 * 5 * 24
    full = full_pass(net, images)
    for each in timings:
        expected = full if each.threshold != 0 else early_exit(net, images, 0.0, schedule=each.rule)
        assert each.accuracy == (expected.said == labels).double().mean()
        assert each.steps == (1 if each.threshold == 0 else 9)
        assert 0 < each.p50 <= each.p95
        assert each.against_full == (1 if each.rule == FULL else pytest.approx(each.total / full_of(timings, each)))
    assert json.loads(json.dumps(timings[0].to_json()))["against_full"] == 1.0


def full_of(timings, one):
    return next(each.total for each in timings if each.batch == one.batch and each.rule == FULL)


@pytest.mark.parametrize("model", ["cascaded-td", "serial-td-multihead", "shallow-deep"])
def test_a_loaded_network_takes_bytes_and_runs_under_its_own_schedule(tiny_run, model):  # noqa: F811
    run, test = load_run(tiny_run(model)), load("digits", "test")
    net, images = Pretrained.of_run(run.folder), test.images[:24]
    with torch.no_grad():
        threshold = float(net(images).softmax(dim=-1).amax(dim=-1).median())
    taken = early_exit(net, images, threshold)
    expected = early_exit(run.net, run.normalised(images), threshold, schedule=run.spec.method.schedule)
    assert torch.equal(taken.said, expected.said)
    assert torch.equal(taken.steps, expected.steps)
    assert len(taken.steps.unique()) > 1
    with pytest.raises(InputError, match=r"in training mode, .*: call net.eval\(\) first"):
        early_exit(net.train(), images, threshold)


def test_less_than_one_step_is_refused(shown):
    net, images, _ = shown
    with pytest.raises(InputError, match="steps is 0: ask for at least 1"):
        early_exit(net, images, 0.5, steps=0)
    with pytest.raises(InputError, match="settles only in the limit: say how many steps"):
        early_exit(net, images, 0.5, kernel=EWS)


# --- the command


def cascaded(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["cascaded", "clock", *map(str, words)])
    cli.main()


@pytest.mark.parametrize(("model", "rules"), [("cascaded-td", 2), ("shallow-deep", 1)])
def test_the_command_writes_what_it_shows_and_shallow_deep_runs_serially(
    tiny_run,  # noqa: F811
    tmp_path,
    monkeypatch,
    capsys,
    model,
    rules,
):
    folder = shutil.copytree(tiny_run(model), tmp_path / "0")
    cascaded(monkeypatch, folder, "--thresholds", 0.3, "--batches", 8, "--limit", 20, "--device", "cpu")
    out = capsys.readouterr().out
    assert f"wrote {folder / 'clock.json'}" in out.replace("\n", "")
    assert "time to an answer" in out
    told = json.loads((folder / "clock.json").read_text())
    assert (told["weights"], told["items"], told["threads"]) == (load_run(folder).weights, 20, 1)
    assert [each["rule"] for each in told["timings"]] == [FULL, "serial", "cascaded"][: 1 + rules]


def test_more_images_than_there_are_are_all_of_them(tiny_run, tmp_path, monkeypatch, capsys):  # noqa: F811
    folder = shutil.copytree(tiny_run("shallow-deep"), tmp_path / "0")
    cascaded(monkeypatch, folder, "--thresholds", 0.0, "--batches", 400, "--limit", 1000, "--device", "cpu")
    assert json.loads((folder / "clock.json").read_text())["items"] == 359


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no run is given: say which, as in "),
        (["nowhere"], "there is no folder nowhere: give the folder of a run"),
        (["."], ". holds no run, no spec.json is in or below it: train one with cascaded train"),
        ([".", "--thresholds", "1.5"], "--thresholds is [1.5]: give confidences from 0 to 1"),
        ([".", "--thresholds"], "--thresholds is []: give confidences from 0 to 1"),
        ([".", "--batches", "0"], "--batches is [0] and --limit 256: give numbers of at least 1"),
        ([".", "--limit", "0"], "--batches is [1, 64] and --limit 0: give numbers of at least 1"),
    ],
)
def test_wrong_commands_end_in_a_sentence_and_exit_code_two(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        cascaded(monkeypatch, *words)
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith(f"cascaded: {message}")
    assert told.count("\n") == 1


def test_a_network_that_would_learn_from_its_answers_is_refused(shown):
    net, images, _ = shown
    with pytest.raises(InputError, match="threshold is 50: give a confidence from 0 to 1"):
        early_exit(net, images, 50)
    with pytest.raises(InputError, match=r"in training mode, .*: call net.eval\(\) first"):
        early_exit(net.train(), images, 0.5)
