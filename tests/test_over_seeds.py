"""Lines and dots: means over seeds, and how sure they are, against slow references."""

import math

import numpy as np
import pytest

from cascaded.analysis.statistics import bootstrap_mean, corrected_sem, over_seeds
from cascaded.exhibits.kinds import Dot
from cascaded.exhibits.material import gather
from cascaded.exhibits.over_seeds import dots_of, interval_of, lines_of
from cascaded.results.questions import DRAWS
from tests.made_materials import CE, TD0, TD1, analyse, made_asked, made_material
from tests.made_traces import made_run, made_trace

ASKED = made_asked("speed_accuracy")
RANDOM = np.random.default_rng(3)


def read(result):
    return result["x"], result["y"]


def lines(**told):
    """Lines of models, each with points a seed: `td0={0: (x, y)}`."""
    models = {"td0": TD0, "td1": TD1, "ce": CE}
    answers = {
        models[name]: {seed: [(ASKED, {"x": x, "y": y})] for seed, (x, y) in by_seed.items()}
        for name, by_seed in told.items()
    }
    return {each.model: each for each in lines_of(made_material(answers), ASKED, read)}


def drawn(seeds, points=4):
    return {seed: ([1, 2, 3, 4][:points], RANDOM.random(points).tolist()) for seed in seeds}


def values_of(by_seed):
    return np.array([y for _, y in by_seed.values()])


def test_a_line_is_the_mean_over_seeds_and_its_band_leaves_out_what_seeds_have_in_common():
    td0, ce = drawn((0, 1, 2)), drawn((0, 1, 2))
    found = lines(td0=td0, ce=ce)
    both = np.stack([values_of(td0), values_of(ce)], axis=1)
    expected = [corrected_sem(both[:, :, point]) for point in range(4)]
    for k, name in enumerate(("CascadedTD(0)", "CascadedCE")):
        assert found[name].x == (1, 2, 3, 4)
        assert found[name].y == pytest.approx(both[:, k].mean(axis=0))
        assert found[name].sem == pytest.approx(expected)
        assert found[name].seeds == 3


def test_a_model_with_other_seeds_has_a_band_of_its_own_wherever_it_stands():
    td0, td1, ce = drawn((7,)), drawn((0, 1)), drawn((0, 1))
    found = lines(td0=td0, td1=td1, ce=ce)
    together = np.stack([values_of(td1), values_of(ce)], axis=1)
    assert found["CascadedTD(0)"].sem == ()  # one seed
    for name in ("CascadedTD(1)", "CascadedCE"):
        assert found[name].sem == pytest.approx([corrected_sem(together[:, :, point]) for point in range(4)])
    alone = lines(td0=drawn((0, 1)), td1=(three := drawn((4, 5, 6))))["CascadedTD(1)"]
    assert alone.sem == pytest.approx(values_of(three).std(axis=0, ddof=1) / math.sqrt(3))


def test_a_line_ends_where_the_first_of_its_seeds_ends():
    found = lines(td0={0: ([1, 2, 3], [0.1, 0.2, 0.3]), 1: ([1, 2], [0.3, 0.6])})["CascadedTD(0)"]
    assert (found.x[0], found.x[-1]) == (1, 2)
    assert (found.y[0], found.y[-1]) == pytest.approx((0.2, 0.4))
    assert len(found.sem) == len(found.x)


def test_seeds_with_points_in_other_places_are_brought_to_common_ones():
    one, other = ([1.0, 2.0, 4.0], [0.0, 0.5, 0.9]), ([1.5, 3.0], [0.2, 0.8])
    found = lines(td0={0: one, 1: other})["CascadedTD(0)"]
    assert (found.x[0], found.x[-1], len(found.x)) == (1.5, 3.0, 200)
    for x, y in zip(found.x, found.y, strict=True):
        assert y == pytest.approx((np.interp(x, *one) + np.interp(x, *other)) / 2)


def test_where_one_model_has_nothing_the_others_keep_their_band():
    gap = {seed: (x, [None, *y[1:]]) for seed, (x, y) in drawn((0, 1)).items()}
    td0, ce = drawn((0, 1)), drawn((0, 1))
    found = lines(td1=gap, td0=td0, ce=ce)
    first = np.stack([values_of(td0)[:, 0], values_of(ce)[:, 0]], axis=1)
    assert math.isnan(found["CascadedTD(1)"].sem[0])
    assert found["CascadedCE"].sem[0] == pytest.approx(corrected_sem(first))
    third = np.stack([values_of(each)[:, 2].astype(float) for each in (gap, td0, ce)], axis=1)
    assert found["CascadedCE"].sem[2] == pytest.approx(corrected_sem(third))


def test_a_model_without_points_has_no_line():
    assert list(lines(td0={0: ([], [])}, ce=drawn((0,)))) == ["CascadedCE"]


def right(seed):
    trace = made_trace(seed, kernel="osd")
    return (trace.logits[-1].argmax(-1) == trace.labels).astype(float)


def dot_of(folder):
    material = gather([folder])
    (asked,) = material.rows("speed_accuracy")
    (dot,) = dots_of(material, asked, {"accuracy": "digits"})
    return dot


@pytest.mark.parametrize("count", [1, 2, 3])
def test_dots_are_sure_of_images_for_one_and_two_seeds_and_of_seeds_for_three(tmp_path, count):
    for seed in range(count):
        made_run(tmp_path / "td" / str(seed), {"t": made_trace(seed, kernel="osd")}, seed=seed)
    analyse(tmp_path, "speed_accuracy")
    dot = dot_of(tmp_path)
    all_right = np.array([right(seed) for seed in range(count)])
    assert dot.value == pytest.approx(all_right.mean())
    over_images = bootstrap_mean(all_right.mean(axis=0), DRAWS)
    over_networks = over_seeds(all_right.mean(axis=1)[:, None])[0]
    expected = over_images if count < 3 else over_networks
    assert (dot.low, dot.high) == pytest.approx((expected.low, expected.high))
    how = {1: "40 images, one seed", 2: "40 images, mean of 2 seeds", 3: "3 seeds"}[count]
    assert (dot.model, dot.group, dot.how) == ("CascadedTD(0)", "digits", how)
    if count > 1:  # without a comparison nothing could be drawn: three seeds speak for themselves, two say too little
        (tmp_path / "td" / "comparison.json").unlink()
        alone = dot_of(tmp_path)
        ends = (over_networks.low, over_networks.high) if count > 2 else (None, None)
        assert (alone.low, alone.high) == (pytest.approx(ends) if count > 2 else ends)
        assert alone.how == ("3 seeds" if count > 2 else "two seeds, not compared, no interval")


def test_a_figure_that_one_seed_lacks_has_no_dot():
    answers = {
        TD0: {0: [(ASKED, {"headline": {"m": 1.0}})]},
        TD1: {0: [(ASKED, {"headline": {"m": 2.0}})]},
        CE: {0: [(ASKED, {"headline": {"m": 1.0}})], 1: [(ASKED, {"headline": {"m": None}})]},
    }
    material = made_material(answers)
    found = dots_of(material, ASKED, {"m": "group"}, "last step")
    assert [dot.model for dot in found] == ["CascadedTD(0)", "CascadedTD(1)"]
    assert found[0] == Dot("CascadedTD(0)", "group", 1.0, None, None, "last step", "one seed, no interval")


def test_held_against_nothing_an_interval_has_all_the_variance_between_seeds():
    told = {"low": 1, "high": 2, "n": 3, "alone": {"low": 0, "high": 3}}
    assert interval_of(told) == (1, 2, "3 seeds")
    assert interval_of(told, alone=True) == (0, 3, "3 seeds")
    assert interval_of({**told, "n": 2, "over items": {"low": 4, "high": 5, "n": 7}}, alone=True)[:2] == (4, 5)


def test_intervals_say_what_they_are_over():
    assert interval_of({"low": 1, "high": 2, "n": 3}) == (1, 2, "3 seeds")
    assert interval_of({"low": 1, "high": 2, "n": 40, "how": "200 draws of items"}) == (1, 2, "40 images, one seed")
    items = {"low": 3, "high": 4, "n": 40}
    both = {"low": 1, "high": 2, "n": 2, "over items": items}
    assert interval_of(both) == (3, 4, "40 images, mean of 2 seeds")
    assert interval_of({**both, "n": 3}) == (1, 2, "3 seeds")
    assert interval_of({"low": None, "high": None, "n": 1}) == (None, None, "one seed, no interval")
