"""Where a trace came from: told in JSON, and in a sentence."""

import json

from cascaded.traces.config import Noising, Origin

ORIGIN = Origin(
    run="runs/td0/0",
    model="cascaded-td",
    lam=(1.0, 0.0),
    seed=3,
    fold=(2, 10),
    weights="ab",
    data="cifar100",
    split="test",
    classes=("ant", "bee"),
    kernel="ews:0.9",
    noise=Noising("focus", "transient", 11, 3, 5, 7),
    coarse_of=(0, 0),
    coarse_classes=("insect",),
    updates=(0, 1),
    operations=(10, 20),
    made_with={"torch": "2"},
)


def test_an_origin_comes_back_from_json_as_it_was():
    assert Origin.from_json(json.loads(json.dumps(ORIGIN.to_json()))) == ORIGIN
    assert Origin.from_json(json.loads(json.dumps(Origin().to_json()))) == Origin()


def test_what_a_later_version_adds_is_passed_over():
    assert Origin.from_json({**ORIGIN.to_json(), "weather": "fair"}) == ORIGIN


def test_an_origin_is_told_in_a_sentence():
    assert str(ORIGIN) == "cifar100 test with transient focus under ews:0.9 of runs/td0/0"
    assert ORIGIN.trials == 5
    assert Origin().trials == 1
