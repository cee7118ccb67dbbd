"""Out-of-distribution detection: figures against scikit-learn, and a signal that only the steps in between carry."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax as scipy_softmax
from scipy.stats import entropy as scipy_entropy
from sklearn.metrics import roc_auc_score, roc_curve

from cascaded.analysis.metacog import MetaCogConfig, train_metacog
from cascaded.analysis.ood import DETECTORS, Pair, auroc, features, fpr_at, out_of_distribution
from cascaded.errors import InputError
from tests.hand_made import trace_of, value_of
from tests.refused import refused

QUICK = MetaCogConfig(hidden=32, epochs=12, batch_size=64, lr=0.01)
FEW = MetaCogConfig(hidden=4, epochs=2)
scores = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 0.75, 2.0, np.inf]) | st.floats(-3, 3), min_size=1, max_size=40)


def made(items=6, steps=4, classes=3, seed=0, **about):
    logits = np.random.default_rng(seed).normal(size=(steps, items, classes))
    return trace_of(logits, np.zeros(items, dtype=np.int64), **about)


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
        for form in DETECTORS:
            assert features(trace, form)[item] == pytest.approx(expected[form], rel=1e-6)
            k = len(expected[form]) // 3
            assert features(trace, form, last=True)[item] == pytest.approx(expected[form][-k:], rel=1e-6)


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
    refused(r"inside scores have shape \(0,\), outside ones \(2,\)", auroc, np.array([]), np.zeros(2))
    refused("nan, which is neither above nor below", fpr_at, np.array([np.nan]), np.zeros(2))
    for tpr in (0, 1.1, np.nan):
        refused("give a fraction above 0, up to 1", fpr_at, np.zeros(2), np.zeros(2), tpr)


def detect(inside, outside, **options):
    return out_of_distribution(inside, outside, **{"trials": 1, "quiet": True, "draws": 2, **options})


def number(rows, metric, detector, reads="last", ood_data="mean"):
    return value_of(rows, metric, detector=detector, reads=reads, ood_data=ood_data)


def test_a_signal_at_steps_in_between_is_found_by_all_steps_and_not_by_the_last():
    inside, outside = planted_pairs(slice(1, 5))
    rows = detect(inside, {"strange": outside}, config=QUICK)
    for detector in DETECTORS:
        assert number(rows, "auroc", detector, "all") > 0.9, detector
        # chance, give or take the error of an area from 400 and 300 items
        assert number(rows, "auroc", detector) == pytest.approx(0.5, abs=0.08), detector
        assert number(rows, "fpr95", detector, "all") < 0.6 < 0.8 < number(rows, "fpr95", detector), detector
        won = number(rows, "auroc", detector, "all") - number(rows, "auroc", detector)
        assert value_of(rows, "auroc_gain", detector=detector, ood_data="mean") == pytest.approx(won)
    assert number(rows, "auroc", "baseline") == pytest.approx(0.5, abs=0.08)


def test_a_signal_at_the_last_step_is_found_by_both_and_by_the_baseline():
    inside, outside = planted_pairs(slice(5, 6))
    rows = detect(inside, {"strange": outside}, config=QUICK)
    for detector, reads in (("msp", "last"), ("logits", "last"), ("msp", "all"), ("entropy", "all")):
        assert number(rows, "auroc", detector, reads) > 0.75, detector
    sure = [scipy_softmax(pair.test.logits[-1], axis=-1).max(axis=-1) for pair in (inside, outside)]
    assert number(rows, "auroc", "baseline") == pytest.approx(slow_auroc(*sure))
    threshold = np.sort(sure[0])[400 - 380]  # 380 of 400 are as sure
    assert number(rows, "fpr95", "baseline") == pytest.approx(np.mean(sure[1] >= threshold))


def test_numbers_are_means_over_trials_with_the_corrected_standard_error():
    inside, outside = planted_pairs(slice(4, 6))
    rows = detect(inside, {"strange": outside}, config=FEW, trials=3)
    values = []
    for trial in range(3):
        by_hand = []
        for last in (False, True):
            read = [features(pair.validation, "softmax", last) for pair in (inside, outside)]
            net = train_metacog(np.concatenate(read), np.arange(800) < 500, FEW, trial)
            by_hand.append(auroc(*(net.scores(features(pair.test, "softmax", last)) for pair in (inside, outside))))
        values.append(by_hand)
    means, deviation = np.mean(values, axis=0), np.std(np.diff(values, axis=1), ddof=1)
    assert [number(rows, "auroc", "softmax", reads) for reads in ("all", "last")] == pytest.approx(means)
    # of two conditions, the corrected error is that of their difference, divided by the root of 2
    expected = deviation / 2**0.5 / 3**0.5
    assert value_of(rows, "auroc_sem", detector="softmax", ood_data="mean") == pytest.approx(expected)
    assert "auroc_sem" not in set(detect(inside, {"strange": outside}, config=FEW).metric)


def test_standardized_features_are_other_detectors():
    inside, outside = planted_pairs(slice(4, 6))
    raw, other = (detect(inside, {"x": outside}, config=replace(FEW, standardize=each)) for each in (False, True))
    assert set(raw.detector) == {"baseline", *DETECTORS}
    assert set(other.detector) == {"baseline", *(f"{name}-standardized" for name in DETECTORS)}
    assert number(raw, "auroc", "logits", "all") != number(other, "auroc", "logits-standardized", "all")


def test_means_are_over_ood_sets_and_other_sets_change_nothing():
    inside, near = planted_pairs(slice(0, 0))
    far = planted_pairs(slice(0, 6))[1]
    rows = detect(inside, {"near": near, "far": far}, config=FEW)
    for detector, reads in (("softmax", "all"), ("entropy", "last"), ("baseline", "last")):
        for metric in ("auroc", "fpr95"):
            each = [number(rows, metric, detector, reads, name) for name in ("near", "far")]
            assert number(rows, metric, detector, reads) == pytest.approx(np.mean(each))
    alone = detect(inside, {"far": far}, config=FEW)
    for detector in DETECTORS:
        one, other = (number(each, "auroc", detector, "all", "far") for each in (rows, alone))
        assert one == other


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"weights": "b" * 64, "run": "runs/ce"}, r"runs/td and runs/ce differ in weights, a{12}... and b{12}..."),
        ({"kernel": "ews:0.9"}, "runs/td and runs/td differ in kernel, osd and ews:0.9: record both"),
        ({"schedule": "serial"}, "runs/td and runs/td differ in schedule, cascaded and serial"),
    ],
)
def test_traces_of_different_networks_are_refused(other, message):
    about = {"weights": "a" * 64, "run": "runs/td", "schedule": "cascaded"}
    refused(message, Pair, made(**about), made(**about | other))
    inside, outside = Pair(made(**about), made(**about)), Pair(made(**about | other), made(**about | other))
    refused(message, detect, inside, {"svhn": outside})


def test_traces_of_different_length_and_no_set_at_all_are_refused():
    refused("one trace and the other differ in steps, 4 and 5: record both", Pair, made(), made(steps=5))
    refused("one trace and the other differ in classes, 3 and 2", Pair, made(), made(classes=2))
    refused("there are 0 OOD sets and 1 trials: give at least one of each", detect, Pair(made(), made()), {})


def test_images_that_are_trained_on_are_not_scored():
    about = {"data": "cifar10", "split": "test", "images": "f" * 64}
    whole = made(items=10, **about)
    with pytest.raises(InputError, match="have 1 images in common, the first is image 4"):
        Pair(whole.select(np.arange(5)), whole.select(np.arange(4, 10)))
    assert Pair(whole.select(np.arange(5)), whole.select(np.arange(5, 10))).test.items == 5
    moved = replace(whole.provenance, images="e" * 64, run="elsewhere/td")  # the weights alone say which network it is
    assert Pair(replace(whole, provenance=moved), whole).test.items == 10
    renamed = replace(whole, config=replace(whole.config, split="validation"))
    refused(r"cifar10 validation.* and cifar10 test.* images in common", Pair, renamed, whole)


def test_classifiers_are_trained_on_validation_images_of_both_sides(monkeypatch):
    seen = []

    def train(features, known, *options):
        seen.append((features[known].copy(), features[~known].copy()))
        return train_metacog(features, known, FEW)

    monkeypatch.setattr("cascaded.analysis.ood.train_metacog", train)
    inside, outside = (Pair(made(seed=s), made(seed=s + 1)) for s in (0, 2))
    detect(inside, {"x": outside})
    read = features(inside.validation, "msp"), features(outside.validation, "msp")
    assert np.array_equal(seen[0][0], read[0])
    assert np.array_equal(seen[0][1], read[1])


def test_draws_are_as_wide_as_new_samples():
    inside, outside = planted_pairs(slice(0, 0))
    rows = detect(inside, {"x": outside}, config=FEW, draws=100)
    for row in rows.itertuples():
        assert row.draws.min() <= row.value <= row.draws.max()
    of_baseline = (rows.detector == "baseline") & (rows.metric == "auroc") & (rows.ood_data == "x")
    deviation = float(rows[of_baseline].draws.iloc[0].std())
    fresh = []
    for k in range(60):
        pairs = [planted(400, 100 + k, False, slice(0, 0)), planted(300, 900 + k, True, slice(0, 0))]
        fresh.append(auroc(*(scipy_softmax(trace.logits[-1], axis=-1).max(axis=-1) for trace in pairs)))
    assert deviation == pytest.approx(np.std(fresh), rel=0.3)
