"""Kernels by name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cascaded
from cascaded.cascade.named import make_kernel
from cascaded.errors import InputError
from tests.drawn import weights


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("osd", cascaded.OneStepDelay()),
        ("none", cascaded.NoDelay()),
        ("ews:0.9", cascaded.ExponentialSmoothing(0.9)),
        ("taps:0,0.5,0.5", cascaded.TappedDelay([0, 0.5, 0.5])),
    ],
)
def test_names_and_kernels(name, kernel):
    assert make_kernel(name) == kernel


@given(st.lists(weights, min_size=1, max_size=4).filter(any))
def test_taps_are_the_numbers_in_the_name(taps):
    kernel = make_kernel("taps:" + ",".join(map(str, taps)))
    assert tuple(kernel.weights) == tuple(cascaded.TappedDelay(taps).weights)


@pytest.mark.parametrize("name", ["ews", "ews:", "ews:fast", "taps:1,x", "OSD", "osd:1", ""])
def test_other_names_are_refused_with_the_known_ones(name):
    with pytest.raises(InputError, match=r"give osd \(one-step delay\), none, ews:0.9"):
        make_kernel(name)


def test_a_parameter_out_of_range_is_named():
    with pytest.raises(InputError, match=r"alpha is 1\.5"):
        make_kernel("ews:1.5")
