"""MetaCog: training against the same written out, its trials and seeds, raw and standardized features."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from cascaded.analysis.metacog import MetaCog, MetaCogConfig, train_metacog
from cascaded.training.seeds import generator_at
from tests.refused import refused

QUICK = MetaCogConfig(hidden=16, epochs=30, batch_size=32)


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


def test_known_items_score_above_others():
    x, known = blobs()
    scores = train_metacog(x, known, replace(QUICK, lr=0.01)).scores(blobs(seed=1)[0])
    assert (scores[known] > 0).mean() > 0.9
    assert (scores[~known] < 0).mean() > 0.9


def test_the_defaults_are_the_papers():
    assert MetaCogConfig() == MetaCogConfig(
        hidden=256, dropout=0.5, lr=0.001, weight_decay=0.0005, epochs=300, batch_size=256, standardize=False, seed=42
    )


def test_trials_start_from_the_same_weights_and_differ_in_order_and_dropout():
    x, known = blobs()
    still = replace(QUICK, epochs=1, lr=1e-30)
    one, other = (train_metacog(*blobs(seed=seed), still, trial) for seed, trial in ((0, 0), (1, 1)))
    assert torch.equal(one.hidden.weight, other.hidden.weight)
    assert one.hidden.weight.abs().max() <= 5**-0.5
    assert one.hidden.weight.std() == pytest.approx((5 * 3) ** -0.5, rel=0.2)
    first, again, second = (train_metacog(x, known, QUICK, trial).scores(x) for trial in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, train_metacog(x, known, replace(QUICK, seed=1)).scores(x))


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


@pytest.mark.parametrize("option", [{"hidden": 0}, {"dropout": 1.0}, {"lr": 0}, {"epochs": 0}, {"batch_size": 0}])
def test_configs_that_cannot_be_trained_are_refused(option):
    refused("cannot be trained: give sizes of at least 1", MetaCogConfig, **option)


def test_wrong_input_is_refused():
    x, known = blobs()
    refused(r"200 of 200 items are known: give some of both", train_metacog, x, known | True, QUICK)
    refused(r"features have shape \(200, 5\) and known \(3,\)", train_metacog, x, known[:3], QUICK)
    refused(r"shape \(200, 4\), this MetaCog was trained on 5", train_metacog(x, known, QUICK).scores, x[:, :4])
