"""Out-of-distribution detection: figures against scikit-learn, and a signal that only the steps in between carry."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax as scipy_softmax
from scipy.stats import entropy as scipy_entropy
from sklearn.metrics import roc_auc_score, roc_curve

from cascaded.analysis.metacog import MetaCogRecipe, train_metacog
from cascaded.analysis.ood import BASELINE, FORMS, OutOfDistribution, Pair, auroc, features, fpr_at, out_of_distribution
from cascaded.errors import InputError
from cascaded.traces.trace import Trace
from tests.made_traces import facts, with_facts

QUICK = MetaCogRecipe(hidden=32, epochs=12, batch=64)
scores = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 0.75, 2.0, np.inf]) | st.floats(-3, 3), min_size=1, max_size=40)


def made(items=6, steps=4, classes=3, seed=0, **told):
    logits = np.random.default_rng(seed).normal(size=(steps, items, classes))
    return Trace(logits, np.zeros(items, dtype=np.int64), **facts(**told))


def planted(items, seed, strange, where):
    """Noise everywhere; strange items are flatter at some steps."""
    trace = made(items, steps=6, classes=4, seed=seed)
    logits = 3 * trace.logits
    if strange:
        logits[where] *= 0.1
    return replace(trace, logits=logits)


def planted_pairs(where):
    inside = Pair(planted(500, 0, False, where), planted(400, 1, False, where))
    return inside, Pair(planted(300, 2, True, where), planted(300, 3, True, where))


def test_features_are_each_step_after_the_other():
    trace = made(items=2, steps=3, classes=4)
    p = scipy_softmax(trace.logits, axis=-1)
    for item in range(2):
        expected = {
            "msp": [p[t, item].max() for t in range(3)],
            "entropy": [scipy_entropy(p[t, item]) for t in range(3)],
            "softmax": [p[t, item, k] for t in range(3) for k in range(4)],
            "logits": [trace.logits[t, item, k] for t in range(3) for k in range(4)],
        }
        for form in FORMS:
            assert features(trace, form)[item] == pytest.approx(expected[form], rel=1e-6)
            k = len(expected[form]) // 3
            assert features(trace, form, last=True)[item] == pytest.approx(expected[form][-k:], rel=1e-6)


def test_an_unknown_form_is_refused():
    with pytest.raises(InputError, match="form is 'max': say msp, entropy, softmax or logits"):
        features(made(), "max")


def slow_auroc(inside, outside):
    return np.mean([(a > b) + (a == b) / 2 for a in inside for b in outside])


@given(scores, scores)
def test_the_area_is_the_share_of_pairs_in_order(inside, outside):
    inside, outside = np.array(inside), np.array(outside)
    assert auroc(inside, outside) == pytest.approx(slow_auroc(inside, outside), abs=1e-12)
    assert auroc(outside, inside) == pytest.approx(1 - auroc(inside, outside), abs=1e-12)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=60), st.lists(st.integers(-3, 3), min_size=1, max_size=60))
def test_both_figures_are_scikit_learns_with_ties(inside, outside):
    truth, both = np.repeat([1, 0], [len(inside), len(outside)]), np.array(inside + outside, dtype=float)
    inside, outside = both[: len(inside)], both[len(inside) :]
    assert auroc(inside, outside) == pytest.approx(roc_auc_score(truth, both), abs=1e-12)
    for tpr in (0.05, 0.5, 0.8, 0.95, 1.0):
        false, true, _ = roc_curve(truth, both, drop_intermediate=False)
        assert fpr_at(inside, outside, tpr) == pytest.approx(false[np.argmax(true >= tpr)], abs=1e-12)


@pytest.mark.parametrize("n", [20, 40, 60, 100, 1000, 10_000])
def test_ninety_five_percent_is_not_lost_to_rounding(n):
    inside = np.arange(n, dtype=float)
    # exactly 95 % of the inside are at least n / 20; an outside image just below that must not pass
    assert fpr_at(inside, np.array([n / 20 - 0.5])) == 0
    assert fpr_at(inside, np.array([n / 20])) == 1


def test_a_case_worked_by_hand():
    inside, outside = np.array([4.0, 3.0, 2.0, 1.0]), np.array([2.5, 1.0])
    # pairs in order: 4 and 3 above both, 2 above one, 1 ties with one: (2 + 2 + 1 + .5) / 8
    assert auroc(inside, outside) == 5.5 / 8
    # three of four pass at 2, and 2.5 with them; all four pass at 1, and everything with them
    assert (fpr_at(inside, outside, 0.75), fpr_at(inside, outside, 0.76)) == (0.5, 1)


def test_scores_that_cannot_be_compared_are_refused():
    with pytest.raises(InputError, match=r"inside scores have shape \(0,\), outside ones \(2,\)"):
        auroc(np.array([]), np.zeros(2))
    with pytest.raises(InputError, match="nan, which is neither above nor below"):
        fpr_at(np.array([np.nan]), np.zeros(2))
    for tpr in (0, 1.1, np.nan):
        with pytest.raises(InputError, match="give a share above 0, up to 1"):
            fpr_at(np.zeros(2), np.zeros(2), tpr)


def test_a_signal_at_steps_in_between_is_found_by_all_steps_and_not_by_the_last():
    inside, outside = planted_pairs(slice(1, 5))
    found = out_of_distribution(inside, {"strange": outside}, recipe=QUICK, quiet=True)
    for form in FORMS:
        assert found.headline[f"auroc {form} all"] > 0.9, form
        # chance, give or take the error of an area from 400 and 300 items
        assert found.headline[f"auroc {form} last"] == pytest.approx(0.5, abs=0.08), form
        assert found.headline[f"fpr {form} all"] < 0.6 < 0.8 < found.headline[f"fpr {form} last"], form
    assert found.headline["auroc baseline"] == pytest.approx(0.5, abs=0.08)


def test_a_signal_at_the_last_step_is_found_by_both_and_by_the_baseline():
    inside, outside = planted_pairs(slice(5, 6))
    found = out_of_distribution(inside, {"strange": outside}, recipe=QUICK, quiet=True)
    for way in ("msp last", "logits last", "msp all", "entropy all", "baseline"):
        assert found.headline[f"auroc {way}"] > 0.75, way


def test_nothing_is_learnt_where_there_is_nothing():
    inside, outside = planted_pairs(slice(0, 0))
    found = out_of_distribution(inside, {"like it": outside}, recipe=QUICK, quiet=True)
    assert [found.headline[f"auroc {form} all"] for form in FORMS] == pytest.approx([0.5] * 4, abs=0.08)


def test_the_baseline_is_the_last_confidence():
    inside, outside = planted_pairs(slice(5, 6))
    found = out_of_distribution(inside, {"strange": outside}, recipe=MetaCogRecipe(hidden=1, epochs=1), quiet=True)
    sure = [scipy_softmax(pair.test.logits[-1], axis=-1).max(axis=-1) for pair in (inside, outside)]
    assert found.headline["auroc baseline"] == pytest.approx(slow_auroc(*sure))
    threshold = np.sort(sure[0])[400 - 380]  # 380 of 400 are as sure
    assert found.headline["fpr baseline"] == pytest.approx(np.mean(sure[1] >= threshold))


def test_the_headline_is_the_mean_over_outside_sets_and_results_are_json():
    inside, near = planted_pairs(slice(0, 0))
    far = planted_pairs(slice(0, 6))[1]
    outside = {"near": near, "far": far}
    recipe = MetaCogRecipe(hidden=4, epochs=2)
    found = out_of_distribution(inside, outside, recipe=recipe, quiet=True)
    for way in ("softmax all", "entropy last", "baseline"):
        each = [found.pairs[name][way] for name in outside]
        assert found.headline[f"auroc {way}"] == pytest.approx((each[0].auroc + each[1].auroc) / 2)
        assert found.headline[f"fpr {way}"] == pytest.approx((each[0].fpr + each[1].fpr) / 2)
    assert len(found.headline) == 2 * (2 * len(FORMS) + 1) + 2 * len(FORMS)
    for form in FORMS:
        won = found.headline[f"fpr {form} last"] - found.headline[f"fpr {form} all"]
        assert found.headline[f"fpr gain {form}"] == pytest.approx(won)
    told = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert told["pairs"]["far"]["msp all"]["auroc"] == found.pairs["far"]["msp all"].auroc
    alone = out_of_distribution(inside, {"far": far}, recipe=recipe, quiet=True)
    assert alone.pairs["far"] == found.pairs["far"]  # other sets in the same call change nothing


def test_progress_is_told_unless_quiet(capsys, monkeypatch):
    monkeypatch.setattr("cascaded.progress.EVERY", 0.0)
    inside, outside = planted_pairs(slice(0, 0))
    recipe = MetaCogRecipe(hidden=1, epochs=1)
    out_of_distribution(inside, {"svhn": outside}, recipe=recipe)
    assert "detecting svhn from logits last: 8/8" in capsys.readouterr().err
    out_of_distribution(inside, {"svhn": outside}, recipe=recipe, quiet=True)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            {"weights": "b" * 64, "run": "runs/ce"},
            "one trace is of runs/td, weights a{12}, the other of runs/ce",
        ),
        ({"kernel": "ews:0.9"}, "one trace has the kernel osd, the other ews:0.9: record both alike"),
        ({"schedule": "serial"}, "one trace has the schedule cascaded, the other serial"),
    ],
)
def test_traces_of_different_networks_are_refused(other, message):
    told = {"weights": "a" * 64, "run": "runs/td"}
    with pytest.raises(InputError, match=message):
        Pair(made(**told), made(**told | other))
    inside, outside = Pair(made(**told), made(**told)), Pair(made(**told | other), made(**told | other))
    with pytest.raises(InputError, match=message):
        out_of_distribution(inside, {"svhn": outside}, quiet=True)


def test_traces_of_different_length_are_refused():
    with pytest.raises(InputError, match="number of steps 4, the other 5: record both alike"):
        Pair(made(), made(steps=5))
    with pytest.raises(InputError, match="number of classes 3, the other 2"):
        Pair(made(), made(classes=2))
    with pytest.raises(InputError, match="there is no outside set"):
        out_of_distribution(Pair(made(), made()), {})


def test_a_moved_run_is_still_the_same_network():
    told = {"weights": "a" * 64}
    assert Pair(made(run="runs/td", **told), made(run="elsewhere/td", **told)).test.provenance.run == "elsewhere/td"


def test_images_that_are_trained_on_are_not_scored():
    told = {"data": "cifar10", "split": "test", "images": "f" * 64}
    whole = made(items=10, **told)
    with pytest.raises(InputError, match="both show image 4 of one source, 1 are in both"):
        Pair(whole.select(np.arange(5)), whole.select(np.arange(4, 10)))
    assert Pair(whole.select(np.arange(5)), whole.select(np.arange(5, 10))).test.items == 5
    other = with_facts(whole, images="e" * 64)
    assert Pair(other, whole).test.items == 10


def test_splits_of_two_names_that_are_one_file_are_found_out():
    trace = made(data="tiny", split="validation", images="f" * 64)
    other = with_facts(trace, split="test")
    with pytest.raises(InputError, match="tiny validation and tiny test both show image"):
        Pair(trace, other)


def test_classifiers_are_trained_on_validation_images_of_both_sides(monkeypatch):
    seen = []

    def train(features, known, **options):
        seen.append((features[known].copy(), features[~known].copy()))
        return train_metacog(features, known, recipe=MetaCogRecipe(epochs=1), seed=0)

    monkeypatch.setattr("cascaded.analysis.ood.train_metacog", train)
    inside, outside = (Pair(made(seed=s), made(seed=s + 1)) for s in (0, 2))
    out_of_distribution(inside, {"x": outside}, quiet=True)
    read = features(inside.validation, "msp"), features(outside.validation, "msp")
    assert np.array_equal(seen[0][0], read[0])
    assert np.array_equal(seen[0][1], read[1])


def test_intervals_hold_their_figures_and_are_those_of_drawn_images():
    rng = np.random.default_rng(0)
    row = {
        BASELINE: (rng.normal(1, 1, 400), rng.normal(0, 1, 300)),
        "msp all": (rng.normal(2, 1, 400), rng.normal(0, 1, 300)),
        "msp last": (rng.normal(1.5, 1, 400), rng.normal(0, 1, 300)),
    }
    found = OutOfDistribution({"x": row}, MetaCogRecipe(), 0)
    intervals = found.intervals(draws=300)
    assert set(intervals) == set(found.headline)
    for name, each in intervals.items():
        assert each.low < each.value == found.headline[name] < each.high
    fresh = [auroc(rng.normal(1, 1, 400), rng.normal(0, 1, 300)) for _ in range(300)]
    assert intervals["auroc baseline"].sem == pytest.approx(np.std(fresh), rel=0.25)
    assert found.intervals(draws=5) == found.intervals(draws=5)
    assert found.intervals(draws=5, seed=1) != found.intervals(draws=5)
