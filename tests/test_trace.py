"""A trace: its arrays fit together, and others are refused."""

import numpy as np
import pytest

from cascaded.errors import InputError
from cascaded.traces.config import Provenance
from cascaded.traces.trace import Trace, check_same_items, join
from tests.made_traces import facts
from tests.refused import refused

rng = np.random.default_rng(0)


def made(items=6, steps=4, classes=3, indices=None, **values):
    logits = rng.normal(size=(steps, items, classes)).astype(np.float32)
    labels = np.arange(items) % classes
    return Trace(logits, labels, indices, **facts(**values))


def test_rows_are_counted_from_zero_by_default():
    trace = made()
    assert (trace.steps, trace.items, trace.classes) == (4, 6, 3)
    assert trace.indices.tolist() == [0, 1, 2, 3, 4, 5]


def test_costs_add_up_from_the_first_step_on():
    trace = made(updates=(0, 2, 1, 0), operations=(10, 20, 10, 0))
    assert trace.cost().tolist() == [1, 2, 3, 4]
    assert trace.cost("updates").tolist() == [0, 2, 3, 3]
    assert trace.cost("operations").tolist() == [10, 30, 40, 40]
    refused("has 4 steps and updates for 0 of them: record it with cascaded record", made().cost, "updates")
    refused("unit is 'seconds': use steps, updates or operations", made().cost, "seconds")


def test_selecting_keeps_what_belongs_together():
    trace = made()
    some = trace.select(np.array([4, 1]))
    assert some.indices.tolist() == [4, 1]
    assert some.labels.tolist() == [1, 1]
    assert np.array_equal(some.logits, trace.logits[:, [4, 1]])


def test_a_trial_is_every_image_once():
    noise = {"noise": "focus", "protocol": "persistent", "steps": 4, "trials": 3}
    trace = made(indices=np.array([7, 9] * 3), **noise)
    assert trace.trial(1).indices.tolist() == [7, 9]
    assert np.array_equal(trace.trial(2).logits, trace.logits[:, 4:])
    assert trace.trial(2).trials == 1
    refused("trial 3 does not exist, the trace has 3", trace.trial, 3)
    refused("5 items are not 3 trials of equal length", made, items=5, **noise)


def test_folds_are_joined_in_the_order_of_their_source():
    one, other = made(3, indices=np.array([5, 0, 2])), made(2, indices=np.array([1, 4]))
    whole = join([one, other])
    assert whole.indices.tolist() == [0, 1, 2, 4, 5]
    assert np.array_equal(whole.logits[:, 0], one.logits[:, 1])
    assert np.array_equal(whole.logits[:, 3], other.logits[:, 1])
    assert whole.labels.tolist() == [one.labels[1], other.labels[0], one.labels[2], other.labels[1], one.labels[0]]


def test_traces_that_do_not_belong_together_are_not_joined():
    refused("two of the traces contain the same image", join, [made(), made()])
    refused("one trace and the other differ in steps, 4 and 5: join folds", join, [made(), made(steps=5)])
    with pytest.raises(InputError, match="one trace and the other differ in data, cifar10 and svhn: record both"):
        join([made(data="cifar10"), made(data="svhn")])
    refused("there are no traces to join", join, [])


def test_a_description_names_data_noise_and_run():
    trace = made(data="cifar10", split="test", kernel="ews:0.9", run="runs/td0/0")
    assert trace.description == "cifar10 test, ews:0.9, no noise, runs/td0/0"
    noisy = made(data="cifar10", split="test", noise="occlusion", protocol="transient", noise_frames=(1,))
    assert noisy.description == "cifar10 test, osd, transient occlusion, no run"
    assert made().description == "data without a name, osd, no noise, no run"


def test_traces_of_other_items_are_not_compared():
    mine = made(data="a", split="test", images="0" * 64)
    check_same_items(mine, made(data="a", split="test", images="0" * 64, seed=3))
    with pytest.raises(InputError, match=r"one trace and the other differ in split, test and train: record both"):
        check_same_items(mine, made(data="a", split="train", images="0" * 64))
    with pytest.raises(InputError, match=r"one trace and the other differ in images, 0{12}... and 1{12}..."):
        check_same_items(mine, made(data="a", split="test", images="1" * 64))
    refused("differ in items, 6 and 5: record both with the same --max-images", check_same_items, made(), made(5))
    swapped = np.array([0, 1, 3, 2, 4, 5])
    with pytest.raises(InputError, match="item 2 is image 2 in one trace and 3 in the other: sort both"):
        check_same_items(made(), made(indices=swapped))


def test_what_does_not_fit_together_is_refused():
    logits, labels = np.zeros((4, 6, 3), np.float32), np.zeros(6, np.int64)
    refused(r"logits have shape \(4, 6\): give \(time, items, classes\)", Trace, np.zeros((4, 6), np.float32), labels)
    refused(r"labels \(5,\) and indices \(5,\): give one label and one index per item", Trace, logits, labels[:5])
    refused("logits are int64: give floating point", Trace, logits.astype(np.int64), labels)
    refused("label 3 is none of the 3 classes, 0 to 2", Trace, logits, labels + 3)
    assert Trace(logits, labels + 3, provenance=Provenance(in_distribution=False)).items == 6
    broken = logits.copy()
    broken[2, 1, 0] = np.nan
    refused("logits at step 3 are not all finite", Trace, broken, labels)
    with pytest.raises(InputError, match=r"embeddings have shape \(6, 8\) and the head \(3, 7\) for 6 items"):
        Trace(logits, labels, embeddings=np.zeros((6, 8)), head=np.zeros((3, 7)))


def test_folds_of_other_networks_are_not_joined():
    one = made(3, indices=np.array([0, 1, 2]), kernel="osd")
    with pytest.raises(
        InputError, match=r"one trace and the other differ in kernel, osd and ews:0.9: join folds of one network"
    ):
        join([one, made(3, indices=np.array([3, 4, 5]), kernel="ews:0.9")])


def test_other_things_than_arrays_are_refused_with_the_way_out():
    with pytest.raises(InputError, match=r"logits are of type list: give NumPy arrays, such as tensor.numpy\(\)"):
        Trace([[[1.0]]], np.zeros(1, np.int64))
    refused("labels are float64: give whole numbers", Trace, np.zeros((1, 1, 1), np.float32), np.zeros(1))
