"""Accuracy and confidence under noise: trials, the dip worked by hand, and traces that do not belong together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascaded.analysis.robustness import persistent_noise, transient_noise
from cascaded.analysis.statistics import draw_items
from cascaded.errors import InputError
from tests.hand_made import curve_of, trace_of, value_of
from tests.refused import refused

PERSISTENT = {"noise": "focus", "protocol": "persistent", "trials": 2}


def confident(target, **about):
    """A trace with this confidence in the true class, (time, items); the true class is the second."""
    y = np.array(target, dtype=float)
    return trace_of(np.log(np.stack([1 - y, y], axis=-1)), np.ones(y.shape[1], dtype=np.int64), **about)


def under(frames, **other):
    """Two clean steps, some noisy ones, two clean ones."""
    about = {"noise": "occlusion", "protocol": "transient", "steps": 2, "trials": 1, "noise_frames": (frames,)}
    return {**about, **other}


@st.composite
def transients(draw):
    """Traces of one to three numbers of frames, which may go up as well as down."""
    items, generator = draw(st.integers(1, 6)), np.random.default_rng(draw(st.integers(0, 2**16)))
    numbers = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3, unique=True))
    return [confident(generator.uniform(0.05, 0.95, (4 + n, items)), **under(n)) for n in numbers]


@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 4), st.integers(0, 2**16))
def test_an_image_is_drawn_with_all_of_its_trials(trials, images, time, seed):
    target = np.random.default_rng(seed).uniform(0.05, 0.95, (time, trials * images))
    rows = persistent_noise(confident(target, **{**PERSISTENT, "trials": trials}), draws=4, seed=seed)
    right = target > 0.5
    assert value_of(rows, "accuracy") == pytest.approx(right[-1].mean())  # over all trials
    assert list(curve_of(rows, "accuracy_per_step").values()) == pytest.approx(right.mean(axis=1))
    by_trial = right[-1].reshape(trials, images)
    expected = [by_trial[:, items].mean() for items in draw_items(images, 4, seed)]
    assert rows[rows.metric == "accuracy"].draws.iloc[0] == pytest.approx(expected)


def test_a_drop_worked_by_hand():
    # one noisy frame at step 3: from then on .2 .6 .8, so .8 - 1.6 / 3
    one = confident([[0.7], [0.8], [0.2], [0.6], [0.8]], **under(1))
    # two, over two items whose means are .9 .9 .1 .3 .5 .9: .9 - 1.8 / 4
    two = confident([[0.9, 0.9], [0.9, 0.9], [0.1, 0.1], [0.2, 0.4], [0.4, 0.6], [0.9, 0.9]], **under(2))
    first, second = transient_noise([one], draws=2), transient_noise([two], draws=2)
    assert value_of(first, "dip") == pytest.approx(0.8 - 1.6 / 3)
    assert curve_of(second, "dip_by_frames") == {2: pytest.approx(0.45)}
    confidence = curve_of(second, "target_confidence", noise_frames=2)
    assert list(confidence.values()) == pytest.approx([0.9, 0.9, 0.1, 0.3, 0.5, 0.9])
    assert value_of(second, "final_confidence") == pytest.approx(0.9)
    assert value_of(second, "onset") == 3


@given(transients())
def test_the_drop_is_averaged_over_items_and_then_over_numbers_of_frames(traces):
    rows = transient_noise(traces, draws=2)
    drops = {}
    for trace in traces:
        y = np.exp(trace.logits[:, :, 1])
        n = trace.config.noise_frames[0]
        drops[n] = np.mean([y[-1, i] - np.mean(y[2:, i]) for i in range(trace.items)])
        assert len(curve_of(rows, "target_confidence", noise_frames=n)) == 4 + n
    assert curve_of(rows, "dip_by_frames") == pytest.approx(drops)
    assert value_of(rows, "dip") == pytest.approx(np.mean(list(drops.values())))


def test_other_protocols_are_refused():
    clean, persistent, transient = (confident([[0.5, 0.5]] * 4, **noise) for noise in ({}, PERSISTENT, under(1)))
    refused("has no noise, persistent noise is measured here", persistent_noise, clean)
    refused("has transient noise, persistent noise is measured", persistent_noise, transient)
    refused("has persistent noise, transient noise is measured", transient_noise, [transient, persistent])
    refused("there are no traces", transient_noise, [])
    refused("begins at step 5 of 4", transient_noise, [confident([[0.5]] * 4, **under(1, steps=4))])


@pytest.mark.parametrize(
    ("what", "value"),
    [("method", "x"), ("weights", "x"), ("schedule", "serial"), ("kernel", "none"), ("noise", "focus"), ("trials", 2)],
)
def test_traces_of_other_networks_and_noise_are_refused(what, value):
    y = [[0.5, 0.6]] * 7
    with pytest.raises(InputError, match=f"{what} is .* in one trace and {value} in another"):
        transient_noise([confident(y, **under(1)), confident(y, **under(2, **{what: value}))])


def test_traces_of_other_onsets_and_images_are_refused():
    y = [[0.5, 0.6]] * 7
    one = confident(y, **under(1))
    refused("onset is 3 in one trace and 4 in another", transient_noise, [one, confident(y, **under(2, steps=3))])
    refused("two traces have 1 noisy frames", transient_noise, [one, one])
    with pytest.raises(InputError, match="one trace and the other differ in split, None and train"):
        transient_noise([one, confident(y, **under(2, split="train"))])
    with pytest.raises(InputError, match="one trace and the other differ in items, 2 and 1"):
        transient_noise([one, confident([[0.5]] * 7, **under(2))])
