"""The configuration of a run: recipes, learning rates, JSON, the command line and the hash."""

import json
from dataclasses import asdict, replace
from itertools import pairwise

import pytest
import tyro

from cascaded import RunConfig
from cascaded.errors import InputError
from cascaded.files import from_json
from cascaded.shell import to_args
from cascaded.training.config import LATER, RECIPES, ExecutionConfig, config_hash, train_args
from cascaded.training.fit import ENOUGH, LONGEST, fitted

LAPTOP, PAPER = RECIPES["laptop"], RECIPES["paper"]
SOME = [
    *RECIPES.values(),
    RunConfig("cifar10", "cascaded-ce", width=8, seed=3, max_images=100, fill_statistics=True),
    RunConfig("folder", lam=(1.0, 0.0), classes=("a", "b c"), image_column="img", image_size=32, flip=False),
    RunConfig("cifar10", pool=False, ema=0.99, decay_norms=False),
    replace(LAPTOP, pool=True, method="shallow-deep", fold=(3, 10), noise="focus", cutout=None, nesterov=False),
]


def test_the_papers_recipe_is_the_papers():
    assert (PAPER.width, PAPER.epochs, PAPER.batch_size, PAPER.val_fraction) == (64, 120, 128, 0.1)
    assert (PAPER.lr, PAPER.momentum, PAPER.nesterov, PAPER.weight_decay) == (0.1, 0.9, True, 5e-4)
    rates = [PAPER.lr_at(epoch * 351, 351) for epoch in (0, 29, 30, 59, 60, 90, 119)]
    assert rates == pytest.approx([0.1, 0.1, 0.02, 0.02, 0.004, 0.0008, 0.0008])
    assert PAPER.lr_at(30 * 351 - 1, 351) == 0.1


def test_one_cycle_rises_and_falls_once():
    config = RunConfig(lr_schedule="one-cycle", epochs=4, lr=0.4, warmup_fraction=0.25)
    rates = [config.lr_at(step, 50) for step in range(200)]
    top = rates.index(max(rates))
    assert max(rates) == pytest.approx(0.4, rel=0.02)
    assert top in (49, 50)
    assert rates[: top + 1] == sorted(rates[: top + 1])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert 0 < min(rates) < 0.01


def test_the_warm_up_takes_at_least_fifty_steps():
    config = replace(LAPTOP, epochs=1)
    rates = [0.0, *(config.lr_at(step, 31) for step in range(31))]
    assert max(after - before for before, after in pairwise(rates)) == pytest.approx(config.lr / 50)
    assert max(rates) == pytest.approx(config.lr * 21 / 50)  # step / 50 meets (1 - step / 32) / 0.8 at 21.2
    assert 0 < rates[-1] < 0.005


def test_trainings_of_the_usual_length_warm_up_over_the_given_fraction():
    steps = LAPTOP.epochs * 703
    for step in (0, 49, 700, steps // 5 - 2):
        assert LAPTOP.lr_at(step, 703) == LAPTOP.lr * ((step + 1) / (steps + 1) / 0.2)


@pytest.mark.parametrize("config", SOME)
def test_json_and_back(config):
    assert from_json(json.loads(json.dumps(asdict(config))), RunConfig) == config


def test_a_configuration_from_before_a_field_was_added_has_its_default():
    written = {name: value for name, value in asdict(LAPTOP).items() if name not in LATER}
    assert from_json(written, RunConfig) == LAPTOP


@pytest.mark.parametrize("config", SOME)
@pytest.mark.parametrize("defaults", [LAPTOP, PAPER])
def test_the_command_line_and_back(config, defaults):
    assert tyro.cli(RunConfig, default=defaults, args=to_args(config, defaults)) == config


def test_only_what_differs_from_the_recipe_is_on_the_command_line():
    config = replace(PAPER, data="cifar10", width=8, flip=False, classes=("cat", "dog"), lam=0.5)
    words = "--recipe paper --data cifar10 --lam 0.5 --width 8 --flip False --classes cat dog --tensorboard"
    assert train_args(config, ExecutionConfig(tensorboard=True)) == words.split()
    # not chosen from the number of images again
    assert train_args(replace(LAPTOP, seed=3)) == ["--seed", "3", "--epochs", "30", "--batch-size", "64"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 0}, "epochs is 0: give at least 1"),
        ({"batch_size": -1}, "batch_size is -1"),
        ({"lr": 0.0}, "lr is 0.0: give a positive number"),
        ({"momentum": 1.0}, "momentum is 1.0: give a number from 0 to below 1"),
        ({"weight_decay": -1e-4}, "weight_decay is -0.0001"),
        ({"val_fraction": 1.0}, "val_fraction is 1.0"),
        ({"ema": 1.0}, "ema is 1.0: give a number from 0 to below 1"),
        ({"warmup_fraction": 0.0}, "warmup_fraction is 0.0"),
        ({"lr_schedule": "cosine"}, "lr_schedule is 'cosine': give steps or one-cycle"),
        ({"precision": "float16"}, "precision is 'float16': give float32 or bfloat16"),
        ({"lr_gamma": 0.0}, "lr_gamma is 0.0"),
        ({"cutout": -2}, "cutout is -2"),
        ({"method": "cascaded-ce", "lam": 0.5}, "cascaded-ce is trained on the last step only"),
        ({"method": "serial-ce", "fill_statistics": True}, "is for cascaded-ce, the method is serial-ce, .*: leave it"),
    ],
)
def test_impossible_configurations_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        RunConfig(**change)


def test_differences_name_both_sides():
    one, other = RunConfig("cifar10", lam=0.0), RunConfig("cifar10", lam=0.5, epochs=3, seed=1)
    assert one.differences(other) == ["lam 0.0 -> 0.5", "epochs 120 -> 3", "seed 0 -> 1"]
    assert one.differences(one) == []


def test_what_means_the_same_is_the_same():
    assert RunConfig("folder/").differences(RunConfig("folder", lam=0.0)) == []
    multihead = RunConfig(method="serial-td-multihead")
    assert multihead.differences(replace(multihead, lam=1.0)) == []


@pytest.mark.parametrize(
    "change",
    [{"method": "cascaded-ce"}, {"lam": 0.5}, {"seed": 4}, {"data": "digits/"}, {"fold": (2, 10)}],
)
def test_runs_that_can_be_compared_have_one_hash(change):
    config = replace(PAPER, fold=(1, 10) if "fold" in change else None)
    assert config_hash(replace(config, **change)) == config_hash(config)


@pytest.mark.parametrize(
    "change",
    [{"epochs": 3}, {"lam": (1.0, 0.0)}, {"noise": "focus"}, {"init_from": "0" * 64}, {"fold": (1, 5)}, {"ema": 0.9}],
)
def test_runs_that_cannot_be_compared_have_other_hashes(change):
    assert config_hash(PAPER) == "8d1b446456f3"  # it is in tables that were written before
    assert config_hash(replace(PAPER, **change)) != config_hash(PAPER)


def test_filled_statistics_are_another_condition_than_those_of_one_step():
    one = replace(PAPER, method="cascaded-ce")
    filled = replace(one, fill_statistics=True)
    assert config_hash(filled) != config_hash(one) == config_hash(PAPER)
    assert one.differences(filled) == ["fill_statistics False -> True"]


def test_small_data_sets_get_smaller_batches_and_more_epochs():
    few = fitted(LAPTOP, 108)
    assert (few.batch_size, few.epochs, few.width) == (16, 67, 16)
    assert replace(few, batch_size=LAPTOP.batch_size, epochs=LAPTOP.epochs) == LAPTOP
    for images in range(1, 3000):
        chosen = fitted(LAPTOP, images)
        updates = chosen.epochs * (images // chosen.batch_size)
        assert 1 <= chosen.batch_size <= min(images, LAPTOP.batch_size)
        assert LAPTOP.epochs <= chosen.epochs <= LONGEST
        assert updates >= ENOUGH or chosen.epochs == LONGEST


def test_data_sets_with_enough_updates_keep_the_recipe():
    for images in (896, 45_000):
        assert fitted(LAPTOP, images) == LAPTOP
    assert fitted(LAPTOP, 895) != LAPTOP


@pytest.mark.parametrize(
    ("given", "batch_size", "epochs"),
    [(["batch_size"], 64, 200), (["epochs"], 16, 30), (["batch_size", "epochs"], 64, 30), (["width"], 16, 67)],
)
def test_what_is_given_stays_and_the_rest_is_chosen_to_go_with_it(given, batch_size, epochs):
    chosen = fitted(LAPTOP, 108, given)
    assert (chosen.batch_size, chosen.epochs) == (batch_size, epochs)
