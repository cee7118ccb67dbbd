"""Figures: what is drawn is what the numbers say, whatever the names are."""

import re
import warnings
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection

from cascaded.exhibits.kinds import Dot, Dots, Figure, Level, Lines, Pictures, Series, Squares, Thumb
from cascaded.report.draw import draw
from cascaded.report.draw_labels import spread
from cascaded.report.draw_text import plain, shortened, width, wrapped
from cascaded.report.look import PAPER, STYLE, colours

NAN = float("nan")
MODELS = ["CascadedTD(0)", "CascadedTD(1)", "CascadedCE", "Shallow-Deep", "SerialCE", "SerialTD(1)"]
MODELS += ["CascadedTD(0)-MultiHead", "CascadedTD(0.5)"]
MANY = [f"CascadedTD({number / 16:g})" for number in range(12)]
ODD = [
    "</svg><script>alert(1)</script>",
    r"$\alpha$ 5$",
    "x" * 200,
    "漢字 \U0001f600",
    "",
    "\"a\" & 'b'",
    "a\x00\ud800\n b",
]
COLOURS = colours([*MODELS, *MANY, *ODD])


def series(model, steps=9, **more):
    x = np.arange(1, steps + 1)
    y = 0.1 + 0.8 / (1 + np.exp(3 - x))
    return Series(model, tuple(x), tuple(y), (0.02,) * steps, **more)


def lines(models, **more):
    return Lines("step", "right answers", tuple(series(model) for model in models), **{"whole": True, **more})


def dots(models, groups, **more):
    found = (Dot(model, group, 0.1 * place, 0.05, 0.9) for group in groups for place, model in enumerate(models))
    return Dots("right answers", tuple(groups), tuple(found), **more)


def picture(side=8, seed=0):
    return np.random.default_rng(seed).integers(0, 255, (side, side, 3), dtype=np.uint8)


def pictures(names, count=3):
    return Pictures(tuple((name, tuple(Thumb(picture(), name) for _ in range(count))) for name in names))


def steps(shape=(9, 8)):
    return np.clip(np.arange(shape[0])[:, None] / 8 - np.arange(shape[1]) / 16, 0, 1)


CHANCE = (Level("chance", 0.1), Level("best so far", 0.93, "CascadedCE"))
BODIES = {
    "lines": lines(MODELS, levels=CHANCE[:1], spans=(("noisy steps", 3, 5), ("a long name for a short span", 7, 7.2))),
    "ways": Lines("step", "y", tuple(series(m, way=w) for m in MODELS[:2] for w in ("threshold", "stopper"))),
    "many lines": lines(MANY, levels=CHANCE),
    "odd lines": lines(ODD, levels=(Level("$l$" * 40, 0.5),), spans=((ODD[0], 2, 3),)),
    "long labels": Lines("$x$ " * 60, "what is measured " * 20, (series("a"),)),
    "one step": Lines("step", "y", tuple(series(model, 1) for model in MODELS), whole=True),
    "large": Lines("operations", "s", (Series("a", (1e6, 3e8), (-1e-4, 2e-4)),), shares=False),
    "joined": dots(MODELS[:3], ("0", "0.5", "0.9", "1"), joined=True, group_label="lambda", levels=CHANCE),
    "odd joined": dots(MANY, ODD, joined=True, group_label=ODD[2]),
    "two dots in one place": dots(MODELS[:1] * 2, ("0", "1"), joined=True),
    "one group joined": dots(MODELS, ("0.5",), joined=True),
    "rows": dots(MODELS[:4], ("focus", "a name that needs more than one line"), levels=CHANCE),
    "odd rows": dots(ODD, ODD, levels=(Level(ODD[2], 0.2), Level(ODD[1], 0.21))),
    "one group": dots(MODELS, ("photographs",)),
    "pictures": pictures(["fast", "slow"], 12),
    "odd pictures": pictures(ODD, 7),
    "squares": Squares((("serial", np.tri(9, 8)), ("cascaded", steps()))),
    "long squares": Squares((("serial", steps((30, 8))), (ODD[2], steps((30, 12))), (ODD[1], np.full((1, 1), NAN)))),
}
EMPTY = {
    "no lines": Lines("x", "y", ()),
    "no points": Lines("x", "y", (Series("a", (), ()),), levels=CHANCE),
    "all nan": Lines("x", "y", (Series("a", (1, 2), (NAN, NAN), (NAN, NAN)),)),
    "no dots": Dots("y", (), ()),
    "no joined dots": Dots("y", ("0", "1"), (), joined=True),
    "nan dots": Dots("y", ("a", "b"), (Dot("a", "a", NAN, NAN, NAN),), levels=(Level("nothing", NAN),)),
    "no pictures": Pictures(()),
    "no pictures in a row": Pictures((("slow", ()),)),
    "no squares": Squares(()),
}


def drawn(body):
    return draw(Figure("f", "title", "caption", body), COLOURS)


def texts(sheet):
    """Every text with its box, in pixels."""
    found = list(sheet.texts)
    for axes in sheet.axes:
        found += [*axes.get_xticklabels(), *axes.get_yticklabels()] if axes.axison else []
    with warnings.catch_warnings(), mpl.rc_context(STYLE):
        warnings.simplefilter("ignore")  # letters that the font lacks
        renderer = FigureCanvasAgg(sheet).get_renderer()
        return [(text.get_text(), text.get_window_extent(renderer)) for text in found if text.get_text()]


def words(sheet):
    return " ".join(text for text, _ in texts(sheet))


def named(sheet, colour):
    return [line for line in sheet.axes[0].lines if line.get_color() == colour]


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_no_text_leaves_the_figure_or_covers_another(body):
    sheet = drawn(body)
    boxes = [(text, box.padded(-1)) for text, box in texts(sheet)]
    assert boxes
    for place, (text, box) in enumerate(boxes):
        assert 0 <= box.x0 <= box.x1 <= sheet.bbox.width, text
        assert 0 <= box.y0 <= box.y1 <= sheet.bbox.height, text
        assert not [other for other, covered in boxes[:place] if box.overlaps(covered)], text


@pytest.mark.parametrize("body", EMPTY.values(), ids=EMPTY)
def test_where_there_is_nothing_to_draw_that_is_said(body):
    assert re.search(r"\bno (figures|pictures|schedules) to|none", words(drawn(body)))


@given(st.lists(st.tuples(st.floats(-10, 10), st.floats(0.1, 2)), max_size=12))
def test_things_that_are_spread_never_overlap_and_keep_their_order(things):
    wanted, sizes = [list(each) for each in zip(*things, strict=True)] or ([], [])
    placed = sorted(zip(spread(wanted, sizes, -12, 12), wanted, sizes, strict=True))
    for (low, before, below), (high, after, above) in pairwise(placed):
        assert high - low >= (below + above) / 2 - 1e-9
        assert before <= after
    if sum(sizes) <= 24:
        assert all(place - size / 2 >= -12 - 1e-9 and place + size / 2 <= 12 + 1e-9 for place, _, size in placed)


@pytest.mark.parametrize(
    ("wanted", "sizes", "placed"),
    [
        ([1.0, 5.0], [1.0, 1.0], [1.0, 5.0]),  # far apart: where they want to be
        ([5.0, 5.0], [1.0, 1.0], [4.5, 5.5]),  # as far from it one as the other
        ([5.2, 5.0, 5.1], [1.0, 1.0, 1.0], [6.1, 4.1, 5.1]),
        ([9.9, 9.8], [1.0, 2.0], [9.5, 8.0]),  # against the end
        ([5.0] * 4, [4.0] * 4, [-1.0, 3.0, 7.0, 11.0]),  # more than there is room for: both ends are passed alike
    ],
)
def test_things_are_spread_by_hand(wanted, sizes, placed):
    assert spread(wanted, sizes, 0, 10) == pytest.approx(placed)


@given(st.text(max_size=100), st.floats(0.2, 4))
def test_words_are_made_to_fit(text, room):
    for line in (shortened(text, room), *wrapped(text, room, lines=3)):
        assert width(line) <= room
    assert shortened(text, 1e6) == plain(text) or len(text) > 400


def test_a_shortened_name_keeps_its_end_and_a_wrapped_one_breaks_at_a_dash():
    assert re.fullmatch(r"cascaded.*….*-17", shortened("cascaded-td(0) in a folder of some depth/seed-17", 1.5))
    assert wrapped("CascadedTD(0)-MultiHead", 1.3) == ["CascadedTD(0)-", "MultiHead"]


def test_a_line_has_its_models_colour_and_its_ways_dashes():
    sheet = drawn(BODIES["ways"])
    for model in MODELS[:2]:
        found = [line for line in named(sheet, COLOURS[model]) if len(line.get_xdata()) == 9]
        assert [line.is_dashed() for line in found] == [False, True]
    assert {"threshold", "stopper"} <= set(words(sheet).split())


def test_a_gap_stays_a_gap_and_a_point_between_gaps_is_seen():
    body = Lines("x", "y", (Series("CascadedCE", (1, 2, 3, 4, 5), (0.1, 0.2, NAN, 0.4, NAN)),))
    line, marks = drawn(body).axes[0].lines[:2]
    assert np.isnan(line.get_ydata()).tolist() == [False, False, True, False]
    assert marks.get_xydata().tolist() == [[4, 0.4]]


def test_bands_are_the_mean_and_one_standard_error_to_both_sides():
    body = Lines("x", "y", (Series("CascadedCE", (1, 2), (0.5, 0.99), (0.1, 0.03)),))
    band = next(each for each in drawn(body).axes[0].collections if isinstance(each, PolyCollection))
    corners = {(round(x, 6), round(y, 6)) for x, y in band.get_paths()[0].vertices}
    assert corners == {(1, 0.4), (1, 0.6), (2, 0.96), (2, 1.0)}  # no share is above 1


def test_more_than_eight_names_go_below_the_plot_and_none_is_lost():
    few, many = drawn(lines(MODELS)), drawn(lines(MANY))
    assert all(model in words(many) for model in MANY)
    below = [box.y1 for text, box in texts(many) if text in MANY]
    assert max(below) < many.axes[0].bbox.y0
    assert many.axes[0].bbox.width > few.axes[0].bbox.width


def test_shares_are_written_in_per_cent_and_steps_as_whole_numbers():
    axes = drawn(BODIES["lines"]).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == [str(step) for step in range(1, 10)]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]


def test_numbers_are_written_as_briefly_as_tells_them_apart():
    axes = drawn(BODIES["large"]).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0 M", "100 M", "200 M", "300 M"]
    assert "\N{MINUS SIGN}0.0001" in [label.get_text() for label in axes.get_yticklabels()]


def test_joined_dots_stand_where_their_numbers_are_and_in_equal_steps_where_they_are_words():
    numbers, evenly = (drawn(dots(["CascadedCE"], groups, joined=True)) for groups in (("0", "0.8", "1"), "abc"))
    assert [line.get_xdata() for line in numbers.axes[0].lines][-1] == pytest.approx([0, 0.8, 1])
    assert [line.get_xdata() for line in evenly.axes[0].lines][-1] == pytest.approx([0, 1, 2])


def test_rows_are_as_high_as_they_need_and_whiskers_as_long_as_they_are():
    short, tall = drawn(dots(MODELS[:2], "ab")), drawn(dots(MODELS[:2], "abcdefghij"))
    assert tall.get_figheight() > 2 * short.get_figheight()
    whiskers = [list(line.get_xdata()) for line in short.axes[0].lines if len(line.get_xdata()) == 2]
    assert whiskers.count([0.05, 0.9]) == 4


def test_open_and_filled_marks_tell_ways_apart():
    body = Dots("y", ("a",), (Dot("SerialCE", "a", 0.1, way="last step"), Dot("SerialCE", "a", 0.2, way="all steps")))
    faces = {line.get_xdata()[0]: line.get_markerfacecolor() for line in drawn(body).axes[0].lines}
    assert faces == {0.1: PAPER, 0.2: COLOURS["SerialCE"]}


def test_pictures_keep_their_pixels_and_stand_ten_in_a_line_at_most():
    body = Pictures((("all", tuple(Thumb(picture(side, side)) for side in range(8, 33))),))
    images = drawn(body).axes[0].images
    for image, (_, thumbs) in zip(images, body.rows * 25, strict=True):
        assert image.get_interpolation() == "none"
        assert any(np.array_equal(image.get_array(), thumb.pixels) for thumb in thumbs)
    tops = [round(image.get_extent()[3], 6) for image in images]
    assert max(tops.count(top) for top in tops) <= 10


def test_squares_are_the_fuller_the_closer_to_settled():
    shades = np.array([[0.0, 0.3], [0.6, 1.0]])
    found = {}
    for patch in drawn(Squares((("cascaded", shades),))).axes[0].patches:
        empty = patch.get_facecolor()[3] == 0
        for corner in patch.get_path().vertices[::5]:
            found[tuple(np.round(corner - 0.55).astype(int).tolist())] = 0.0 if empty else patch.get_alpha()
    assert found == pytest.approx({(0, 0): 0.0, (0, 1): 0.12 + 0.88 * 0.3, (1, 0): 0.12 + 0.88 * 0.6, (1, 1): 1.0})
