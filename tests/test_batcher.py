"""The batcher: results are those of `Runner.predict`, whenever items arrive and whatever they share a batch with."""

from itertools import count

import numpy as np
import pytest
import torch

import cascaded
from cascaded.errors import InputError
from cascaded.models.vit import ViT
from cascaded.runtime import Runner
from cascaded.runtime.batcher import Batcher, Item
from cascaded.runtime.result import confidence
from cascaded.training.inputs import Inputs
from tests.exports import SHAPE, inputs_of, tiny_net
from tests.served import TIMEOUT

pytest.importorskip("onnx", reason="exporting needs the extra `export`")
pytest.importorskip("onnxruntime", reason="running exported networks needs the extra `export`")

PIXELS = np.random.default_rng(0).integers(0, 256, (24, *SHAPE), dtype=np.uint8)
LAST = 4
"""The step at which the tiny network's output is final."""
FINE = 12
"""Last step of the smoothing network, whose output converges only in the limit."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    net, place = tiny_net("resnet"), tmp_path_factory.mktemp("batcher") / "tiny"
    cascaded.export(net, place, inputs=inputs_of(net))
    return place


@pytest.fixture(scope="module")
def smoothing(tmp_path_factory):
    net, place = tiny_net("resnet"), tmp_path_factory.mktemp("batcher") / "smoothing"
    cascaded.export(net, place, inputs=inputs_of(net), kernel=cascaded.ExponentialSmoothing(0.5))
    return place


def middle_threshold(runner):
    """A threshold that items reach at different steps."""
    first = confidence(runner.step(PIXELS)[0])
    return float(np.sort(first)[len(first) // 2 :][:2].mean())


def computed(batcher, items):
    """The outputs of items that are all there from the start."""
    for item in items:
        batcher.submit(item)
    batcher.start()
    outputs = [item.result.result(TIMEOUT) for item in items]
    batcher.close()
    return outputs


@pytest.mark.parametrize("schedule", ["cascaded", "serial"])
@pytest.mark.parametrize("max_batch", [1, 5, 32])
def test_predictions_are_those_of_the_runner(folder, schedule, max_batch):
    runner = Runner(folder, schedule=schedule)
    threshold = middle_threshold(runner)
    limits = [threshold, 1.0, None] * 8
    items = [Item(image, 0.0, limit) for image, limit in zip(PIXELS, limits, strict=True)]
    outputs = computed(Batcher(runner, max_batch=max_batch), items)
    for image, limit, output in zip(PIXELS, limits, outputs, strict=True):
        expected = runner.predict(image[None], limit)
        assert (output.prediction, output.step) == (expected.predictions[0], expected.steps[0])
        assert output.reason == ("threshold" if limit is not None and output.confidence > limit else "last step")
    assert len({output.step for output in outputs}) > 1


def test_confidence_is_the_highest_probability_at_the_step(folder):
    runner = Runner(folder)
    (output,) = computed(Batcher(runner, steps=2), [Item(PIXELS[0], 0)])
    _, state = runner.step(PIXELS[:1])
    logits, _ = runner.step(None, state)
    assert output.step == 2
    assert output.confidence == pytest.approx(float(confidence(logits)[0]), abs=1e-6)


def test_items_that_arrive_later_form_groups_by_step_and_finished_ones_leave(folder):
    sizes, later = [], [Item(image, 0, 1.0) for image in PIXELS[1:3]]

    def on_run(items, seconds):
        sizes.append(items)
        for item in later if len(sizes) == 1 else ():
            batcher.submit(item)

    runner = Runner(folder)
    batcher = Batcher(runner, on_run=on_run)
    first = Item(PIXELS[0], 0, 1.0)
    assert computed(batcher, [first])[0].step == LAST
    assert sorted(sizes) == [1] * LAST + [2] * LAST
    assert [item.result.result(TIMEOUT).step for item in later] == [LAST, LAST]


def test_items_at_different_steps_share_a_batch_where_one_file_computes_both(smoothing):
    runner, sizes, second = Runner(smoothing), [], Item(PIXELS[1], 0, 1.0)

    def on_run(items, seconds):
        sizes.append(items)
        if len(sizes) == FINE - 2:
            batcher.submit(second)

    batcher = Batcher(runner, steps=FINE, on_run=on_run)
    first = computed(batcher, [Item(PIXELS[0], 0, 1.0)])[0]
    assert 2 in sizes
    assert sum(sizes) == 2 * FINE
    for image, output in zip(PIXELS[:2], (first, second.result.result(TIMEOUT)), strict=True):
        expected = runner.predict(image[None], 1.0, steps=FINE)
        assert (output.prediction, output.step) == (expected.predictions[0], FINE)


@pytest.mark.parametrize("step", [1, 9])
def test_joined_states_step_as_they_would_alone(smoothing, step):
    runner, states = Runner(smoothing), []
    for images, steps in ((PIXELS[:2], step), (PIXELS[2:5], step + 2)):
        state = None
        for number in range(steps):
            _, state = runner.step(None if number else images, state)
        states.append(state)
    assert runner.can_join(*states) == (step == 9)
    if step == 9:
        logits, state = runner.step(None, states[0].join(states[1]))
        logits, _ = runner.step(None, state)
        for part, alone in ((logits[:2], states[0]), (logits[2:], states[1])):
            _, after = runner.step(None, alone)
            np.testing.assert_allclose(part, runner.step(None, after)[0], atol=1e-5)


def test_streams_with_a_file_per_step_are_joined_at_the_same_step_only(folder):
    runner = Runner(folder)
    _, first = runner.step(PIXELS[:1])
    _, second = runner.step(None, first)
    assert runner.can_join(first, first)
    assert not runner.can_join(first, second)


def ticks():
    """A clock that advances by one second whenever it is read: the steps of an item alone end at 3, 5, 8 and 11."""
    return map(float, count(1)).__next__


@pytest.mark.parametrize(
    ("deadline", "step", "seconds"), [(0.5, 1, 3), (4.5, 1, 3), (5, 2, 5), (6.5, 2, 5), (7, 3, 8), (10.5, 3, 8)]
)
def test_the_best_prediction_within_the_deadline_is_returned(folder, deadline, step, seconds):
    runner = Runner(folder)
    (output,) = computed(Batcher(runner, clock=ticks()), [Item(PIXELS[0], 0.0, deadline=deadline)])
    assert (output.step, output.reason, output.seconds) == (step, "deadline", seconds)
    expected = runner.predict(PIXELS[:1], steps=step)
    assert output.prediction == expected.predictions[0]


def test_every_step_is_reported(folder):
    outputs = []
    (last,) = computed(Batcher(Runner(folder)), [Item(PIXELS[0], 0.0, on_step=outputs.append)])
    assert [output.step for output in outputs] == [1, 2, 3, 4]
    assert [output.reason for output in outputs] == [None, None, None, "last step"]
    assert outputs[-1] == last


def test_an_error_ends_the_requests_of_its_batch_alone(folder):
    batcher = Batcher(Runner(folder))
    batcher.start()
    wrong, right = Item(PIXELS[0][:, :3], 0.0, 0.5), Item(PIXELS[0], 0.0, 0.5)
    with pytest.raises(InputError, match="images have shape"):
        batcher.submit(wrong).result(TIMEOUT)
    assert batcher.submit(right).result(TIMEOUT).step >= 1
    batcher.close()


def test_a_cancelled_item_is_not_computed(folder):
    sizes = []
    batcher = Batcher(Runner(folder), on_run=lambda items, seconds: sizes.append(items))
    cancelled = Item(PIXELS[0], 0.0)
    assert batcher.submit(cancelled).cancel()
    computed(batcher, [Item(PIXELS[1], 0.0)])
    assert sizes == [1]


def test_what_was_submitted_is_computed_before_the_thread_stops(folder):
    batcher = Batcher(Runner(folder), max_batch=2)
    futures = [batcher.submit(Item(image, 0.0, 1.0)) for image in PIXELS]
    batcher.start()
    batcher.close()
    assert [future.result(0).step for future in futures] == [LAST] * len(PIXELS)
    with pytest.raises(InputError, match="shutting down"):
        batcher.submit(Item(PIXELS[0], 0.0))


def test_items_of_a_transformer_join_and_part(tmp_path):
    """Its layers are computed in one call, so that the batch is the second axis of their state."""
    model = ViT(5, 8, 4, depth=3, width=8, heads=2).eval()
    net, pixels = cascaded.convert(model, torch.zeros(2, 3, 8, 8)), PIXELS[:, :, :8]
    cascaded.export(net, tmp_path / "out", inputs=Inputs((3, 8, 8), (0.0,) * 3, (1.0,) * 3, tuple("abcde")))
    runner = Runner(tmp_path / "out")
    one, other, whole = (runner.step(pixels[part])[1] for part in (slice(0, 2), slice(2, 5), slice(0, 5)))
    assert any(name.startswith("stack.") for name in whole.tensors)
    assert runner.can_join(one, other)
    np.testing.assert_allclose(runner.step(None, one.join(other))[0], runner.step(None, whole)[0], atol=1e-6)
    np.testing.assert_allclose(runner.step(None, whole.select(slice(2, 5)))[0], runner.step(None, other)[0], atol=1e-6)


def test_an_error_in_the_thread_fails_its_items_and_no_others(folder):
    batcher, failing = Batcher(Runner(folder)), iter([ZeroDivisionError("once")])

    def on_run(items, seconds):
        for error in failing:
            raise error

    batcher._on_run = on_run
    first, second = (Item(PIXELS[0], 0.0, None, float("inf")) for _ in range(2))
    batcher.submit(first)
    batcher.start()
    with pytest.raises(ZeroDivisionError):
        first.result.result(TIMEOUT)
    batcher.submit(second)
    assert second.result.result(TIMEOUT).step == LAST
    batcher.close()
