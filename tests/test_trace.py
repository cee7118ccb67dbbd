"""A trace: its arrays fit together, and others are refused; the configuration of its recording."""

import hashlib

import msgspec
import numpy as np
import pytest

from cascaded.errors import InputError
from cascaded.traces.config import Provenance, RecordingConfig
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
    with pytest.raises(InputError, match=r"one trace and the other differ in kernel, osd and ews:0.9: join folds of"):
        join([made(3, kernel="osd"), made(3, kernel="ews:0.9")])
    refused("there are no traces to join", join, [])


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


def test_other_things_than_arrays_are_refused_with_the_way_out():
    with pytest.raises(InputError, match=r"logits are of type list: give NumPy arrays, such as tensor.numpy\(\)"):
        Trace([[[1.0]]], np.zeros(1, np.int64))
    refused("labels are float64: give whole numbers", Trace, np.zeros((1, 1, 1), np.float32), np.zeros(1))


STILL = RecordingConfig(data="cifar10", split="test", kernel="ews:0.9", steps=70, schedule="cascaded")
NOISY = RecordingConfig(
    data="cifar10",
    split="test",
    steps=10,
    schedule="cascaded",
    noise="occlusion",
    protocol="transient",
    trials=5,
    noise_frames=(3,),
)


def test_provenance_comes_back_from_json_and_unknown_fields_are_ignored():
    source = Provenance("runs/td0/0", "cascaded-td", (1.0, 0.0), 3, (2, 10), "ab", made_with={"torch": "2"})
    fields = {**msgspec.to_builtins(source), "added_later": 1}
    assert msgspec.json.decode(msgspec.json.encode(fields), type=Provenance) == source


def test_time_is_fine_where_the_response_of_a_block_is_spread_over_steps():
    kernels = {"osd": "coarse", "none": "coarse", "ews:0.9": "fine", "taps:0,0.5,0.5": "fine"}
    assert {kernel: RecordingConfig(kernel=kernel).time for kernel in kernels} == kernels
    assert RecordingConfig(kernel="none", schedule="serial").time == "coarse"


def test_the_onset_of_noise_is_the_first_noisy_step():
    assert (STILL.onset, STILL.total_steps) == (None, 70)
    assert (NOISY.onset, NOISY.total_steps) == (11, 23)
    assert RecordingConfig(noise="focus", protocol="persistent", steps=9).onset == 1


def test_names_are_those_of_files():
    assert STILL.name == "cifar10-test-ews0.9-70"
    assert NOISY.name == "cifar10-test-osd-occlusion-transient-3"
    serial = RecordingConfig("svhn", "test", "none", 9, "serial", max_images=20)
    assert serial.name == "svhn-test-serial-9-20images"
    place = "my photos/a+b"
    digest = hashlib.sha256(place.encode()).hexdigest()[:6]
    assert RecordingConfig(place, "validation", "taps:0,0.5", 4).name == f"a_b-{digest}-validation-taps0_0.5-4"
    assert len({RecordingConfig(f"{place}/x").name for place in ("a", "b")}) == 2
