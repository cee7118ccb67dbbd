"""The learned stopper: its targets, step by step as all at once, and when it beats a deadline and when it cannot."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from cascaded.analysis.curves import deadline_curve, threshold_curve
from cascaded.analysis.outputs import confidence, correct
from cascaded.analysis.stopper import (
    Form,
    Stopper,
    StopperConfig,
    learned_stopper,
    load_stopper,
    settled_targets,
    train_stopper,
)
from cascaded.errors import InputError
from cascaded.traces.trace import Trace
from tests.hand_made import trace_of
from tests.refused import refused

QUICK = StopperConfig(hidden=16, lr=0.02, epochs=8, batch_size=64)


def made(items=5, steps=4, classes=3, seed=0, **about):
    random = np.random.default_rng(seed)
    logits = 5 + 2 * random.normal(size=(steps, items, classes))
    return trace_of(logits, random.integers(classes, size=items), **about)


def settling(when, seed, classes=4, steps=8):
    """Another answer at every step until an item settles, always as sure; settled logits are higher, all alike."""
    random = np.random.default_rng(seed)
    labels = random.integers(classes, size=len(when))
    predictions = np.argsort(random.random((steps, classes, len(when))), axis=1)[:, 0]
    settled = np.arange(steps)[:, None] >= when
    predictions = np.where(settled, labels, predictions)
    logits = 4 * np.eye(classes)[predictions] + 0.3 * random.normal(size=(steps, len(when), classes))
    return Trace(logits + 3 * settled[..., None], labels)  # softmax does not see what all logits share


def hull(curve, cost):
    """What drawing lots between two deadlines buys, at best, at a mean cost."""
    points = list(zip(curve.cost, curve.accuracy, strict=True))
    best = np.full(len(cost), -np.inf)
    for x0, y0 in points:
        for x1, y1 in points:
            if x0 < x1:
                inside = (cost >= x0) & (cost <= x1)
                best[inside] = np.maximum(best[inside], y0 + (cost[inside] - x0) / (x1 - x0) * (y1 - y0))
    return best


def slow_targets(answers):
    T, items = answers.shape
    return [[all(answers[s, i] == answers[t, i] for s in range(t, T)) for i in range(items)] for t in range(T)]


@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 3), st.integers(0, 2**16))
def test_the_target_is_whether_every_later_answer_is_the_same(steps, items, classes, seed):
    trace = made(items, steps, classes, seed)
    targets = settled_targets(trace)
    assert targets.tolist() == slow_targets(trace.logits.argmax(axis=-1))
    assert targets[-1].all()


def test_one_output_at_a_time_scores_as_all_at_once():
    trace = made(items=7, steps=6)
    stopper = train_stopper(trace, QUICK, quiet=True)
    all_at_once, state = stopper.scores(trace), None
    for logits, expected in zip(trace.logits, all_at_once, strict=True):
        score, state = stopper.step(torch.from_numpy(logits), state)
        assert score.numpy() == pytest.approx(expected, abs=1e-6)
    assert ((all_at_once > 0) & (all_at_once < 1)).all()


def test_items_in_chunks_score_as_alone(monkeypatch):
    trace = made(items=11)
    stopper = train_stopper(trace, QUICK, quiet=True)
    whole = stopper.scores(trace)
    monkeypatch.setattr("cascaded.analysis.stopper.CHUNK", 4)
    assert stopper.scores(trace) == pytest.approx(whole, abs=1e-6)


def test_training_minimizes_the_cross_entropy_averaged_over_steps_and_items():
    # one batch an epoch and a tiny rate: Adam's first step moves each weight against the sign of its gradient
    trace = made(items=9)
    config = StopperConfig(hidden=5, lr=1e-3, weight_decay=0, epochs=1, batch_size=9)
    trained = train_stopper(trace, config, quiet=True)
    start = Stopper(trained.form, torch.Generator().manual_seed(config.seed))
    z = torch.from_numpy(trace.logits)
    assert trained.mean.item() == pytest.approx(z.mean().item(), rel=1e-6)
    assert trained.deviation.item() == pytest.approx(z.std(correction=0).item(), rel=1e-6)
    start.mean.fill_(z.mean())
    start.deviation.fill_(z.std(correction=0))
    p = start(z.float())[0].double().sigmoid()
    y = torch.from_numpy(settled_targets(trace).copy()).double()
    (-(y * p.log() + (1 - y) * (1 - p).log()).sum() / y.numel()).backward()
    for before, after in zip(start.parameters(), trained.parameters(), strict=True):
        clear = before.grad.abs() > 1e-5
        moved = ((after - before) / -config.lr)[clear]
        assert torch.allclose(moved, before.grad.sign()[clear], atol=0.01)


def test_it_beats_the_deadline_where_logits_tell_what_confidence_does_not():
    random = np.random.default_rng(0)
    validation, test = (settling(random.integers(0, 8, 400), seed) for seed in (1, 2))
    _, scores = learned_stopper(validation, test, QUICK, quiet=True)
    deadline = deadline_curve(correct(test), test.cost())
    stopper = threshold_curve(scores, correct(test), test.cost())
    sure = threshold_curve(confidence(test), correct(test), test.cost())
    lots = hull(deadline, np.linspace(1, 8, 50)).mean()  # accuracy over all mean latencies
    assert stopper.area(1, 8) > lots + 0.06
    assert sure.area(1, 8) < lots + 0.04


def test_it_does_not_beat_the_deadline_where_there_is_nothing_to_know():
    validation, test = (settling(np.full(400, 4), seed) for seed in (1, 2))
    _, scores = learned_stopper(validation, test, QUICK, quiet=True)
    deadline = deadline_curve(correct(test), test.cost())
    stopper = threshold_curve(scores, correct(test), test.cost())
    # lots between deadlines are no knowledge, and a threshold can draw them; 0.05 is noise of 400 items
    assert (stopper.accuracy - hull(deadline, stopper.cost)).max() < 0.05
    assert stopper.accuracy_at(5.0) > 0.9  # but it has learnt when all of them settle


def test_the_same_seed_gives_the_same_and_another_one_another():
    trace, before = made(items=40), torch.get_rng_state()
    trained = (train_stopper(trace, replace(QUICK, seed=seed), quiet=True) for seed in (0, 0, 1))
    first, again, other = (each.scores(trace) for each in trained)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_defaults_are_the_papers():
    assert StopperConfig(hidden=1) == StopperConfig(
        max_images=4_500, hidden=1, lr=1e-4, weight_decay=1e-4, epochs=300, batch_size=256, seed=42
    )


def test_it_is_trained_on_4500_images_balanced_over_classes_where_there_are_as_many(monkeypatch):
    seen = []
    monkeypatch.setattr("cascaded.analysis.stopper.settled_targets", lambda trace: seen.append(trace) or 1 / 0)
    labels = np.repeat(np.arange(10), [600] * 5 + [400] * 5)
    for items in (5_000, 4_000):
        trace = trace_of(np.zeros((70, items, 10), np.float32), labels[:items])
        with pytest.raises(ZeroDivisionError):
            train_stopper(trace, quiet=True)
    assert seen[0].logits.shape == (70, 4_500, 10)
    assert np.bincount(seen[0].labels).tolist() == [500] * 5 + [400] * 5
    left_out = np.setdiff1d(np.arange(600), seen[0].indices)  # by seed 42
    assert left_out[:8].tolist() == [11, 14, 17, 18, 27, 29, 48, 49]
    assert seen[1].items == 4_000


def test_a_trace_that_never_varies_gives_finite_scores():
    trace = Trace(np.ones((3, 4, 2)), np.zeros(4, dtype=np.int64))
    assert np.isfinite(train_stopper(trace, QUICK, quiet=True).scores(trace)).all()


def test_saved_and_loaded_it_scores_the_same(tmp_path):
    trace = made(kernel="ews:0.9", data="cifar10", split="validation", run="runs/td")
    stopper = train_stopper(trace, QUICK, quiet=True)
    stopper.save(tmp_path / "new" / "stopper.safetensors")
    before = torch.get_rng_state()
    loaded = load_stopper(tmp_path / "new" / "stopper.safetensors")
    assert torch.equal(torch.get_rng_state(), before)
    assert np.array_equal(loaded.scores(trace), stopper.scores(trace))
    assert loaded.form == Form(3, 4, "ews:0.9", 16, "cifar10 validation, ews:0.9, no noise, runs/td")


def test_files_that_are_no_stopper_are_refused(tmp_path):
    file = tmp_path / "stopper.safetensors"
    refused(r"stopper.safetensors cannot be read .*: check the path", load_stopper, file)
    file.write_bytes(b"something else")
    refused("cannot be read", load_stopper, file)
    save_file({"a": torch.zeros(1)}, file)
    refused("is no stopper of format 1", load_stopper, file)


WHOLE = {"classes": 3, "steps": 4, "kernel": "osd", "hidden": 16}


@pytest.mark.parametrize("about", [{**WHOLE, "classes": 4}, {**WHOLE, "hidden": -1}, {"classes": 3}, []])
def test_a_stopper_that_does_not_fit_its_metadata_is_refused(about, tmp_path):
    file = tmp_path / "stopper.safetensors"
    train_stopper(made(), QUICK, quiet=True).save(file)
    save_file(load_file(file), file, {"cascaded": json.dumps({"stopper": 1, "form": about})})
    refused("has weights that do not fit its metadata", load_stopper, file)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"steps": 9}, "steps: trace has 9, this stopper was trained on 4: record it again with --steps 4"),
        ({"classes": 10}, "classes: trace has 10, this stopper was trained on 3: train one on a trace of 10 classes"),
        ({"kernel": "osd"}, "trace has osd, this stopper was trained on ews:0.9: record it again"),
    ],
)
def test_traces_of_another_kind_are_refused_before_and_after_training(other, message):
    mine, yours = made(kernel="ews:0.9"), made(**{"kernel": "ews:0.9", **other})
    refused(message, train_stopper(mine, QUICK, quiet=True).scores, yours)
    refused(message, learned_stopper, mine, yours, StopperConfig(epochs=10**9), quiet=True)


def test_images_that_are_trained_on_are_not_scored():
    trace = made(data="cifar10", split="test", images="f" * 64)
    with pytest.raises(InputError, match="have 5 images in common, the first is image 0"):
        learned_stopper(trace, trace.select(np.arange(5)), QUICK, quiet=True)
    refused("one trace is given as validation and as test", learned_stopper, trace, trace, QUICK, quiet=True)


def test_outputs_of_other_classes_and_impossible_configs_are_refused():
    stopper = train_stopper(made(), QUICK, quiet=True)
    refused(r"logits have shape \(2, 10\), this stopper was trained on 3 classes", stopper.step, torch.zeros(2, 10))
    for option in ({"hidden": 0}, {"lr": 0.0}, {"epochs": 0}, {"batch_size": 0}):
        refused("cannot be trained: give sizes of at least 1 and an lr above 0", StopperConfig, **option)
