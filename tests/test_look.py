"""One look: a colour a model, wherever it is shown and whoever looks."""

from itertools import combinations
from typing import get_args

import numpy as np
import pytest

from cascaded.exhibits.kinds import Way
from cascaded.report import look
from cascaded.report.look import colours, deep, mark_of

FAMOUS = ["CascadedTD(0)", "CascadedTD(1)", "CascadedCE", "SerialCE", "SerialTD(0)", "Shallow-Deep"]
FAMOUS += ["CascadedTD(0)-MultiHead"]
OTHERS = [f"run {number}" for number in range(17)]
EVERY = (*look.FIRST, *look.MORE, *look.AGAIN)
WHITE, DARK = "#ffffff", "#15181d"

# Machado and others 2009: what is left of colours without red or green cones
BLIND = {
    "nobody": np.eye(3),
    "protanopia": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "deuteranopia": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
}


def linear(colour):
    parts = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    light, dark = sorted((float(linear(each) @ [0.2126, 0.7152, 0.0722]) for each in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def oklab(light):
    cones = [[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]
    axes = [[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]
    return 100 * np.array(axes) @ np.cbrt(np.array(cones) @ np.clip(light, 0, 1))


@pytest.mark.parametrize("colour", EVERY)
def test_every_colour_stands_out_on_white_and_on_a_dark_page(colour):
    assert contrast(colour, WHITE) >= 3
    assert contrast(colour, DARK) >= 3


@pytest.mark.parametrize("colour", [*EVERY, look.INK, look.MUTED])
def test_words_in_any_colour_can_be_read_on_white(colour):
    assert contrast(deep(colour), WHITE) >= 4.5


@pytest.mark.parametrize("sight", BLIND)
def test_the_best_known_models_can_be_told_apart_whatever_one_sees(sight):
    seen = [oklab(BLIND[sight] @ linear(colour)) for colour in look.FIRST]
    assert min(np.linalg.norm(one - other) for one, other in combinations(seen, 2)) > 9


def test_a_well_known_model_keeps_its_colour_whatever_else_is_shown():
    alone = {model: colours([model])[model] for model in FAMOUS}
    together = colours([*OTHERS, "SerialTD(1)", *reversed(FAMOUS)])
    assert {model: together[model] for model in FAMOUS} == alone
    assert len(set(alone.values())) == len(FAMOUS)


def test_names_of_commands_and_of_the_paper_are_the_same_model():
    for ours, papers in (("cascaded-td(0)", "CascadedTD(0)"), ("shallow-deep(1)", "Shallow-Deep")):
        assert colours([ours])[ours] == colours([papers])[papers]
    assert colours(["serial-td(0.5)"])["serial-td(0.5)"] == colours(["SerialTD(0)"])["SerialTD(0)"]


def test_24_models_have_24_colours_and_a_hue_that_is_there_twice_has_two_marks():
    chosen = colours([*FAMOUS, *OTHERS])
    assert len(set(chosen.values())) == 24
    assert sorted(mark_of(colour) for colour in chosen.values()) == ["o"] * 12 + ["s"] * 12


def test_others_take_what_is_left_in_order_and_always_the_same():
    chosen = colours(OTHERS)
    assert list(chosen) == OTHERS
    assert list(chosen.values()) == [*look.MORE, *look.AGAIN]
    assert colours([OTHERS[0], *FAMOUS, OTHERS[1]])[OTHERS[1]] == chosen[OTHERS[1]]


def test_more_models_than_colours_all_get_one():
    many = [f"run {number}" for number in range(60)]
    assert list(colours(many)) == many
    assert set(colours(many).values()) == set(EVERY)


def test_a_name_that_is_there_twice_is_one_model():
    assert colours(["a", "a", "b"]) == {"a": look.MORE[0], "b": look.MORE[1]}


def test_every_way_has_its_line_and_its_mark():
    assert set(look.DASHES) == set(look.FILLS) == set(get_args(Way))
    ways = ("threshold", "deadline", "stopper")
    assert len({str(look.DASHES[way]) for way in ways}) == len({look.FILLS[way] for way in ways}) == 3


def test_inks_are_no_models_colour():
    inks = {look.INK, look.MUTED, look.GRID, look.PAPER}
    assert len(inks) == 4
    assert not inks & {*EVERY, *map(deep, EVERY), "#ffffff", "#000000"}
