"""Accuracy and confidence under noise: trials, the drop worked by hand, and traces that do not belong together."""

import json
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from cascaded.analysis.robustness import persistent_noise, transient_noise
from cascaded.errors import InputError
from cascaded.traces.trace import Trace
from tests.made_traces import facts

PERSISTENT = {"noise": "focus", "protocol": "persistent", "steps": 3, "trials": 2}


def confident(target, noise=None, **origin):
    """A trace with this confidence in the true class, (time, items); the true class is the second."""
    y = np.array(target, dtype=float)
    labels = np.ones(y.shape[1], dtype=np.int64)
    return Trace(np.log(np.stack([1 - y, y], axis=-1)), labels, **facts(**(noise or {}), **origin))


def under(frames, **other):
    """Two clean steps, some noisy ones."""
    return {"noise": "occlusion", "protocol": "transient", "steps": 2, "noise_frames": (frames,), "trials": 1, **other}


@st.composite
def transients(draw):
    """Traces of one to three numbers of frames, which may go up as well as down."""
    items, generator = draw(st.integers(1, 6)), np.random.default_rng(draw(st.integers(0, 2**16)))
    numbers = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3, unique=True))
    return [confident(generator.uniform(0.05, 0.95, (4 + n, items)), under(n)) for n in numbers]


def test_accuracy_is_told_trial_by_trial():
    # two images, two trials: at the last step 1 of 2 right in the first trial, 2 of 2 in the second
    trace = confident([[0.1, 0.1, 0.9, 0.1], [0.9, 0.1, 0.9, 0.9]], PERSISTENT)
    result = persistent_noise(trace)
    assert result.by_trial.tolist() == [[0, 0.5], [0.5, 1]]
    assert result.accuracy.tolist() == [0.25, 0.75]
    assert result.headline == {"accuracy": 0.75}
    assert result.sem == pytest.approx(scipy.stats.sem([0.5, 1]))
    told = result.to_json()
    assert told["final accuracy by trial"] == [0.5, 1]
    assert (told["noise"], told["accuracy"]) == ("focus", [0.25, 0.75])


@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 4), st.integers(0, 2**16))
def test_items_stand_trial_by_trial(trials, images, time, seed):
    target = np.random.default_rng(seed).uniform(0.05, 0.95, (time, trials * images))
    result = persistent_noise(confident(target, {**PERSISTENT, "trials": trials}))
    for k in range(trials):
        assert result.by_trial[k] == pytest.approx((target[:, k * images : (k + 1) * images] > 0.5).mean(axis=1))


def test_one_trial_has_no_error_bar():
    result = persistent_noise(confident([[0.9, 0.1]], {**PERSISTENT, "trials": 1}))
    assert math.isnan(result.sem)
    assert result.to_json()["sem over trials"] is None


def test_a_drop_worked_by_hand():
    # one noisy frame at step 3: from then on .2 .6 .8, so .8 - 1.6 / 3
    one = confident([[0.7], [0.8], [0.2], [0.6], [0.8]], under(1))
    # two, over two items whose means are .9 .9 .1 .3 .5 .9: .9 - 1.8 / 4
    two = confident([[0.9, 0.9], [0.9, 0.9], [0.1, 0.1], [0.2, 0.4], [0.4, 0.6], [0.9, 0.9]], under(2))
    first, second = transient_noise([one]), transient_noise([two])
    assert first.dip == pytest.approx([0.8 - 1.6 / 3])
    assert second.dip == pytest.approx([0.45])
    assert second.confidence[0] == pytest.approx([0.9, 0.9, 0.1, 0.3, 0.5, 0.9])
    assert (second.onset, second.frames.tolist(), second.noise) == (3, [2], "occlusion")


@given(transients())
def test_the_drop_is_averaged_over_items_and_then_over_numbers_of_frames(traces):
    result = transient_noise(traces)
    drops = {}
    for trace in traces:
        y = np.exp(trace.logits[:, :, 1])
        drops[trace.config.noise_frames[0]] = np.mean([y[-1, i] - np.mean(y[2:, i]) for i in range(trace.items)])
    assert result.frames.tolist() == sorted(drops)
    assert result.dip == pytest.approx([drops[n] for n in sorted(drops)])
    assert result.headline["dip"] == pytest.approx(np.mean(list(drops.values())))
    told = result.to_json()
    assert [len(told["frames"][str(n)]["confidence"]) for n in sorted(drops)] == [4 + n for n in sorted(drops)]
    assert json.loads(json.dumps(told, allow_nan=False)) == told


@given(transients(), st.integers(0, 2**16))
def test_the_order_of_items_and_of_traces_changes_nothing(traces, seed):
    order = np.random.default_rng(seed).permutation(traces[0].items)
    other = transient_noise([trace.select(order) for trace in traces[::-1]])
    result = transient_noise(traces)
    assert other.frames.tolist() == result.frames.tolist()
    assert other.dip == pytest.approx(result.dip)
    assert other.headline == pytest.approx(result.headline)


@given(st.floats(0.05, 0.95), st.integers(1, 5))
def test_noise_that_changes_nothing_makes_no_drop(y, frames):
    before = [[0.3], [0.4]]  # before the onset anything may happen
    trace = confident(before + [[y]] * (frames + 2), under(frames))
    assert transient_noise([trace]).dip == pytest.approx([0], abs=1e-12)


def test_other_protocols_are_refused():
    clean, persistent, transient = (confident([[0.5, 0.5]] * 4, noise) for noise in (None, PERSISTENT, under(1)))
    with pytest.raises(InputError, match="has no noise, persistent noise is measured here"):
        persistent_noise(clean)
    with pytest.raises(InputError, match="has transient noise, persistent noise is measured"):
        persistent_noise(transient)
    with pytest.raises(InputError, match="has persistent noise, transient noise is measured"):
        transient_noise([transient, persistent])
    with pytest.raises(InputError, match="there are no traces"):
        transient_noise([])
    with pytest.raises(InputError, match="sets in at step 5 of 4"):
        transient_noise([confident([[0.5]] * 4, under(1, steps=4))])


@pytest.mark.parametrize("what", ["method", "weights", "schedule", "kernel"])
def test_traces_of_other_networks_are_refused(what):
    y = [[0.5, 0.6]] * 6
    with pytest.raises(InputError, match=f"{what} is .* in one trace and another one in another"):
        transient_noise([confident(y, under(1)), confident(y, under(2), **{what: "another one"})])


def test_traces_of_other_noise_and_images_are_refused():
    y = [[0.5, 0.6]] * 6
    one = confident(y, under(1))
    with pytest.raises(InputError, match="noise is occlusion in one trace and focus in another"):
        transient_noise([one, confident(y, under(2, noise="focus"))])
    with pytest.raises(InputError, match="onset is 3 in one trace and 4 in another"):
        transient_noise([one, confident(y, under(2, steps=3))])
    with pytest.raises(InputError, match="trials is 1 in one trace and 2 in another"):
        transient_noise([one, confident(y, under(2, trials=2))])
    with pytest.raises(InputError, match="two traces have 1 noisy frames"):
        transient_noise([one, one])
    with pytest.raises(InputError, match="was recorded on"):
        transient_noise([one, confident(y, under(2), split="train")])
    with pytest.raises(InputError, match="one trace has 2 items, the other 1"):
        transient_noise([one, confident([[0.5]] * 6, under(2))])
