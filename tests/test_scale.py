"""Two scales, one code; and the paper's figures, which are told twice and must agree."""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest
import tyro

from cascaded.exhibits import claimed
from cascaded.experiments.carry_out import Work
from cascaded.experiments.commands import commands_for
from cascaded.experiments.items import ITEMS, LAMBDAS, find_item
from cascaded.experiments.network import Network
from cascaded.experiments.paper import EVERY_FRAME, LAST, TD0, paper_says
from cascaded.experiments.scale import SCALES
from cascaded.experiments.showings import shown_to
from cascaded.learning.recipe import RECIPES
from cascaded.recording.command import Showing

PAPER, LAPTOP = SCALES["paper"], SCALES["laptop"]
EVERY = [network for item in ITEMS.values() for network in item.networks]


def test_the_papers_scale_is_the_papers_recipe_with_five_seeds():
    assert all(PAPER.seeds_of(network) == (0, 1, 2, 3, 4) for network in EVERY)
    for network in EVERY:
        batch = 32 if network.data == "terriers" else 128
        spec = PAPER.options(network).spec(network.model, network.lam, 0)
        assert spec.recipe == replace(RECIPES["paper"], noise=network.noise, batch=batch)


def test_all_networks_of_an_item_are_trained_alike_at_every_scale():
    for scale in SCALES.values():
        for item in ITEMS.values():
            recipes = {(n.data, n.noise): set() for n in item.networks}
            for network in item.networks:
                spec = scale.options(network).spec(network.model, network.lam, 0)
                recipes[network.data, network.noise].add((spec.recipe, spec.limit))
            assert all(len(each) == 1 for each in recipes.values()), item.name


def test_a_laptop_trains_the_networks_that_claims_rest_on_twice():
    assert LAPTOP.seeds_of(Network("cascaded-td", "0")) == (0, 1)
    assert LAPTOP.seeds_of(Network("cascaded-td", "1", "cifar100")) == (0, 1)
    assert LAPTOP.seeds_of(Network("cascaded-ce")) == (0, 1)
    assert LAPTOP.seeds_of(Network("cascaded-td", "0.5")) == (0,)
    assert LAPTOP.seeds_of(Network("cascaded-td", "0", noise="focus")) == (0,)
    assert not LAPTOP.has(Network("cascaded-td", "0", "tinyimagenet"))
    assert not LAPTOP.has(Network("cascaded-td", "0", folds=10))


def test_on_a_laptop_networks_that_learn_a_noise_begin_where_those_without_have_ended():
    work = Work(ITEMS["noise-persistent"], LAPTOP, Path("out"))
    assert {job.folder for job in work.first()} == {options.start for options in work.asked().values()}
    assert set(work.first()) <= set(Work(ITEMS["table-lambda"], LAPTOP, Path("out")).asked())
    paper = Work(ITEMS["noise-persistent"], PAPER, Path("out"))
    assert not paper.first()
    assert {options.start for options in paper.asked().values()} == {None}


def test_networks_are_shared_between_items():
    works = [Work(item, LAPTOP, Path("out")) for item in ITEMS.values()]
    asked = [set(work.asked()) for work in works]
    together = set().union(*asked)
    assert len(together) < sum(map(len, asked)) / 1.5
    folders = {job.folder for job in together}
    assert len(folders) == len(together)


def test_a_smaller_scale_is_the_same_with_less_of_everything():
    small = LAPTOP.smaller(data_limit=200, epochs=1, seeds=(3,))
    options = small.options(Network("cascaded-td", "0", noise="focus"))
    assert (options.limit, options.epochs, options.noise) == (200, 1, "focus")
    assert (small.test, small.fine, small.held_out, small.other) == (200,) * 4
    assert small.noisy == 20
    assert small.seeds_of(Network("cascaded-td", "0")) == small.seeds_of(Network("serial-td", "1")) == (3,)
    assert LAPTOP.smaller() == LAPTOP
    assert all(small.has(network) == LAPTOP.has(network) for network in EVERY)


def test_serial_networks_are_shown_nothing_in_fine_time_and_nothing_is_shown_twice():
    for scale in SCALES.values():
        for item in ITEMS.values():
            for network in item.networks:
                shown = shown_to(network, item, scale)
                assert len(set(shown)) == len(shown)
                assert all(each.showing.check() is None for each in shown)
                if network.is_serial:
                    assert {each.showing.kernel for each in shown} <= {"osd"}


def test_the_papers_commands_are_of_the_papers_recipe():
    lines = commands_for(Work(ITEMS["table-lambda"], PAPER, Path("out/paper")))
    assert lines[0] == (
        "cascaded train --data cifar10 --recipe paper --model cascaded-td --lam 0 --seed 0 "
        "--out out/paper/runs/cifar10/cascaded-td-lam0 --resume"
    )
    assert "cascaded record out/paper/runs/cifar10/cascaded-td-lam0.25" in lines
    assert lines[-1] == "cascaded analyse out/paper/runs/tinyimagenet --only speed_accuracy"


def test_what_commands_record_is_what_networks_are_shown():
    for scale in SCALES.values():
        for item in ITEMS.values():
            work = Work(item, scale, Path("out"))
            lines = [line for line in commands_for(work) if line.startswith("cascaded record ")]
            shown = [each for network in work.networks for each in shown_to(network, item, scale)]
            for line, each in zip(lines, shown, strict=True):
                words = [word for word in shlex.split(line)[3:] if word != "--embeddings"]
                assert tyro.cli(Showing, args=words) == each.showing
                assert line.endswith(" --embeddings") == each.embeddings


def effect(what, of, one, other):
    a, b = paper_says(what, of, one), paper_says(what, of, other)
    assert a is not None
    assert b is not None
    return a - b


def test_the_papers_figures_and_its_effects_agree():
    final = ITEMS["table-lambda"].measures[0].told
    for data in ("cifar10", "cifar100", "tinyimagenet"):
        for lam in LAMBDAS[:-1]:
            told = float(claimed.FINAL[data][lam])
            assert effect(final, data, f"CascadedTD({lam})", "CascadedTD(1)") == pytest.approx(told, abs=0.006)
    assert effect(final, "terriers", "CascadedTD(0.55)", "CascadedTD(1)") == pytest.approx(9.3)
    for name, effects, sign in (
        ("noise-persistent", claimed.PERSISTENT, 1),
        ("noise-transient", claimed.TRANSIENT, -1),
    ):
        for noise, told in effects.items():
            for other, each in zip((LAST, EVERY_FRAME), told, strict=True):
                found = sign * effect(ITEMS[name].measures[0].told, noise, TD0, other)
                assert found == pytest.approx(float(each), abs=0.006)
    for form, gain in claimed.GAINS.items():
        last, every = (paper_says(f"AUROC, {form}, {steps}", "cifar10", TD0) for steps in ("last step", "all steps"))
        assert every - last == pytest.approx(float(gain), abs=0.051)
    for measure in ("centrality", "C-score"):
        assert effect(f"rho with {measure}", "cifar10", TD0, LAST) == pytest.approx(float(claimed.RHOS[measure]))


def test_every_measure_of_every_item_is_a_figure_that_its_analysis_gives():
    from cascaded.results.registry import ANALYSES

    for item in ITEMS.values():
        assert set(item.analyses) <= set(ANALYSES)
        assert find_item(item.name) is item
