"""Figures: the numbers on the axes are the table's, and no text leaves a figure or covers another."""

import subprocess
import sys
from itertools import combinations, pairwise, product

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.text import Text

from cascaded import figures
from cascaded.errors import InputError
from cascaded.figures.lines import spread
from cascaded.figures.style import CASCADED, INK, VERDICTS, color
from cascaded.paper.claims import evaluate
from cascaded.results.compare import bands, estimates
from cascaded.results.names import display_name
from tests.made_table import NOISES, made_table
from tests.refused import refused

TD0 = color("cascaded-td", 0.0)


@pytest.fixture(scope="module")
def table():
    return made_table()


@pytest.fixture(scope="module")
def measured(table):
    """The claims of the table, whose curves begin only: every point is compared, and takes its time."""
    return evaluate(table[table["x"].isna() | (table["x"] < 2)])


def rows(df, analysis, metric, **variants):
    """The rows of CascadedTD(0)."""
    chosen = df[(df.analysis == analysis) & (df.metric == metric) & (df.method == "cascaded-td") & (df.lam == 0)]
    for column, value in variants.items():
        chosen = chosen[chosen[column] == value]
    assert len(chosen)
    return chosen


def drawn(ax, color=TD0, style=None):
    """The points of the lines of one color, without the error bars' caps and legends."""
    found = [line for line in ax.lines if to_hex(line.get_color()) == color and len(line.get_xdata())]
    found = [line for line in found if style is None or line.get_linestyle() == style]
    return [np.asarray(line.get_xydata(), dtype=float) for line in found]


def is_curve(ax, df, **kwargs):
    band = bands(df).sort_values("x")
    return any(len(xy) == len(band) and np.allclose(xy, band[["x", "value"]], atol=1e-9) for xy in drawn(ax, **kwargs))


def has_dots(ax, df):
    wanted = estimates(df).value.tolist()
    return sorted(x for xy in drawn(ax) for x, _ in xy) == pytest.approx(sorted(wanted))


def titles(fig):
    return [ax.get_title("left") for ax in fig.axes]


@pytest.mark.parametrize(
    ("draw", "analysis", "metric", "variants"),
    [
        (figures.accuracy_per_step, "speed_accuracy", "accuracy_per_step", {}),
        (figures.speed_accuracy, "speed_accuracy", "accuracy_at_cost", {"rule": "threshold", "unit": "steps"}),
        (figures.settled, "selection_latency", "settled", {}),
        (figures.latency_by_decile, "prototypicality", "latency_by_decile", {"measure": "centrality"}),
        (figures.taxonomy, "taxonomic_compliance", "compliance", {}),
    ],
)
def test_the_curves_of_a_figure_are_the_bands_of_the_table(table, draw, analysis, metric, variants):
    for time, own in rows(table, analysis, metric, **variants).groupby("time"):
        fig = draw(table[table.time == time])
        assert any(is_curve(ax, own) for ax in fig.axes)
        assert not fig.data.empty


def test_operations_are_written_in_millions(table):
    coarse = table[table.time == "coarse"]
    (ax,) = figures.speed_accuracy(coarse, unit="operations").axes
    assert is_curve(ax, rows(coarse, "speed_accuracy", "accuracy_at_cost", rule="threshold", unit="operations"))
    assert {label.get_text()[-1] for label in ax.get_xticklabels()} <= {"M", "0"}
    refused("unit is 'seconds': give one of steps, operations", figures.speed_accuracy, coarse, unit="seconds")


def test_each_stopping_rule_has_its_own_line_style(table):
    fine = table[table.time == "fine"]
    fig = figures.stopping_rules(fine)
    ax = next(ax for ax in fig.axes if ax.get_title("left") == "CascadedTD(0)")
    styles = [line.get_linestyle() for line in ax.lines]
    assert len(styles) == 3
    assert is_curve(ax, rows(fine, "learned_stopper", "accuracy_at_cost", rule="deadline", unit="steps"), style="--")
    assert is_curve(ax, rows(fine, "learned_stopper", "accuracy_at_cost", rule="stopper", unit="steps"))
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["threshold", "deadline", "stopper"]


def test_lambda_is_on_the_x_axis_and_cross_entropy_a_level(table):
    (ax,) = figures.lambda_effect(table).axes
    found = estimates(table[(table.analysis == "speed_accuracy") & (table.metric == "accuracy")])
    td = found[(found.method == "cascaded-td") & (found.time == "coarse")].sort_values("lam")
    line = next(xy for xy in drawn(ax) if len(xy) == 3)
    assert np.allclose(line, td[["lam", "value"]])
    ce = found[(found.method == "cascaded-ce") & (found.time == "coarse")].value.iloc[0]
    assert drawn(ax, color("cascaded-ce"))[0][:, 1] == pytest.approx([ce, ce])
    refused("fewer than two values of lambda", figures.lambda_effect, table[table.lam != table.lam])


@pytest.mark.parametrize(
    ("draw", "analysis", "metric", "column"),
    [
        (figures.persistent_noise, "persistent_noise", "accuracy", "noise"),
        (figures.dip, "transient_noise", "dip", "noise"),
        (figures.prototypicality, "prototypicality", "rho", "measure"),
    ],
)
def test_the_dots_of_a_figure_are_the_estimates_of_the_table(table, draw, analysis, metric, column):
    (ax,) = draw(table).axes
    own = rows(table, analysis, metric)
    assert has_dots(ax, own)
    assert {label.get_text() for label in ax.get_yticklabels()} == set(own[column])


def test_intervals_are_those_of_the_estimates(table):
    (ax,) = figures.persistent_noise(table).axes
    wanted = estimates(rows(table, "persistent_noise", "accuracy"))[["low", "high"]].to_numpy()
    own = [bars for bars in ax.collections if to_hex(bars.get_color()[0]) == TD0]
    assert np.sort([segment[:, 0] for bars in own for segment in bars.get_segments()], axis=0) == pytest.approx(
        np.sort(wanted, axis=0)
    )


def test_open_marks_read_the_last_step_and_filled_ones_all_steps(table):
    (ax,) = figures.ood(table).axes
    for reads, filled in (("all", True), ("last", False)):
        wanted = estimates(rows(table, "out_of_distribution", "auroc", reads=reads, ood_data="mean")).value
        own = [line for line in ax.lines if to_hex(line.get_color()) == TD0]
        found = [x for line in own if (to_hex(line.get_markerfacecolor()) == TD0) is filled for x in line.get_xdata()]
        assert sorted(found) == pytest.approx(sorted(wanted))


def test_the_longest_noise_is_drawn_and_its_steps_are_shaded(table):
    fig = figures.target_confidence(table)
    assert titles(fig) == list(NOISES)
    assert is_curve(fig.axes[0], rows(table, "transient_noise", "target_confidence", noise_frames=9, noise="focus"))
    (span,) = fig.axes[0].patches
    assert (span.get_x(), span.get_width()) == (9.5, 9)


def test_people_are_dots_and_networks_lines_over_the_same_milliseconds(table):
    fig = figures.human_curves(table)
    assert titles(fig) == ["noise 0", "noise 0.16", "blur 0", "blur 3", "color 0", "color 1"]
    ax = fig.axes[3]
    assert is_curve(ax, rows(table, "human", "network_accuracy_at_ms", manipulation="blur", level=3.0))
    people = rows(table, "human", "human_accuracy", manipulation="blur", level=3.0).query("seed == 0")
    (points,) = drawn(ax, color=INK)
    assert points.tolist() == people[["x", "value"]].to_numpy().tolist()
    found = fig.data[(fig.data["name"] == "people") & (fig.data["manipulation"] == "blur") & (fig.data["level"] == 3)]
    assert found["low"].tolist() == pytest.approx([np.quantile(draws, 0.025) for draws in people["draws"]])


def test_the_difference_from_people_has_a_row_per_axis_of_time_and_the_noise_ceiling(table):
    fig = figures.human_fit(table)
    (ax,) = fig.axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["steps", "operations", "mean stopping\nstep"]
    assert has_dots(ax, rows(table, "human", "fit_error", manipulation="noise+blur+color"))
    assert fig.data["name"].iloc[-1] == "a perfect model"
    assert fig.data["value"].iloc[-1] == 0.048
    assert ax.xaxis.get_major_formatter()(0.05) == "5"  # points, as the label has it


def test_categories_are_drawn_early_and_late_with_those_of_people(table):
    fig = figures.human_categories(table)
    assert titles(fig) == ["600 ms", "1000 ms"]
    (points,) = drawn(fig.axes[0], color=INK)
    expected = rows(table, "human", "human_category_accuracy", x=600.0).query("seed == 0").value.tolist()
    assert points[:, 0].tolist() == pytest.approx(expected)


def test_confusions_of_people_and_networks_have_a_cell_per_category_and_answer(table):
    fig = figures.human_confusions(table)
    assert titles(fig)[:2] == ["people, 600 ms", "people, 1000 ms"]
    own = rows(table, "human", "confusion", x=1000.0)
    names = [label.get_text() for label in fig.axes[0].get_yticklabels()]
    for name, each in own.groupby(["method", "lam", "schedule", "noise"], dropna=False):
        expected = each.groupby(["category", "answer"]).value.mean()  # over seeds
        title = f"{display_name(*name)}, 1000 ms"
        ax = fig.axes[titles(fig).index(title)]
        shades = np.reshape(ax.collections[0].get_array(), (len(names), len(names), 4))[..., 3]
        for (row, category), (column, answer) in product(enumerate(names), repeat=2):
            assert shades[row, column] == pytest.approx(expected[category, answer])


def test_bands_are_one_standard_error_to_both_sides(table):
    curves = rows(table, "speed_accuracy", "accuracy_per_step", time="coarse")
    (ax,) = figures.accuracy_per_step(curves).axes
    (band,) = (each for each in ax.collections if isinstance(each, PolyCollection))
    wanted = bands(curves)
    assert (wanted["sem"] > 0).all()
    corners = {(round(x, 6), round(y, 6)) for x, y in np.asarray(band.get_paths()[0].vertices)}
    for side in (-1, 1):
        assert {(x, round(y, 6)) for x, y in zip(wanted.x, wanted.value + side * wanted["sem"], strict=True)} <= corners


@pytest.mark.parametrize(
    ("draw", "changes", "expected"),
    [
        (figures.accuracy_per_step, {}, ["9 steps", "70 steps, fine time"]),
        (
            figures.settled,
            {"data": "digits"},
            [f"{data}, {steps}" for data in ("cifar10", "digits") for steps in ("9 steps", "70 steps, fine time")],
        ),
        (figures.dip, {"config": "fedcba987654", "run": "other"}, ["config 012345", "config fedcba"]),
        (
            figures.persistent_noise,
            {"train_noise": NOISES[0]},
            [f"trained with {NOISES[0]}", "trained with the same noise", "trained without noise"],
        ),
    ],
)
def test_settings_that_differ_are_panels_of_one_figure(table, draw, changes, expected):
    before = dict(mpl.rcParams)
    both = pd.concat([table, table.assign(**changes)]) if changes else table
    assert [title for title in titles(draw(both)) if title] == expected
    assert dict(mpl.rcParams) == before


def test_our_values_stand_beside_the_papers(table):
    ours = estimates(rows(table, "persistent_noise", "accuracy"))
    (ax,) = figures.estimates_beside_paper(ours.assign(paper=ours.value + 0.01)).axes
    paper = next(line for line in ax.lines if line.get_marker() == "d")
    assert np.asarray(paper.get_xdata()) == pytest.approx(ours.value + 0.01)
    assert has_dots(ax, rows(table, "persistent_noise", "accuracy"))
    assert next(label.get_text() for label in ax.get_yticklabels()) == f"CascadedTD(0), {NOISES[0]}"


def test_claims_have_a_row_per_measurement_and_a_color_per_verdict(measured):
    fig = figures.claims(measured)
    rows = measured[measured.effect.notna()]
    assert sum(len(ax.get_yticks()) for ax in fig.axes) == len(rows)
    supported = [xy for ax in fig.axes for xy in drawn(ax, VERDICTS["supported"])]
    wanted = rows[rows.verdict == "supported"].effect
    assert sorted(float(xy[0, 0]) for xy in supported) == pytest.approx(sorted(wanted))
    refused("no claim has been measured", figures.claims, measured.assign(effect=np.nan))


def test_a_cell_of_a_schedule_is_the_fuller_the_closer_to_the_final_activation():
    shades = np.array([[0.0, 0.3], [0.6, 1.0], [1.0, 1.0]])
    fig = figures.schedules({"serial": shades, "cascaded": shades})
    mesh = fig.axes[1].collections[0]
    assert np.asarray(mesh.get_array())[..., 3] == pytest.approx(shades.T)
    assert to_hex(np.asarray(mesh.get_array())[0, 2]) == CASCADED
    assert len(fig.data) == 12
    refused("no schedules to draw", figures.schedules, {})


def test_a_gallery_keeps_the_pixels_of_its_images():
    pixels = np.random.default_rng(0).integers(0, 255, (10, 1, 8, 8), dtype=np.uint8)
    fig = figures.gallery({"fastest": (pixels, [f"dog, {step}" for step in range(10)])})
    images = [ax.images[0] for ax in fig.axes if ax.images]
    assert len(images) == 10
    assert all(image.get_interpolation() == "none" for image in images)
    assert np.array_equal(images[3].get_array(), np.repeat(pixels[3].transpose(1, 2, 0), 3, axis=2))
    refused("no images to draw", figures.gallery, {"fastest": (pixels[:0], [])})


def test_noises_are_rows_of_frames_on_one_photograph():
    fig = figures.noises()
    assert fig.data["noise"].tolist()[0] == "clean"
    clean, noisy = (np.asarray(fig.axes[place].images[0].get_array()) for place in (1, 9))
    assert clean.shape == noisy.shape == (48, 48, 3)
    assert not np.array_equal(clean, noisy)


def test_a_learning_curve_has_a_line_for_the_first_steps_and_the_last():
    accuracy = [[0.1, 0.2, 0.3], [0.2, 0.4, 0.6]]
    (ax,) = figures.learning_curve(pd.DataFrame({"epoch": [1, 2], "accuracy": accuracy})).axes
    assert [line.get_label() for line in ax.lines] == ["step 1", "step 2", "step 3"]
    assert ax.lines[2].get_xydata().tolist() == [[1, 0.3], [2, 0.6]]


def test_a_table_without_the_metric_is_refused_with_the_command_that_computes_it(table):
    with pytest.raises(InputError, match="no accuracy_per_step of speed_accuracy: run cascaded analyze --only speed"):
        figures.accuracy_per_step(table[table.analysis == "run_time"])


def many(table):
    lambdas = tuple(("cascaded-td", lam / 10) for lam in range(11))
    return made_table("speed_accuracy", methods=lambdas, seeds=(0,))


@pytest.mark.parametrize(
    "draw",
    [
        lambda table: figures.accuracy_per_step(table[table.time == "coarse"]),
        lambda table: figures.accuracy_per_step(many(table)),
        lambda table: figures.latency_by_decile(table),
        lambda table: figures.persistent_noise(table),
        "measured",
        lambda table: figures.gallery({"slowest": (np.zeros((10, 3, 8, 8), np.uint8), ["automobile, never"] * 10)}),
        figures.human_curves,
        figures.human_fit,
        figures.human_categories,
        figures.human_confusions,
    ],
    ids=[
        "labels",
        "legend",
        "panels",
        "dots",
        "claims",
        "gallery",
        *("people", "difference", "categories"),
        "matrices",
    ],
)
def test_no_text_leaves_the_figure_or_covers_another(table, draw, monkeypatch, request):
    fig, texts = draw(table) if callable(draw) else figures.claims(request.getfixturevalue(draw)), {}
    fig.draw_without_rendering()  # lays it out
    monkeypatch.setattr(Text, "draw", lambda text, *_: texts.setdefault(id(text), text))
    fig.draw_without_rendering()
    shown = [text for text in texts.values() if text.get_text().strip() and text.get_visible()]
    boxes = [(text.get_text(), Text.get_window_extent(text)) for text in shown]
    assert len(boxes) > 5
    for name, box in boxes:
        assert -1 <= box.x0 <= box.x1 <= fig.bbox.width + 1, name
        assert -1 <= box.y0 <= box.y1 <= fig.bbox.height + 1, name
    assert [(a, b) for (a, one), (b, other) in combinations(boxes, 2) if one.padded(-1).overlaps(other)] == []


def test_more_than_eight_lines_have_a_legend(table):
    few = figures.accuracy_per_step(table[table.time == "coarse"])
    assert not few.legends
    names = {text.get_text() for text in few.axes[0].texts} - {"chance"}
    assert names == {"CascadedTD(0)", "CascadedTD(0.5)", "CascadedTD(1)", "CascadedCE", "Shallow-Deep"}
    crowded = many(table)
    fig = figures.accuracy_per_step(crowded[crowded.time == "coarse"])
    assert len(fig.legends[0].get_texts()) == 11
    assert [text.get_text() for text in fig.axes[0].texts] == ["chance"]


def test_a_legend_is_read_row_by_row_and_every_group_begins_a_row(table):
    names = ["CascadedTD(0)", "CascadedTD(0.5)", "CascadedTD(1)", "CascadedCE", "Shallow-Deep"]
    fig = figures.ood(table)
    fig.draw_without_rendering()
    entries = [(text.get_window_extent(), text.get_text()) for text in fig.legends[0].get_texts() if text.get_text()]
    in_order = [text for box, text in sorted(entries, key=lambda each: (-round(each[0].y0), each[0].x0))]
    assert in_order == [*names, "reads the last step", "reads all steps"]
    assert len({round(box.y0) for box, text in entries if text.startswith("reads")}) == 1


def test_figures_need_neither_torch_nor_pyplot():
    program = (
        "import sys, cascaded\n"
        "from tests.made_table import made_table\n"
        "cascaded.figures.inline(cascaded.figures.dip(made_table('transient_noise', seeds=(0,))), 'dip')\n"
        "sys.exit(int('torch' in sys.modules or 'matplotlib.pyplot' in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=300).returncode == 0


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
