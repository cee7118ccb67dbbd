"""Estimates, paired differences and bands: against numbers computed by hand, and against slower code."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from numpy.testing import assert_allclose

from cascaded.analysis import outputs
from cascaded.analysis.curves import deadline_curve, threshold_curve
from cascaded.analysis.latency import selection_latency
from cascaded.analysis.statistics import corrected_sem, paired
from cascaded.errors import CascadedWarning
from cascaded.results.compare import CONDITION, SETTING, bands, difference, differences, estimates, interval
from cascaded.results.run import run_analyses
from cascaded.results.table import load, to_table
from cascaded.results.tasks import Settings
from tests.made_table import made_table
from tests.made_traces import made_run, made_trace


def rows_of(method, values, draws=None, **changes):
    """One number of one method, a value per seed."""
    keys = {"method": method, "config": "c", "arch": "resnet18", "width": 8, "items": "i", "metric": "accuracy"}
    keys |= {"analysis": "speed_accuracy", "schedule": "cascaded"} | changes
    each = draws or [None] * len(values)
    made = [
        {**keys, "run": f"{method}/{s}", "seed": s, "value": v, "draws": d}
        for s, (v, d) in enumerate(zip(values, each, strict=True))
    ]
    return to_table(pd.DataFrame(made))


@pytest.mark.parametrize("draws", [None, [np.array([1.0, np.nan])], [np.array([np.inf, 1.0])]])
def test_without_draws_or_with_draws_that_are_no_numbers_there_is_no_interval(draws):
    row = estimates(rows_of("cascaded-td", [0.5], draws)).iloc[0]
    assert (np.isnan(row.low), row.interval_over, row.value) == (True, "none", 0.5)


def test_differences_are_paired_on_the_seeds_that_both_have():
    a, b = rows_of("cascaded-td", [0.5, 0.7, 0.6, 0.9]), rows_of("cascaded-ce", [0.4, 0.5, 0.3])
    found, expected = difference(a, b), paired([0.5, 0.7, 0.6], [0.4, 0.5, 0.3])
    assert_allclose([found["effect"], found["low"], found["high"]], [0.2, expected.low, expected.high])
    assert (found["interval_over"], found["n_seeds"], len(found["runs"])) == ("seeds", 3, 6)


def test_draws_of_other_images_are_not_paired():
    a = rows_of("cascaded-td", [0.5], [np.ones(5)])
    b = rows_of("cascaded-ce", [0.4], [np.ones(5)], items="others")
    assert difference(a, b)["interval_over"] == "none"


def test_of_more_draws_the_first_ones_are_those_that_others_have():
    many = np.random.default_rng(0).normal(size=2000)
    a, b = rows_of("cascaded-td", [0.5], [many]), rows_of("cascaded-ce", [0.4], [many[:200]])
    assert_allclose([difference(a, b)["low"], difference(a, b)["high"]], [0, 0], atol=1e-12)


def test_every_pair_of_conditions_is_compared_once_within_its_setting():
    df = made_table("speed_accuracy", "persistent_noise")
    found = differences(df)
    assert not found.duplicated([*SETTING, *(f"{c}_{s}" for c in CONDITION for s in "ab")]).any()
    accuracy = found[(found.analysis == "speed_accuracy") & (found.metric == "accuracy") & (found.time == "coarse")]
    assert len(accuracy) == 10  # five methods
    one = differences(df, {"method": "cascaded-td", "lam": 0.0}, {"method": "cascaded-ce"})
    one = one[(one.analysis == "speed_accuracy") & (one.metric == "accuracy") & (one.time == "coarse")].iloc[0]
    other = accuracy[(accuracy.method_a == "cascaded-ce") & (accuracy.lam_b == 0)].iloc[0]
    assert_allclose([one.effect, one.low, one.high], [-other.effect, -other.high, -other.low])


def test_where_another_condition_has_no_point_the_error_is_the_ordinary_one():
    rows = [rows_of("cascaded-td", [0.1, 0.2], x=1.0), rows_of("cascaded-td", [0.3, 0.5], x=2.0)]
    found = bands(pd.concat([*rows, rows_of("cascaded-ce", [0.2, 0.2], x=1.0)]))
    at_two = found[found.x == 2]
    assert_allclose(at_two["sem"], [0.1])
    assert bands(rows_of("cascaded-td", [0.1])).empty  # a number is no curve
    assert_allclose(found[found.x == 1]["sem"], corrected_sem(np.array([[0.1, 0.2], [0.2, 0.2]])))


@pytest.mark.parametrize("version", ["protocol_version", "analysis_version"])
def test_two_versions_of_the_protocol_or_of_an_analysis_are_neither_paired_nor_averaged(version):
    old, new = (
        rows_of(method, values, **{version: number})
        for number, method, values in ((1, "cascaded-td", [0.5, 0.7, 0.6]), (2, "cascaded-ce", [0.4, 0.5, 0.3]))
    )
    assert set(rows_of("cascaded-td", [0.5]).protocol_version) == {1}
    assert differences(pd.concat([old, new])).empty
    assert difference(old, new)["n_seeds"] == 0
    both = pd.concat([old, old.assign(**{version: 2, "value": old.value + 0.1})])
    assert_allclose(estimates(both).set_index(version).value, [0.6, 0.7])
    curves = bands(both.assign(x=1.0)).set_index(version)
    assert_allclose(curves.value, [0.6, 0.7])
    assert set(curves.n_seeds) == {3}


def test_runs_that_were_measured_on_rounded_weights_say_so():
    """They are averaged and paired with others: rounding changes less than another seed does."""
    rows = rows_of("cascaded-td", [0.5, 0.7])
    mixed = rows.assign(rounded_from=[None, "0123456789abcdef"])
    (found,) = estimates(mixed).runs
    assert found == (rows.run[0], f"{rows.run[1]}:rounded")
    other = rows_of("cascaded-ce", [0.4, 0.5])
    assert difference(mixed, other)["runs"] == (*found, *other.run)


def test_two_runs_of_one_seed_are_not_two_seeds():
    df = pd.concat([rows_of("cascaded-td", [0.5]), rows_of("cascaded-td", [0.7]).assign(run="copy")])
    with pytest.warns(CascadedWarning, match="copy repeats a configuration and seed"):
        assert estimates(df).n_seeds.tolist() == [1]


# --- against the same quantities computed from traces, drawn anew

DRAWS, STEPS = 50, 6
METHODS = {"cascaded-td": 3.0, "cascaded-ce": 1.5, "serial-td": 2.0}


def final_accuracy(trace):
    return outputs.correct(trace)[-1].mean()


def area_threshold(trace):
    return threshold_curve(outputs.confidence(trace), outputs.correct(trace), trace.cost()).area()


def area_deadline(trace):
    return deadline_curve(outputs.correct(trace), trace.cost()).area()


QUANTITIES = {
    ("accuracy", None): final_accuracy,
    ("area", "threshold"): area_threshold,
    ("area_above_deadline", "threshold"): lambda trace: area_threshold(trace) - area_deadline(trace),
}


def drawn_anew(quantity, traces):
    """The mean over seeds of a quantity, from images that are drawn with replacement, the same ones in every trace."""
    random = np.random.default_rng(0)
    numbers = [random.integers(traces[0].items, size=traces[0].items) for _ in range(DRAWS)]
    return np.array([np.mean([quantity(trace.select(items)) for trace in traces]) for items in numbers])


@pytest.fixture(scope="module", params=[1, 2, 3, 4])
def measured(request, tmp_path_factory):
    """Results of three methods and some seeds, and the traces that they were computed from."""
    folder, seeds = tmp_path_factory.mktemp("runs"), range(request.param)
    traces = {
        method: [made_trace(10 * k + seed, steps=STEPS, good=good) for seed in seeds]
        for k, (method, good) in enumerate(METHODS.items())
    }
    for method, own in traces.items():
        for seed, trace in enumerate(own):
            made_run(folder / method / str(seed), {"t": trace}, method=method, seed=seed)
    run_analyses([folder], ["speed_accuracy", "selection_latency"], Settings(draws=DRAWS))
    return load(folder), traces


@pytest.mark.parametrize(("metric", "rule"), QUANTITIES)
def test_estimates_and_differences_are_those_of_traces_drawn_anew(measured, metric, rule):
    df, traces = measured
    quantity, n = QUANTITIES[metric, rule], len(traces["cascaded-td"])
    df = df[(df.metric == metric) & (df.rule.isna() if rule is None else df.rule == rule)]
    by_seed = {method: np.array([quantity(trace) for trace in own]) for method, own in traces.items()}
    for row in estimates(df).itertuples():
        values = by_seed[row.method]
        half = 0.0 if n < 3 else scipy.stats.t.ppf(0.975, n - 1) * scipy.stats.sem(values)
        expected = (values.mean() - half, values.mean() + half)
        if n < 3:
            expected = np.quantile(drawn_anew(quantity, traces[row.method]), [0.025, 0.975])
        assert_allclose([row.value, row.low, row.high], [values.mean(), *expected], atol=1e-6)
        assert row.interval_over == ("images" if n < 3 else "seeds")
    found = differences(df, {"method": "cascaded-td"}, {"method": "cascaded-ce"}).iloc[0]
    one, other = by_seed["cascaded-td"], by_seed["cascaded-ce"]
    if n < 3:
        both = drawn_anew(quantity, traces["cascaded-td"]) - drawn_anew(quantity, traces["cascaded-ce"])
        expected = np.quantile(both, [0.025, 0.975])
    else:
        interval = scipy.stats.ttest_rel(one, other).confidence_interval()
        expected = (interval.low, interval.high)
    assert_allclose([found.effect, found.low, found.high], [(one - other).mean(), *expected], atol=1e-6)
    assert found.n_seeds == n


def test_bands_are_those_of_the_traces(measured):
    df, traces = measured
    n, found = len(traces["cascaded-td"]), bands(df)
    curves = {
        "accuracy_per_step": lambda trace: outputs.correct(trace).mean(axis=1),
        "settled": lambda trace: np.mean(selection_latency(trace).steps <= np.arange(1, STEPS + 1)[:, None], axis=1),
    }
    for metric, curve in curves.items():
        values = np.array([[curve(trace) for trace in traces[method]] for method in METHODS])  # methods, seeds, steps
        for k, method in enumerate(METHODS):
            own = found[(found.metric == metric) & (found.method == method)].sort_values("x")
            assert_allclose(own.value, values[k].mean(axis=0))
            error = [corrected_sem(values[:, :, t].T) for t in range(STEPS)] if n > 1 else [np.nan] * STEPS
            assert_allclose(own["sem"], error, atol=1e-12)


def test_the_variance_of_observers_is_added_to_that_over_seeds():
    random = np.random.default_rng(0)
    values = np.array([0.08, 0.09, 0.1])
    shared = random.normal(0, 0.02, 4000)
    low, high, over = interval(values, [value + shared for value in values], "observers")
    by_seed = interval(values, [None] * 3)[1] - 0.09
    assert over == "seeds and observers"
    assert (low + high) / 2 == pytest.approx(0.09)
    assert (high - low) / 2 == pytest.approx(np.hypot(by_seed, 1.96 * 0.02), rel=0.03)
    assert interval(values[:1], [values[0] + shared], "observers")[2] == "observers"
    table = made_table("human", seeds=(0,))
    assert set(estimates(table[table.metric == "fit_error"]).interval_over) == {"observers"}
