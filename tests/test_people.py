"""Measures of speed-accuracy curves and confusions, against hand-computed numbers and loops."""

import numpy as np
import pytest

from cascaded.analysis.people import (
    People,
    accuracy_range,
    ceiling,
    confusion,
    errors,
    pearson,
    rms,
    steepness,
)
from cascaded.data.trials import Answers, accuracy, count_answers, trials

MS = np.array([200.0, 400.0, 600.0, 1000.0])


def simulated(observers=20, per_cell=40, spread=0.05, seed=0, categories=10):
    """Observers whose accuracy varies around a truth per deadline: one manipulation, two levels."""
    random, truth = np.random.default_rng(seed), np.array([[0.1, 0.3, 0.6], [0.1, 0.2, 0.3]])
    counts = np.zeros((observers, 2, 3, categories, categories), np.int64)
    for o, c, d in np.ndindex(observers, 2, 3):
        p = np.clip(truth[c, d] + random.normal(0, spread), 0, 1)
        correct = random.binomial(per_cell, p)
        counts[o, c, d, 0, 0], counts[o, c, d, 0, 1] = correct, per_cell - correct
    names = tuple(("noise", str(o)) for o in range(observers))
    conditions, classes = (("noise", 0.0), ("noise", 1.0)), tuple(map(str, range(categories)))
    return truth, Answers(conditions, (200.0, 400.0, 600.0), classes, names, counts)


def test_steepness_is_the_largest_rise_per_100_ms():
    assert steepness(np.array([[0.1, 0.1, 0.5, 0.9]]), MS).tolist() == [pytest.approx(0.2)]
    assert steepness(np.array([[0.5, 0.3, 0.2, 0.2]]), MS).tolist() == [pytest.approx(0)]


def test_the_range_is_the_largest_accuracy_minus_the_smallest():
    assert accuracy_range(np.array([[0.2, 0.1, 0.8, 0.7], [0.3, 0.3, 0.3, 0.3]])).tolist() == pytest.approx([0.7, 0])


def test_people_have_the_published_range_without_noise():
    people = accuracy(count_answers(trials()).counts.sum(axis=0))
    assert accuracy_range(people)[0] == pytest.approx(0.489, abs=5e-4)


def test_correlation_and_difference_leave_out_what_is_missing():
    a, b = np.array([0.1, np.nan, 0.3, 0.7]), np.array([0.2, 0.9, 0.3, 0.5])
    assert pearson(a, b) == pytest.approx(np.corrcoef(a[[0, 2, 3]], b[[0, 2, 3]])[0, 1])
    assert rms(a, b) == pytest.approx(np.sqrt((0.01 + 0 + 0.04) / 3))
    assert np.isnan(pearson(np.ones(4), b))
    assert np.isnan(pearson(a[1:2], b[1:2]))
    assert np.isnan(rms(a[1:2], b[1:2]))


def test_confusions_are_fractions_per_category():
    counts = np.array([[3, 1, 0], [0, 0, 0], [1, 1, 2]])
    found = confusion(counts)
    assert found[0].tolist() == [0.75, 0.25, 0]
    assert np.isnan(found[1]).all()
    assert errors(found)[:2].tolist() == [0.25, 0]
    assert len(errors(found)) == 6


def test_the_ceiling_is_the_error_of_a_perfect_model():
    measured, perfect = [], []
    for seed in range(20):
        truth, answers = simulated(seed=seed)
        measured.append(ceiling(answers, lambda counts: accuracy(counts).ravel()).error)
        perfect.append(rms(accuracy(answers.counts.sum(axis=0)), truth))
    assert np.mean(measured) == pytest.approx(np.sqrt(np.mean(np.square(perfect))), rel=0.15)


def test_reliability_is_that_of_all_observers_not_of_half():
    both = []
    for seed in range(20):
        _, one = simulated(seed=seed, spread=0.3, per_cell=3)
        _, other = simulated(seed=1000 + seed, spread=0.3, per_cell=3)
        pair = [accuracy(each.counts.sum(axis=0)).ravel() for each in (one, other)]
        both.append((ceiling(one, lambda counts: accuracy(counts).ravel()).reliability, pearson(*pair)))
    estimated, actual = np.mean(both, axis=0)
    assert estimated == pytest.approx(actual, abs=0.05)


def test_one_observer_has_no_ceiling():
    _, answers = simulated(observers=1)
    found = ceiling(answers, lambda counts: accuracy(counts).ravel())
    assert np.isnan([found.error, found.reliability]).all()


def test_early_is_the_first_deadline_above_chance():
    people = People(count_answers(trials()), 200, 0)
    assert (people.ms[people.early], people.ms[people.late]) == (600, 1000)
    _, answers = simulated()
    assert People(answers, 50, 0).early == 1
