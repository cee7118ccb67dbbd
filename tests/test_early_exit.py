"""Early exit: its predictions are those of the trace, only sooner; and its latency."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from cascaded import Pretrained
from cascaded.cascade.named import make_kernel
from cascaded.data.sources import load
from cascaded.errors import InputError
from cascaded.runtime.early_exit import early_exit, full_pass
from cascaded.runtime.latency import FULL, measure_latency
from cascaded.training.load import load_run
from tests.tiny_runs import tiny_run  # noqa: F401

EWS = make_kernel("ews:0.5")
OPTIONS = [{"schedule": "cascaded"}, {"schedule": "serial"}, {"kernel": EWS, "steps": 12}]


@pytest.fixture
def tiny(tiny_run):  # noqa: F811
    """A network in double precision, so that no confidence is on both sides of a threshold; images and labels."""
    run, test = load_run(tiny_run()), load("digits", "test")
    return run.net.double(), run.normalized(test.images[:24]).double(), test.labels[:24]


@torch.no_grad()
def first_above(net, images, threshold, **options):
    """From the whole trace: the prediction at the first step at which the confidence is above a threshold."""
    trace = net(images, **options)
    confidence, predictions = trace.softmax(dim=-1).max(dim=-1)
    above = confidence > threshold
    above[-1] = True
    step = above.int().argmax(dim=0)
    return predictions.gather(0, step[None])[0], step + 1


@given(st.floats(0, 1), st.sampled_from([1, 3, 4]), st.sampled_from(OPTIONS))
@settings(max_examples=8)
def test_predictions_are_those_of_the_trace_at_the_first_step_above_the_threshold(tiny_run, place, batch, options):  # noqa: F811
    run, test = load_run(tiny_run()), load("digits", "test")
    net, images = run.net.double(), run.normalized(test.images[:4]).double()
    with torch.no_grad():
        confidence = net(images, **options).softmax(dim=-1).amax(dim=-1).flatten().sort().values
    below = int(place * (len(confidence) - 2))
    threshold = float(confidence[below : below + 2].mean())  # between two confidences that occur
    predictions, steps = first_above(net, images, threshold, **options)
    result = [early_exit(net, some, threshold, **options) for some in images.split(batch)]
    assert torch.equal(torch.cat([each.predictions for each in result]), predictions)
    assert torch.equal(torch.cat([each.steps for each in result]), steps)


@pytest.mark.parametrize("schedule", ["cascaded", "serial"])
def test_items_exit_at_the_first_step_with_threshold_zero_and_at_the_last_with_one(tiny, schedule):
    net, images, _ = tiny
    assert early_exit(net, images, 0.0, schedule=schedule).steps.tolist() == [1] * 24
    assert early_exit(net, images, 1.0, schedule=schedule).steps.tolist() == [9] * 24
    assert early_exit(net, images, 1.0, steps=4, schedule=schedule).steps.tolist() == [4] * 24


@pytest.mark.parametrize("options", OPTIONS)
def test_items_exit_at_different_steps_and_are_not_computed_any_more(tiny, options):
    net, images, _ = tiny
    with torch.no_grad():
        confidence = net(images, **options).softmax(dim=-1).amax(dim=-1)
    thresholds = confidence.quantile(torch.linspace(0.1, 0.9, 9, dtype=torch.float64)).tolist()
    threshold = max(thresholds, key=lambda each: len(first_above(net, images, each, **options)[1].unique()))
    predictions, steps = first_above(net, images, threshold, **options)
    sizes = []
    net.readout.register_forward_pre_hook(lambda head, inputs: sizes.append(inputs[0].batch))
    result = early_exit(net, images, threshold, **options)
    assert len(set(steps.tolist())) > 2
    assert torch.equal(result.steps, steps)
    assert torch.equal(result.predictions, predictions)
    assert sizes == [int((steps >= step).sum()) for step in range(1, int(steps.max()) + 1)]


def test_later_steps_take_longer(tiny):
    net, images, _ = tiny
    with torch.no_grad():
        threshold = float(net(images).softmax(dim=-1).amax(dim=-1).median())
    result = early_exit(net, images, threshold)
    ends = [result.seconds[result.steps == step] for step in sorted(set(result.steps.tolist()))]
    assert all(len(set(each.tolist())) == 1 for each in ends)  # items of one step have one time
    assert all(earlier[0] < later[0] for earlier, later in pairwise(ends))
    assert result.seconds.min() > 0
    assert result.seconds.max() <= result.total


@torch.no_grad()
def test_the_full_pass_is_the_network_without_time(tiny):
    net, images, _ = tiny
    result = full_pass(net, images)
    assert torch.equal(result.predictions, net.final_logits(images).argmax(dim=-1))
    assert torch.equal(result.predictions, net.serial().eval()(images).argmax(dim=-1))
    assert result.steps.tolist() == [9] * 24
    assert set(result.seconds.tolist()) == {result.total}


def test_every_rule_is_timed_beside_the_full_pass(tiny):
    net, images, labels = tiny
    calls = []
    timings = measure_latency(
        net, images, labels, (0.0, 1.0), (5, 24), on_progress=lambda *counts: calls.append(counts)
    )
    rules = [(FULL, None), ("serial", 0.0), ("serial", 1.0), ("cascaded", 0.0), ("cascaded", 1.0)]
    assert [(each.batch_size, each.rule, each.threshold) for each in timings] == [
        (b, *rule) for b in (5, 24) for rule in rules
    ]
    assert calls[-1] == (2 * 5 * 24, 2 * 5 * 24)
    full = full_pass(net, images)
    for each in timings:
        expected = full if each.threshold != 0 else early_exit(net, images, 0.0, schedule=each.rule)
        assert each.accuracy == (expected.predictions == labels).double().mean()
        assert each.steps == (1 if each.threshold == 0 else 9)
        assert 0 < each.p50 <= each.p95
        assert each.time_of_full == (1 if each.rule == FULL else pytest.approx(each.total / full_of(timings, each)))


def full_of(timings, one):
    return next(each.total for each in timings if each.batch_size == one.batch_size and each.rule == FULL)


@pytest.mark.parametrize("method", ["cascaded-td", "serial-td-multihead", "shallow-deep"])
def test_a_loaded_network_takes_bytes_and_runs_under_its_own_schedule(tiny_run, method):  # noqa: F811
    run, test = load_run(tiny_run(method)), load("digits", "test")
    net, images = Pretrained.of_run(run.folder), test.images[:24]
    with torch.no_grad():
        threshold = float(net(images).softmax(dim=-1).amax(dim=-1).median())
    result = early_exit(net, images, threshold)
    expected = early_exit(run.net, run.normalized(images), threshold, schedule=run.config.get_method().schedule)
    assert torch.equal(result.predictions, expected.predictions)
    assert torch.equal(result.steps, expected.steps)
    assert len(result.steps.unique()) > 1
    with pytest.raises(InputError, match=r"in training mode, .*: call net.eval\(\) first"):
        early_exit(net.train(), images, threshold)


@pytest.mark.parametrize(
    ("threshold", "options", "message"),
    [
        (0.5, {"steps": 0}, "steps is 0: give at least 1"),
        (0.5, {"kernel": EWS}, "converges only in the limit: give steps"),
        (50, {}, "threshold is 50: give a confidence from 0 to 1"),
    ],
)
def test_impossible_steps_and_thresholds_are_refused(tiny, threshold, options, message):
    net, images, _ = tiny
    with pytest.raises(InputError, match=message):
        early_exit(net, images, threshold, **options)


@pytest.mark.parametrize("other", ["cifar10-td0", nn.Linear(2, 2).eval()], ids=["a name", "a module"])
def test_what_is_no_network_is_refused(other):
    with pytest.raises(InputError, match=r"net is a \w+, which has no steps: give a network, as of cascaded\.load"):
        early_exit(other, torch.zeros(2, 2), 0.5)
