"""Out-of-distribution detection against scikit-learn; MetaCog, its classifier, against the same written out."""

import inspect
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax as scipy_softmax
from scipy.stats import entropy as scipy_entropy
from sklearn.metrics import roc_auc_score, roc_curve

from cascaded.analysis.metacog import MetaCog, MetaCogConfig, train_metacog
from cascaded.analysis.ood import DETECTORS, Pair, auroc, features, fpr_at, out_of_distribution
from cascaded.errors import InputError
from cascaded.training.seeds import generator_at
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
    sure = [scipy_softmax(pair.test.logits[-1], axis=-1).max(axis=-1) for pair in (inside, outside)]
    assert number(rows, "auroc", "baseline") == pytest.approx(slow_auroc(*sure)) == pytest.approx(0.5, abs=0.08)
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


def blobs(items=200, features=5, seed=0, apart=4.0):
    """Two clouds of points; the first half is known."""
    known = np.arange(items) < items // 2
    x = np.random.default_rng(seed).normal(size=(items, features))
    x[known, 0] += apart
    return (2 + 0.5 * x).astype(np.float32), known


def plain(features, known, config, trial):
    """The same network in double precision, written out, trained by Adam one parameter at a time."""
    generator, random = generator_at(42, "order", trial), np.random.default_rng([42, trial])
    start = MetaCog(features.shape[1], config.hidden, torch.Generator().manual_seed(42))
    W1, b1, w2, b2 = (each.detach().double().requires_grad_() for each in start.parameters())
    x, y = torch.from_numpy(features).double(), torch.from_numpy(known).double()
    if config.standardize:
        x = (x - x.mean(dim=0)) / x.std(dim=0, correction=0)
    adam = torch.optim.Adam([W1, b1, w2, b2], config.lr, weight_decay=config.weight_decay, foreach=False)
    for _ in range(config.epochs):
        order = torch.randperm(len(x), generator=generator)
        for first in range(0, len(x), config.batch_size):
            items = order[first : first + config.batch_size]
            z = (x[items] @ W1.T + b1).clamp(min=0)
            if config.dropout:
                silent = random.random(z.shape, dtype=np.float32) < config.dropout
                z = torch.where(torch.from_numpy(silent), 0, z / (1 - config.dropout))
            p = (z @ w2[0] + b2).sigmoid()
            loss = -(y[items] * p.log() + (1 - y[items]) * (1 - p).log()).mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
    return ((x @ W1.T + b1).clamp(min=0) @ w2[0] + b2).detach().numpy()


@pytest.mark.parametrize(("dropout", "standardize", "trial"), [(0, False, 0), (0.5, False, 1), (0.2, True, 0)])
def test_training_is_adam_on_the_cross_entropy_with_dropout(dropout, standardize, trial):
    config = MetaCogConfig(8, dropout, epochs=5, batch_size=64, weight_decay=0.1, standardize=standardize)
    x, known = blobs()
    assert train_metacog(x, known, config, trial).scores(x) == pytest.approx(
        plain(x, known, config, trial), rel=1e-3, abs=1e-4
    )


def test_the_defaults_are_the_papers():
    assert MetaCogConfig() == MetaCogConfig(
        hidden=256, dropout=0.5, lr=0.001, weight_decay=0.0005, epochs=300, batch_size=256, standardize=False, seed=42
    )
    assert inspect.signature(out_of_distribution).parameters["trials"].default == 5  # the paper: several


def test_the_global_random_state_is_neither_used_nor_changed():
    (x, known), before = blobs(), (torch.get_rng_state(), np.random.get_state()[1].copy())
    train_metacog(x, known, QUICK)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])


def test_features_are_raw_or_standardized_and_constant_ones_are_only_centered():
    x, known = blobs()
    x[:, 1] = 3.25
    x[:, 2] = np.float32(1e4) * (1 + np.arange(len(x)) % 2 * np.finfo(np.float32).eps)  # rounding alone
    assert np.array_equal(train_metacog(x, known, QUICK).prepare(torch.from_numpy(x)), x)
    seen = train_metacog(x, known, replace(QUICK, standardize=True)).prepare(torch.from_numpy(x))
    assert seen[:, [0, 3, 4]].mean(dim=0).abs().max() < 1e-4
    assert seen[:, [0, 3, 4]].std(dim=0, correction=0).numpy() == pytest.approx(np.ones(3), rel=1e-4)
    assert not seen[:, 1].any()
    assert seen[:, 2].abs().max() < 0.01


def test_scores_of_many_items_are_those_of_each(monkeypatch):
    x, known = blobs(items=60)
    net = train_metacog(x, known, QUICK)
    alone = np.concatenate([net.scores(each[None]) for each in x])
    monkeypatch.setattr("cascaded.analysis.metacog.CHUNK", 7)  # the last chunk has 4 items
    assert net.scores(x) == pytest.approx(alone, rel=1e-5)


def test_wrong_input_is_refused():
    for option in ({"hidden": 0}, {"dropout": 1.0}, {"lr": 0}, {"epochs": 0}, {"batch_size": 0}):
        refused("cannot be trained: give sizes of at least 1", MetaCogConfig, **option)
    x, known = blobs()
    refused(r"200 of 200 items are known: give some of both", train_metacog, x, known | True, QUICK)
    refused(r"features have shape \(200, 5\) and known \(3,\)", train_metacog, x, known[:3], QUICK)
    refused(r"shape \(200, 4\), this MetaCog was trained on 5", train_metacog(x, known, QUICK).scores, x[:, :4])
