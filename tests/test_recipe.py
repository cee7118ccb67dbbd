"""Recipes: the paper's, the laptop's, and the rates they prescribe."""

from itertools import pairwise

import pytest

from cascaded import Recipe
from cascaded.errors import InputError
from cascaded.training.recipe import ENOUGH, LONGEST, RECIPES, fitted


def test_the_papers_recipe_is_the_papers():
    paper = RECIPES["paper"]
    assert (paper.width, paper.epochs, paper.batch, paper.held_out) == (64, 120, 128, 0.1)
    assert (paper.rate, paper.momentum, paper.nesterov, paper.decay) == (0.1, 0.9, True, 5e-4)
    rates = [paper.rate_at(epoch * 351, 351) for epoch in (0, 29, 30, 59, 60, 90, 119)]
    assert rates == pytest.approx([0.1, 0.1, 0.02, 0.02, 0.004, 0.0008, 0.0008])
    assert paper.rate_at(30 * 351 - 1, 351) == 0.1


def test_one_cycle_rises_and_falls_once():
    recipe = Recipe(schedule="one-cycle", epochs=4, rate=0.4, warm_up=0.25)
    rates = [recipe.rate_at(step, 50) for step in range(200)]
    top = rates.index(max(rates))
    assert max(rates) == pytest.approx(0.4, rel=0.02)
    assert top in (49, 50)
    assert rates[: top + 1] == sorted(rates[: top + 1])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert 0 < min(rates) < 0.01


def test_short_trainings_climb_no_faster_than_to_the_peak_in_fifty_steps():
    recipe = RECIPES["laptop"].but(epochs=1)
    rates = [0.0, *(recipe.rate_at(step, 31) for step in range(31))]
    assert max(after - before for before, after in pairwise(rates)) == pytest.approx(recipe.rate / 50)
    assert max(rates) == pytest.approx(0.1 * 21 / 50)  # step / 50 meets (1 - step / 32) / 0.8 at 21.2
    assert 0 < rates[-1] < 0.005


def test_trainings_of_the_usual_length_are_not_held_back():
    recipe, steps = RECIPES["laptop"], 7030
    for step in (0, 49, 700, 1404):
        assert recipe.rate_at(step, steps // 10) == 0.1 * ((step + 1) / (steps + 1) / 0.2)


def test_changes_that_are_none_are_left_out():
    assert Recipe().but(width=8, epochs=None) == Recipe(width=8)


@pytest.mark.parametrize("recipe", [*RECIPES.values(), Recipe(noise="focus", flip=False, cutout=0)])
def test_json_and_back(recipe):
    assert Recipe.from_json(recipe.to_json()) == recipe


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 0}, "epochs is 0: give at least 1"),
        ({"batch": -1}, "batch is -1"),
        ({"rate": 0.0}, "rate is 0.0: give a positive number"),
        ({"rate": float("nan")}, "rate is nan"),
        ({"momentum": 1.0}, "momentum is 1.0: give a number from 0 to below 1"),
        ({"decay": -1e-4}, "decay is -0.0001"),
        ({"held_out": 1.0}, "held_out is 1.0"),
        ({"warm_up": 0.0}, "warm_up is 0.0"),
        ({"schedule": "cosine"}, "schedule is 'cosine': say steps or one-cycle"),
        ({"precision": "float16"}, "precision is 'float16': say float32 or bfloat16"),
        ({"drop": 0.0}, "drop is 0.0"),
        ({"cutout": -2}, "cutout is -2"),
    ],
)
def test_impossible_recipes_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        Recipe(**change)


def test_a_recipe_of_a_newer_version_is_refused():
    with pytest.raises(InputError, match="a recipe has no colour: it was made by a newer cascaded"):
        Recipe.from_json({**Recipe().to_json(), "colour": 1})


def test_small_data_sets_get_smaller_batches_and_more_epochs():
    laptop = RECIPES["laptop"]
    few = fitted(laptop, 108)
    assert (few.batch, few.epochs, few.width) == (16, 67, 16)
    assert few.but(batch=laptop.batch, epochs=laptop.epochs) == laptop
    for images in range(1, 3000):
        chosen = fitted(laptop, images)
        updates = chosen.epochs * (images // chosen.batch)
        assert 1 <= chosen.batch <= min(images, laptop.batch)
        assert laptop.epochs <= chosen.epochs <= LONGEST
        assert updates >= ENOUGH or chosen.epochs == LONGEST


def test_data_sets_with_enough_updates_keep_the_recipe():
    for images in (2560, 45_000):
        assert fitted(RECIPES["laptop"], images) == RECIPES["laptop"]
    assert fitted(RECIPES["laptop"], 2559) != RECIPES["laptop"]


@pytest.mark.parametrize(
    ("given", "batch", "epochs"),
    [(["batch"], 64, 200), (["epochs"], 16, 10), (["batch", "epochs"], 64, 10), (["width"], 16, 67)],
)
def test_what_is_given_stays_and_the_rest_is_chosen_to_go_with_it(given, batch, epochs):
    chosen = fitted(RECIPES["laptop"], 108, given)
    assert (chosen.batch, chosen.epochs) == (batch, epochs)
