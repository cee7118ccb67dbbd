"""Rank correlations against scipy and by hand, and the statistic of their difference with a pencil."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cascaded.analysis.ranks import on_ranks, p_of_rho, spearman, z_of_difference
from tests.refused import refused

tied = st.lists(st.sampled_from([-2.0, 0.0, 1.0, 1.5, 7.0, math.inf]), min_size=3, max_size=40)


def vary(*sides):
    return all(len(set(side)) > 1 for side in sides)


def test_a_case_worked_by_hand():
    # ranks 1 2.5 2.5 4 and 2 1 3 4: deviations -1.5 0 0 1.5 and -.5 -1.5 .5 1.5, rho = 3 / sqrt(4.5 * 5)
    assert spearman(np.array([1.0, 5.0, 5.0, 9.0]), np.array([2.0, 1.0, 3.0, 4.0])) == pytest.approx(3 / 22.5**0.5)


@given(st.data())
def test_rho_is_scipys_with_ties_and_infinities(data):
    x = np.array(data.draw(tied))
    y = np.array(data.draw(st.lists(st.sampled_from([-math.inf, 0.0, 1.0, 3.0]), min_size=len(x), max_size=len(x))))
    if vary(x, y):
        assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    else:
        assert math.isnan(spearman(x, y))


def test_an_item_that_never_settles_is_slower_than_all_that_do():
    assert spearman(np.array([1.0, 2.0, math.inf]), np.array([1.0, 2.0, 3.0])) == 1
    never = np.array([1.0, math.inf, math.inf])
    assert spearman(never, np.array([1.0, 2.0, 2.0])) == 1  # and as slow as others that never do


def test_what_has_no_rank_is_refused():
    refused("nan, which has no rank", spearman, np.array([1.0, math.nan]), np.array([1.0, 2.0]))
    refused(r"shape \(2,\), the other \(3,\)", spearman, np.zeros(2), np.zeros(3))


@given(tied, st.integers(0, 2**16))
def test_drawn_items_are_ranked_among_themselves(x, seed):
    random = np.random.default_rng(seed)
    x, y, numbers = np.array(x), random.normal(size=len(x)), random.integers(len(x), size=len(x))
    expected = spearman(x[numbers], y[numbers])
    assert on_ranks(x, y)(numbers) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("n", [3, 4, 30, 50_000])
@pytest.mark.parametrize("rho", [-0.9, 0.0, 0.02, 0.5])
def test_p_is_that_of_student_t(rho, n):
    t = rho * math.sqrt((n - 2) / (1 - rho**2))
    assert p_of_rho(rho, n) == pytest.approx(2 * stats.t.sf(abs(t), n - 2))


def test_p_of_a_perfect_and_of_no_correlation():
    assert (p_of_rho(1.0, 5), p_of_rho(-1.0, 5)) == (0, 0)
    assert math.isnan(p_of_rho(math.nan, 5))
    assert math.isnan(p_of_rho(1.0, 2))


def test_the_difference_worked_with_a_pencil():
    # r2 = (.3969 + .0009) / 2 = .1989, f = 1.19 / 1.6022 = .7427, h = .8523 / .8011 = 1.0639
    # z_a - z_b = .7414 + .0300 = .7714, times sqrt(12 / (2 * 1.19 * 1.0639)) = 2.1770
    assert z_of_difference(0.63, -0.03, -0.19, 15) == pytest.approx(1.6794, abs=2e-4)
    # where f would be above 1 it is 1, and so is h
    r2 = (0.95**2 + 0.8**2) / 2
    assert 0.5 / (2 * (1 - r2)) > 1
    expected = (math.atanh(0.95) - math.atanh(0.8)) * math.sqrt(97 / (2 * 0.5))
    assert z_of_difference(0.95, 0.8, 0.5, 100) == pytest.approx(expected)


def test_the_edges_of_the_difference():
    assert z_of_difference(1.0, 0.5, 0.5, 10) == math.inf
    assert z_of_difference(-1.0, 1.0, -1.0, 10) == -math.inf
    assert z_of_difference(0.3, 0.3, 1.0, 10) == 0
    refused("3 items have a score and the test of a difference needs 4", z_of_difference, 0.5, 0.4, 0.3, 3)
