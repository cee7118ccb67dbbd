"""What a run is, as its folder says it."""

import json

import pytest

from cascaded import Recipe, Spec
from cascaded.errors import InputError


@pytest.mark.parametrize(
    "spec",
    [
        Spec("digits"),
        Spec("cifar10", "cascaded-ce", recipe=Recipe(width=8), seed=3, limit=100),
        Spec("folder", lam=(1.0, 0.0), classes=("a", "b"), columns=("img", None), size=32),
    ],
)
def test_json_and_back(spec):
    assert Spec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


def test_differences_name_both_sides():
    one, other = Spec("cifar10", lam=0.0), Spec("cifar10", lam=0.5, recipe=Recipe(epochs=3), seed=1)
    assert one.differences(other) == ["lam 0.0 -> 0.5", "seed 0 -> 1", "epochs 120 -> 3"]
    assert one.differences(one) == []


def test_what_means_the_same_is_the_same():
    assert Spec("folder/").differences(Spec("folder", lam=0.0)) == []
    assert Spec("digits", "serial-td-multihead").differences(Spec("digits", "serial-td-multihead", lam=1.0)) == []


def test_another_format_is_refused():
    with pytest.raises(InputError, match=r"spec\.json is not of format 1"):
        Spec.from_json({**Spec("digits").to_json(), "format": 2})
