"""The paper's methods by name, and lambda as a number or a schedule."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascaded.training.method import CE, METHODS, TD, MethodName, get_method, parse_lam
from tests.refused import refused


@pytest.mark.parametrize(
    ("name", "schedule", "heads", "loss"),
    [
        ("serial-ce", "serial", "shared", CE()),
        ("serial-td", "serial", "shared", TD(1.0)),
        ("serial-td-multihead", "serial", "per_step", TD(1.0)),
        ("shallow-deep", "serial", "shallow_deep", TD(1.0)),
        ("cascaded-ce", "cascaded", "shared", CE()),
        ("cascaded-td", "cascaded", "shared", TD(0.0)),
        ("cascaded-td-multihead", "cascaded", "per_step", TD(0.0)),
    ],
)
def test_methods_are_the_papers(name, schedule, heads, loss):
    method = get_method(name)
    assert (method.schedule, method.heads, method.loss) == (schedule, heads, loss)
    assert set(get_args(MethodName)) == set(METHODS)  # the command line offers every one


def test_lambda_runs_through_its_knots_in_straight_lines():
    falling = TD((1.0, 0.5, 0.0))
    assert [falling.at(p) for p in (0, 0.25, 0.5, 0.75, 1)] == [1, 0.75, 0.5, 0.25, 0]
    assert TD(0.3).at(0) == TD(0.3).at(0.7) == TD(0.3).at(1) == 0.3


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5), st.floats(-1, 2))
def test_lambda_stays_between_its_knots(knots, progress):
    assert min(knots) - 1e-12 <= TD(tuple(knots)).at(progress) <= max(knots) + 1e-12


def test_lambda_is_read_from_a_word():
    for text, lam in (("0", 0.0), ("0.83", 0.83), ("1:0", (1.0, 0.0)), ("0:1:0.5", (0, 1, 0.5))):
        assert parse_lam(text) == lam
    for text, message in (("half", "--lam is 'half'"), ("1.5", "lam is 1.5"), ("1:", "'1:'"), ("0:2", "2.0")):
        refused(message, parse_lam, text)


def test_wrong_names_are_refused_with_the_nearest():
    refused(r"there is no method 'cascade-td': did you mean cascaded-td\?", get_method, "cascade-td")
    refused("there is no method 'xyz': give one of cascaded-td, ", get_method, "xyz")
    refused(r"serial-ce is trained on the last step only .* or use serial-td", get_method, "serial-ce", 0.5)
