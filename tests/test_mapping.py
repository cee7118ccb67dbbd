"""The line from steps to milliseconds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cascaded.analysis.mapping import Fit, Line
from cascaded.analysis.network_curves import NetworkCurves
from cascaded.analysis.people import rms
from tests.refused import refused

MS = np.array([200.0, 400.0, 600.0, 800.0, 1000.0])


def network(steps=9, conditions=8, seed=0):
    """Curves that rise from chance, some early, some late, to different accuracies."""
    random = np.random.default_rng(seed)
    x = np.arange(steps + 1.0)
    last, halfway = random.uniform(0.2, 0.9, (conditions, 1)), random.uniform(2, 6, (conditions, 1))
    rise = 1 / (1 + np.exp(-(x - halfway))) - 1 / (1 + np.exp(halfway))
    return NetworkCurves(x, 0.1 + (last - 0.1) * rise / rise[:, -1:])


@given(st.floats(0, 350), st.floats(60, 120), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_the_fit_recovers_the_line_of_synthetic_people(a, b, seed):  # two deadlines at least are on the rise
    curves = network(seed=seed)
    people = curves.at(Line(a, b).places(MS))
    found = Fit(curves, MS)(people)
    assert found.offset == pytest.approx(a, abs=2)
    assert found.scale == pytest.approx(b, rel=0.01)
    assert rms(people, curves.at(found.places(MS))) < 1e-3


@given(st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_no_line_of_a_dense_grid_is_closer_to_noisy_people(seed):
    curves, random = network(seed=seed), np.random.default_rng(seed)
    people = curves.at(Line(300.0, 90.0).places(MS)) + random.normal(0, 0.05, (8, 5))
    found = rms(people, curves.at(Fit(curves, MS)(people).places(MS)))
    others = [Line(a, b) for a in np.linspace(0, 1000, 41) for b in np.geomspace(2, 2000, 41)]
    assert found <= min(rms(people, curves.at(line.places(MS))) for line in others) + 1e-6


def test_people_that_are_faster_than_any_line_get_the_offset_zero():
    curves = network()
    people = curves.at(Line(-150.0, 80.0).places(MS))
    found = Fit(curves, MS)(people)
    assert found.offset == 0
    assert found.scale > 0


def test_cells_without_trials_are_left_out():
    curves = network()
    people = curves.at(Line(200.0, 80.0).places(MS))
    people[3, 1] = np.nan
    assert Fit(curves, MS)(people).offset == pytest.approx(200, abs=2)
    refused("people have no trials", Fit(curves, MS), np.full_like(people, np.nan))


def test_a_network_is_at_chance_before_the_offset_and_stays_as_it_is_at_the_end():
    curves = network()
    ends = curves.at(np.array([-3.0, 0.0, 9.0, 90.0]))
    assert np.array_equal(ends[:, 0], ends[:, 1])
    assert ends[:, 0] == pytest.approx(0.1)
    assert np.array_equal(ends[:, 2], ends[:, 3])
    assert curves.at(np.array([1.5]))[:, 0] == pytest.approx(curves.accuracy[:, 1:3].mean(axis=1))
    refused("x is .*: give 0 and then increasing", NetworkCurves, np.array([1.0, 2.0]), np.ones((1, 2)))
