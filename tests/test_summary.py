"""Models side by side: on shared seeds with the corrected error, on shared items where there is one seed."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

from cascaded import analysis
from cascaded.errors import InputError
from cascaded.results.answers import answer_all
from cascaded.results.questions import DRAWS, Settings
from cascaded.results.subjects import find_subjects
from cascaded.results.summary import Answered, grouped, summarise
from cascaded.statistics import bootstrap_difference, over_seeds
from tests.made_traces import made_run, made_trace

GOOD = {"cascaded-td": 4.0, "cascaded-ce": 2.0}
NAMES = ["speed_accuracy", "selection_latency", "prototypicality"]


def answered(folder, names=NAMES):
    subjects = find_subjects([folder])
    return [
        Answered(who, {(q.analysis, q.of): (q, result) for q, result in answer_all(who, names, Settings())})
        for who in subjects
    ]


def trace_of(model, seed):
    return made_trace(seed, good=GOOD[model] + seed / 4, items=100, embeddings=True)


def runs(folder, seeds, models=tuple(GOOD)):
    for model in models:
        for seed in seeds:
            made_run(folder / model / str(seed), {"t": trace_of(model, seed)}, model=model, seed=seed)
    return folder


def table(told, analysis="speed_accuracy", metric="accuracy"):
    (found,) = [each for each in told["tables"] if (each["analysis"], each["metric"]) == (analysis, metric)]
    return found


def final(model, seed):
    return analysis.speed_accuracy(trace_of(model, seed)).headline["accuracy"]


def test_seeds_are_one_group_and_means_carry_the_corrected_error(tmp_path):
    groups = grouped(answered(runs(tmp_path, (0, 1, 2))))
    assert {group.label: sorted(group.by_seed) for group in groups} == {
        "cascaded-ce": [0, 1, 2],
        "cascaded-td(0)": [0, 1, 2],
    }
    values = np.array([[final(model, seed) for model in ("cascaded-ce", "cascaded-td")] for seed in (0, 1, 2)])
    told = table(summarise(groups, Settings()))
    assert [told["estimates"][name] for name in ("cascaded-ce", "cascaded-td(0)")] == [
        each.to_json() for each in over_seeds(values)
    ]
    (difference,) = told["differences"]
    assert (difference["a"], difference["b"]) == ("cascaded-ce", "cascaded-td(0)")
    assert difference["p"] == pytest.approx(ttest_rel(*values.T).pvalue)


def test_groups_are_compared_on_the_seeds_they_share(tmp_path):
    runs(runs(tmp_path, (0, 1), ["cascaded-td"]), (1, 2), ["cascaded-ce"])
    told = table(summarise(grouped(answered(tmp_path)), Settings()))
    assert told["seeds"] == [1]


def test_with_one_seed_the_difference_is_drawn_over_items(tmp_path):
    told = table(summarise(grouped(answered(runs(tmp_path, (0,)))), Settings()))
    ce, td = (trace_of(model, 0) for model in ("cascaded-ce", "cascaded-td"))
    right = [trace.logits[-1].argmax(-1) == trace.labels for trace in (ce, td)]
    expected = bootstrap_difference(lambda n: right[0][n].mean(), lambda n: right[1][n].mean(), 100, DRAWS)
    (difference,) = told["differences"]
    assert difference["difference"] == expected.value
    assert (difference["low"], difference["high"]) == (expected.low, expected.high)
    assert told["estimates"]["cascaded-ce"]["sem"] is None


def test_lambdas_are_told_with_cross_entropy_beside_them(tmp_path):
    runs(tmp_path, (0, 1))
    for seed in (0, 1):
        made_run(tmp_path / "td1" / str(seed), {"t": trace_of("cascaded-ce", seed)}, lam=1.0, seed=seed)
    effect = summarise(grouped(answered(tmp_path)), Settings())["lambda_effect"]["cascaded t"]
    assert sorted(effect["lambdas"]) == ["0", "1", "CE"]
    assert effect["against reference"]["0"]["difference"] == pytest.approx(
        np.mean([final("cascaded-td", seed) - final("cascaded-ce", seed) for seed in (0, 1)])
    )


def test_groups_that_would_be_called_alike_are_told_by_their_folders(tmp_path):
    made_run(tmp_path / "narrow" / "0", {"t": made_trace()})
    made_run(tmp_path / "limited" / "0", {"t": made_trace()}, limit=100)
    labels = [group.label for group in grouped(answered(tmp_path))]
    assert labels == ["cascaded-td(0) limited", "cascaded-td(0) narrow"]


def test_the_same_run_twice_is_refused(tmp_path):
    made_run(tmp_path / "a" / "0", {"t": made_trace()})
    made_run(tmp_path / "b" / "0", {"t": made_trace()})
    with pytest.raises(InputError, match=r"a/0 and .*b/0 are one run, seed 0: give one of them"):
        grouped(answered(tmp_path))


def test_correlations_with_a_shared_measure_are_tested_against_each_other(tmp_path, monkeypatch):
    measure = np.random.default_rng(5).normal(size=100)
    monkeypatch.setattr(
        "cascaded.results.summary.measures_of", lambda found: ({"C-score": measure, "centrality": measure}, {})
    )
    told = summarise(grouped(answered(runs(tmp_path, (0,)))), Settings())["rho_differences"]
    latency = [analysis.selection_latency(trace_of(model, 0)).steps for model in ("cascaded-ce", "cascaded-td")]
    expected = analysis.rho_difference(*latency, measure, draws=DRAWS)
    (difference,) = told  # each model has a centrality of its own
    assert (difference["measure"], difference["a"], difference["b"]) == ("C-score", "cascaded-ce", "cascaded-td(0)")
    assert (difference["z"], difference["p"]) == (expected.z, expected.p)
