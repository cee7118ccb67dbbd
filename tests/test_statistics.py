"""Error bars against published data, scipy, and samples whose truth is known."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from cascaded.analysis.statistics import bootstrap, corrected_sem, draw_items, mean_of, over_seeds, paired, sem
from tests.refused import refused

# Loftus and Masson (1994): words recalled by ten subjects at three exposure times
AT_EACH_TIME = ([10, 6, 11, 22, 16, 15, 1, 12, 9, 8], [13, 8, 14, 23, 18, 17, 1, 15, 12, 9])
AT_EACH_TIME += ([13, 8, 14, 25, 20, 17, 4, 17, 12, 12],)
RECALLED = np.array(AT_EACH_TIME, dtype=float).T


@st.composite
def tables(draw, seeds=(2, 6), conditions=(2, 5)):
    """Figures of some seeds under some conditions."""
    shape = draw(st.integers(*seeds)), draw(st.integers(*conditions))
    return np.random.default_rng(draw(st.integers(0, 2**16))).normal(0.9, 0.02, shape)


def interaction_by_anova(x):
    """MS_SxC from sums of squares: what neither seeds nor conditions explain."""
    n, k = x.shape
    total = ((x - x.mean()) ** 2).sum()
    between_seeds = sum(k * (row.mean() - x.mean()) ** 2 for row in x)
    between_conditions = sum(n * (column.mean() - x.mean()) ** 2 for column in x.T)
    return (total - between_seeds - between_conditions) / ((n - 1) * (k - 1))


def bootstrap_mean(values, **options):
    return bootstrap(mean_of(values), len(values), **options)


def test_the_interval_published_by_loftus_and_masson():
    error = corrected_sem(RECALLED)
    assert error**2 * 10 == pytest.approx(0.61, abs=0.005)
    estimates = over_seeds(RECALLED)
    assert [each.value for each in estimates] == pytest.approx([11.0, 13.0, 14.2])
    for each in estimates:
        assert (each.high - each.low) / 2 == pytest.approx(0.52, abs=0.005)
        assert (each.sem, each.n) == (error, 10)
    assert sem(RECALLED[:, 0]) > 7 * error  # subjects differ far more than what was done to them


@given(tables())
def test_the_corrected_error_is_the_interaction_of_an_analysis_of_variance(x):
    assert corrected_sem(x) == pytest.approx(math.sqrt(interaction_by_anova(x) / len(x)), rel=1e-6)


@given(tables(), st.integers(0, 2**16))
def test_a_seed_that_is_better_everywhere_changes_no_error_bar(x, seed):
    shifted = x + np.random.default_rng(seed).normal(0, 1, (len(x), 1))
    assert corrected_sem(shifted) == pytest.approx(corrected_sem(x))


@given(tables(conditions=(2, 2)))
def test_with_two_conditions_the_difference_of_means_is_as_wide_as_the_paired_test_says(x):
    assert paired(x[:, 0], x[:, 1]).sem == pytest.approx(math.sqrt(2) * corrected_sem(x))


@given(tables(conditions=(2, 2)), st.sampled_from([0.5, 0.9, 0.95]))
def test_a_paired_comparison_is_that_of_scipy(x, level):
    ours, theirs = paired(x[:, 0], x[:, 1], level), scipy.stats.ttest_rel(x[:, 0], x[:, 1])
    interval = theirs.confidence_interval(level)
    assert (ours.low, ours.high) == pytest.approx((interval.low, interval.high))
    assert ours.p == pytest.approx(theirs.pvalue)
    assert ours.value == pytest.approx((x[:, 0] - x[:, 1]).mean())
    assert ours.n == len(x)


def test_equal_differences_leave_no_doubt_and_none_at_all_no_test():
    assert paired([0.75, 0.5], [0.5, 0.25]).p == 0
    assert math.isnan(paired([0.75, 0.5], [0.75, 0.5]).p)


@given(tables(conditions=(1, 1)))
def test_one_condition_has_the_ordinary_error(x):
    (each,) = over_seeds(x)
    assert each.sem == pytest.approx(scipy.stats.sem(x[:, 0]))
    low, high = scipy.stats.t.interval(0.95, len(x) - 1, loc=x.mean(), scale=each.sem)
    assert (each.low, each.high) == pytest.approx((low, high))
    refused("was given 1: give at least two, or use sem", corrected_sem, x)


def test_one_seed_has_no_interval():
    x = np.array([[0.9, 0.8]])
    assert math.isnan(corrected_sem(x))
    assert math.isnan(sem(x[:, 0]))
    first, second = over_seeds(x)
    assert (first.value, second.value) == (0.9, 0.8)
    assert np.isnan([first.low, first.high, first.sem]).all()
    assert first.n == 1
    alone = paired([0.9], [0.8])
    assert alone.value == pytest.approx(0.1)
    assert math.isnan(alone.p)


def test_equal_conditions_lie_as_close_as_their_intervals_say():
    # seeds differ a lot, conditions not at all: the difference of two means is sqrt(2) intervals wide 19 times in 20
    generator = np.random.default_rng(0)
    within = 0
    for _ in range(4000):
        first, second, *_ = over_seeds(generator.normal(0, 5, (5, 1)) + generator.normal(0, 1, (5, 4)))
        within += abs(first.value - second.value) <= math.sqrt(2) * (first.high - first.value)
    assert 0.94 < within / 4000 < 0.96


@settings(max_examples=20)
@given(st.integers(2, 50), st.integers(0, 2**16))
def test_the_bootstrap_is_that_of_scipy(items, seed):
    values = np.random.default_rng(seed).normal(size=items)
    ours = bootstrap_mean(values, draws=4000)
    options = {"n_resamples": 4000, "method": "percentile", "random_state": np.random.default_rng(1)}
    theirs = scipy.stats.bootstrap((values,), np.mean, vectorized=True, **options)
    # each end is off by its own chance: a few percent of the width over 4000 draws
    near = 0.1 * (ours.high - ours.low)
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=near)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=near)
    assert ours.sem == pytest.approx(theirs.standard_error, rel=0.1)
    assert ours.value == pytest.approx(values.mean())
    assert ours.n == items


def test_bootstrap_intervals_hold_the_truth_as_often_as_they_say():
    generator = np.random.default_rng(0)
    intervals = [bootstrap_mean(generator.normal(3, 1, 40), draws=200, seed=k) for k in range(300)]
    share = np.mean([each.low <= 3 <= each.high for each in intervals])
    assert 0.90 < share < 0.98


@given(st.integers(1, 30), st.integers(0, 5))
def test_the_same_seed_draws_the_same_items_for_every_statistic(items, seed):
    kept = ([], [])
    for keep in kept:
        bootstrap(lambda numbers, keep=keep: keep.append(numbers.tolist()) or 0.0, items, draws=5, seed=seed)
    assert kept[0] == kept[1]
    assert all(len(numbers) == items and set(numbers) <= set(range(items)) for numbers in kept[0])


def test_another_seed_draws_other_items():
    values = np.arange(20.0)
    assert bootstrap_mean(values, seed=0).low == bootstrap_mean(values, seed=0).low
    assert bootstrap_mean(values, seed=0).sem != bootstrap_mean(values, seed=1).sem


def test_a_difference_is_of_the_same_draws():
    a = np.random.default_rng(0).normal(0, 10, 50)
    b = a - 1  # one apart at every item: so it is in every draw
    both = bootstrap(lambda i: a[i].mean() - b[i].mean(), 50)
    assert (both.low, both.value, both.high) == pytest.approx((1, 1, 1))
    assert bootstrap_mean(a).sem > 1


def test_a_figure_that_some_draws_do_not_have_gets_no_interval():
    rare = np.array([True, *[False] * 9])
    each = bootstrap(lambda i: 1.0 if rare[i].any() else math.nan, 10)
    assert each.value == 1
    assert math.isnan(each.low)


def test_more_draws_begin_with_the_same_ones():
    few, many = list(draw_items(7, 3, seed=1)), list(draw_items(7, 9, seed=1))
    assert all(np.array_equal(a, b) for a, b in zip(few, many, strict=False))


def test_bad_tables_are_refused():
    refused("one condition has 2 seeds, the other 3", paired, [1, 2], [1, 2, 3])
    refused(r"shape \(3,\): give \(seeds, conditions\)", over_seeds, np.ones(3))
    refused(r"row 1 \(a seed\) has nan in column 0", over_seeds, np.array([[1.0, 2.0], [math.nan, 1.0]]))
    for level in (0, 1, 95):
        refused("level is", over_seeds, RECALLED, level)
        refused("level is", bootstrap_mean, np.ones(3), level=level)
    refused("1000 draws of 0 items", bootstrap_mean, np.ones(0))
