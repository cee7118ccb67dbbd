"""Models side by side: on shared seeds with the corrected error, on shared items where there is one seed."""

import shutil

import numpy as np
import pytest
from scipy.stats import sem, spearmanr, t, ttest_rel

from cascaded import analysis
from cascaded.analysis.statistics import bootstrap_difference, bootstrap_mean, over_seeds
from cascaded.errors import InputError
from cascaded.results.answers import answer_all
from cascaded.results.groups import Answered, grouped
from cascaded.results.questions import DRAWS, Settings
from cascaded.results.subjects import find_subjects
from cascaded.results.summary import summarise
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


@pytest.fixture(scope="module")
def analysed(tmp_path_factory):
    """Both models with three seeds each, and all answers about them."""
    folder = tmp_path_factory.mktemp("analysed")
    for model in GOOD:
        for seed in (0, 1, 2):
            made_run(folder / model / str(seed), {"t": trace_of(model, seed)}, method=model, seed=seed)
    answered(folder)
    return folder


@pytest.fixture
def runs(analysed, tmp_path):
    """`runs((0, 1))` is a folder of the test's own with these seeds of both models; they have been analysed before."""

    def copied(seeds, models=tuple(GOOD)):
        for place in [f"{model}/{seed}" for model in models for seed in seeds]:
            shutil.copytree(analysed / place, tmp_path / place)
        return tmp_path

    return copied


def table(told, analysis="speed_accuracy", metric="accuracy"):
    (found,) = [each for each in told["tables"] if (each["analysis"], each["metric"]) == (analysis, metric)]
    return found


def whole(told):
    """The accuracies of all hundred images."""
    (found,) = [each for each in told["tables"] if each["metric"] == "accuracy" and "100 images" in each["of"]]
    return found


def right_of(model, seed):
    trace = trace_of(model, seed)
    return (trace.logits[-1].argmax(-1) == trace.labels).astype(float)


def final(model, seed):
    return analysis.speed_accuracy(trace_of(model, seed)).headline["accuracy"]


def test_seeds_are_one_group_and_means_carry_the_corrected_error(runs):
    groups = grouped(answered(runs((0, 1, 2))))
    assert {group.label: sorted(group.by_seed) for group in groups} == {
        "cascaded-ce": [0, 1, 2],
        "cascaded-td(0)": [0, 1, 2],
    }
    values = np.array([[final(model, seed) for model in ("cascaded-ce", "cascaded-td")] for seed in (0, 1, 2)])
    told = table(summarise(groups, Settings()))
    estimates = [told["estimates"][name] for name in ("cascaded-ce", "cascaded-td(0)")]
    alone = [each.pop("alone") for each in estimates]
    assert estimates == [each.to_json() for each in over_seeds(values)]
    for own, column in zip(alone, values.T, strict=True):  # held against nothing, seeds differ as much as they do
        half = t.ppf(0.975, 2) * sem(column)
        assert (own["low"], own["high"]) == pytest.approx((column.mean() - half, column.mean() + half))
    (difference,) = told["differences"]
    assert (difference["a"], difference["b"]) == ("cascaded-ce", "cascaded-td(0)")
    assert difference["p"] == pytest.approx(ttest_rel(*values.T).pvalue)


def test_of_two_seeds_an_interval_over_items_is_told_beside_that_over_seeds(runs):
    told = table(summarise(grouped(answered(runs((0, 1)))), Settings()))
    right = {model: [right_of(model, seed) for seed in (0, 1)] for model in GOOD}
    mean = {model: np.mean(each, axis=0) for model, each in right.items()}
    expected = bootstrap_mean(mean["cascaded-ce"] - mean["cascaded-td"], DRAWS)
    (difference,) = told["differences"]
    assert difference["n"] == 2
    assert difference["over items"]["low"] == pytest.approx(expected.low)
    assert difference["over items"]["high"] == pytest.approx(expected.high)
    alone = bootstrap_mean(mean["cascaded-td"], DRAWS)
    assert told["estimates"]["cascaded-td(0)"]["over items"]["low"] == pytest.approx(alone.low)


def test_of_three_seeds_the_seeds_speak_for_themselves(runs):
    told = table(summarise(grouped(answered(runs((0, 1, 2)), NAMES[:1])), Settings()))
    assert "over items" not in told["differences"][0]
    assert "over items" not in told["estimates"]["cascaded-ce"]


def test_what_is_compared_can_be_told_from_other_answers(runs, tmp_path):
    runs((0,))
    made = [summarise(grouped(answered(tmp_path)), Settings())["made_from"]]
    made_run(tmp_path / "cascaded-td" / "0", {"t": trace_of("cascaded-ce", 3)}, method="cascaded-td", seed=0)
    made.append(summarise(grouped(answered(tmp_path)), Settings())["made_from"])
    one, other = (each.pop("cascaded-td/0/results.json") for each in made)
    assert made[0] == made[1]
    assert set(one) == set(other) == {f"{name} t" for name in NAMES}
    assert not set(one.values()) & set(other.values())


def test_groups_are_compared_on_the_seeds_they_share(runs, tmp_path):
    runs((0, 1), ["cascaded-td"])
    runs((1, 2), ["cascaded-ce"])
    told = table(summarise(grouped(answered(tmp_path)), Settings()))
    assert told["seeds"] == {"cascaded-ce": [1, 2], "cascaded-td(0)": [0, 1]}
    (difference,) = told["differences"]
    assert difference["difference"] == pytest.approx(final("cascaded-ce", 1) - final("cascaded-td", 1))


def test_with_one_seed_the_difference_is_drawn_over_items(runs):
    told = table(summarise(grouped(answered(runs((0,)))), Settings()))
    ce, td = (trace_of(model, 0) for model in ("cascaded-ce", "cascaded-td"))
    right = [trace.logits[-1].argmax(-1) == trace.labels for trace in (ce, td)]
    expected = bootstrap_difference(lambda n: right[0][n].mean(), lambda n: right[1][n].mean(), 100, DRAWS)
    (difference,) = told["differences"]
    assert difference["difference"] == expected.value
    assert (difference["low"], difference["high"]) == (expected.low, expected.high)
    estimate = told["estimates"]["cascaded-ce"]
    assert estimate == bootstrap_mean(right[0], DRAWS).to_json()


def test_lambdas_are_told_with_cross_entropy_beside_them(runs, tmp_path):
    runs((0, 1))
    for seed in (0, 1):
        made_run(tmp_path / "td1" / str(seed), {"t": trace_of("cascaded-ce", seed)}, lam=1.0, seed=seed)
    effect = summarise(grouped(answered(tmp_path)), Settings())["lambda_effect"]["cascaded t"]
    assert sorted(effect["lambdas"]) == ["0", "1", "CE"]
    assert effect["against reference"]["0"]["difference"] == pytest.approx(
        np.mean([final("cascaded-td", seed) - final("cascaded-ce", seed) for seed in (0, 1)])
    )


def test_groups_that_would_be_called_alike_are_told_by_their_folders(tmp_path):
    made_run(tmp_path / "narrow" / "0", {"t": made_trace()})
    made_run(tmp_path / "limited" / "0", {"t": made_trace()}, max_images=100)
    labels = [group.label for group in grouped(answered(tmp_path))]
    assert labels == ["cascaded-td(0) limited", "cascaded-td(0) narrow"]


def test_the_same_run_twice_is_refused(tmp_path):
    made_run(tmp_path / "a" / "0", {"t": made_trace()})
    made_run(tmp_path / "b" / "0", {"t": made_trace()})
    with pytest.raises(InputError, match=r"a/0 and .*b/0 are one run, seed 0: give one of them"):
        grouped(answered(tmp_path))


def test_correlations_with_a_shared_measure_are_tested_against_each_other(runs, monkeypatch):
    measure = np.random.default_rng(5).normal(size=100)
    monkeypatch.setattr(
        "cascaded.results.summary.measures_of", lambda found: ({"C-score": measure, "centrality": measure}, {})
    )
    told = summarise(grouped(answered(runs((0,)))), Settings())["rho_differences"]
    latency = [analysis.selection_latency(trace_of(model, 0)).steps for model in ("cascaded-ce", "cascaded-td")]
    expected = analysis.rho_difference(*latency, measure, draws=DRAWS)
    (difference,) = told  # each model has a centrality of its own
    assert (difference["measure"], difference["a"], difference["b"]) == ("C-score", "cascaded-ce", "cascaded-td(0)")
    assert (difference["z"], difference["p"]) == (expected.z, expected.p)


def test_groups_of_the_same_name_in_folders_of_the_same_name_are_both_there(tmp_path):
    made_run(tmp_path / "narrow" / "td0" / "0", {"t": made_trace()})
    made_run(tmp_path / "wide" / "td0" / "0", {"t": made_trace(1)}, max_images=100)
    told = summarise(grouped(answered(tmp_path)), Settings())
    assert list(told["groups"]) == ["cascaded-td(0) narrow/td0", "cascaded-td(0) wide/td0"]
    assert len(table(told)["estimates"]) == 2


def test_lambdas_of_other_networks_are_not_mixed(tmp_path):
    for name, lam, limit in (("a", 0.0, None), ("b", 1.0, None), ("c", 0.0, 100), ("d", 1.0, 100)):
        trace = made_trace(ord(name), good=2.0, items=100)
        made_run(tmp_path / name / "0", {"t": trace}, lam=lam, max_images=limit)
    effects = summarise(grouped(answered(tmp_path, ["speed_accuracy"])), Settings())["lambda_effect"]
    assert len(effects) == 2
    for effect, names in zip(effects.values(), ("ab", "cd"), strict=True):
        expected = [analysis.speed_accuracy(made_trace(ord(name), good=2.0, items=100)).accuracy[-1] for name in names]
        assert effect["accuracy"] == [expected]


def test_a_run_that_shares_nothing_does_not_take_the_rest_away(runs, tmp_path):
    runs((0, 1, 2))
    made_run(tmp_path / "odd" / "7", {"t": made_trace(7, items=30)}, lam=1.0, seed=7)
    told = summarise(grouped(answered(tmp_path)), Settings())
    estimates = whole(told)["estimates"]
    alone = summarise(grouped(answered(tmp_path / "cascaded-td") + answered(tmp_path / "cascaded-ce")), Settings())
    for name in ("cascaded-ce", "cascaded-td(0)"):
        assert estimates[name] == table(alone)["estimates"][name]
    assert len(whole(told)["differences"]) == 1
    (other,) = [each for each in told["tables"] if each["metric"] == "accuracy" and "30 images" in each["of"]]
    assert list(other["estimates"]) == ["cascaded-td(1)"]  # other images stand in a row of their own
    assert "share no seed" in told["lambda_effect"]["cascaded t"]["not measured"]


def test_centralities_of_two_models_are_compared_over_items(runs):
    told = summarise(grouped(answered(runs((0,)))), Settings())
    (difference,) = table(told, "prototypicality", "rho centrality")["differences"]
    rhos = []
    for model in ("cascaded-ce", "cascaded-td"):
        trace = trace_of(model, 0)
        latency = analysis.selection_latency(trace).steps
        rhos.append(spearmanr(-latency, analysis.centrality(trace)).statistic)
    assert difference["difference"] == pytest.approx(rhos[0] - rhos[1])
    assert difference["low"] < difference["difference"] < difference["high"]


def test_serial_and_cascaded_networks_that_saw_the_same_stand_in_one_row(tmp_path):
    made_run(tmp_path / "td" / "0", {"digits-test-osd-6": made_trace(1, kernel="osd")})
    serial = made_trace(2, kernel="none", schedule="serial")
    made_run(tmp_path / "sdn" / "0", {"digits-test-serial-6": serial}, method="shallow-deep")
    made_run(tmp_path / "td" / "0", {"digits-test-serial-6": serial})
    told = summarise(grouped(answered(tmp_path, ["speed_accuracy"])), Settings())
    labels = ["shallow-deep(1)", "cascaded-td(0)", "cascaded-td(0), serial"]
    assert told["conditions"] == labels
    assert list(table(told)["estimates"]) == labels
    assert len(table(told)["differences"]) == 3


def test_other_images_of_the_same_number_are_not_compared(tmp_path):
    made_run(tmp_path / "a" / "0", {"t": made_trace(shown="first")})
    made_run(tmp_path / "b" / "0", {"t": made_trace(1, shown="others")}, lam=1.0)
    told = summarise(grouped(answered(tmp_path, ["speed_accuracy"])), Settings())
    found = [each for each in told["tables"] if each["metric"] == "accuracy"]
    assert [list(each["estimates"]) for each in found] == [["cascaded-td(0)"], ["cascaded-td(1)"]]
    assert all(each["differences"] == [] for each in found)


def test_costs_are_compared_at_the_highest_accuracy_that_all_reach(runs):
    told = summarise(grouped(answered(runs((0,)), ["speed_accuracy"])), Settings())
    curves = [
        analysis.speed_accuracy(trace_of(model, 0)).curves["threshold"] for model in ("cascaded-ce", "cascaded-td")
    ]
    level = max(a for a in (0.5, 0.6, 0.7, 0.8, 0.9) if all(curve.accuracy.max() >= a for curve in curves))
    levels = [each["metric"] for each in told["tables"] if each["metric"].endswith(", threshold")]
    assert levels == ["cost at 95 % of final, threshold", f"cost at accuracy {level:g}, threshold"]
    estimates = table(told, metric=levels[1])["estimates"]
    assert [each["value"] for each in estimates.values()] == [curve.cost_at(level) for curve in curves]
