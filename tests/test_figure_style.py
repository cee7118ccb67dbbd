"""Colors of figures: readable on white and on a dark page, by color-blind readers too."""

from itertools import combinations

import numpy as np
import pytest

from cascaded.figures.style import DASHES, GRID, INK, METHODS, MUTED, PALETTE, PAPER, color, mix, text_color
from cascaded.results.names import NAMES

WHITE, DARK = "#ffffff", "#15181d"
MIXED = [mix(*METHODS[method], share) for method in METHODS for share in (0.25, 0.5, 0.9)]

# Machado and others 2009: what is left of colors without red or green cones
BLIND = {
    "nobody": np.eye(3),
    "protanopia": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "deuteranopia": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
}


def linear(hex_color):
    parts = np.array([int(hex_color[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    light, dark = sorted((float(linear(each) @ [0.2126, 0.7152, 0.0722]) for each in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def oklab(light):
    cones = [[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]
    axes = [[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]
    return 100 * np.array(axes) @ np.cbrt(np.array(cones) @ np.clip(light, 0, 1))


def test_every_color_stands_out_on_white_and_on_a_dark_page():
    for each in (*PALETTE, *MIXED):
        assert contrast(each, WHITE) >= 3, each
        assert contrast(each, DARK) >= 3, each


def test_words_in_any_color_can_be_read_on_white():
    for each in (*PALETTE, *MIXED, INK, MUTED):
        assert contrast(text_color(each), WHITE) >= 4.5, each


@pytest.mark.parametrize("sight", BLIND)
def test_the_first_seven_colors_are_distinct_whatever_one_sees(sight):
    seen = [oklab(BLIND[sight] @ linear(each)) for each in PALETTE[:7]]
    assert min(np.linalg.norm(one - other) for one, other in combinations(seen, 2)) > 9


def test_every_method_has_a_color_and_the_best_known_ones_the_first_seven():
    assert set(METHODS) == set(NAMES)
    known = [("cascaded-td", 0.0), ("cascaded-td", 1.0), ("cascaded-ce", None), ("serial-td-multihead", 1.0)]
    known += [("serial-ce", None), ("serial-td", 0.0), ("cascaded-td-multihead", 0.0)]
    assert [color(*each) for each in known] == list(PALETTE[:7])
    assert color("cascaded-ce", None, "serial") == color("serial-ce", None, "serial")
    assert color("cascaded-td", 0.5) not in PALETTE


def test_stopping_rules_have_dashes_of_their_own():
    assert len({str(style) for style in DASHES.values()}) == 3


def test_inks_are_no_methods_color():
    inks = {INK, MUTED, GRID, PAPER}
    assert len(inks) == 4
    assert not inks & {*PALETTE, *map(text_color, PALETTE), "#ffffff", "#000000"}
