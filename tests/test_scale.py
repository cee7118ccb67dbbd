"""Two scales, one code; and the figures of the paper that stand beside ours."""

import shlex
from dataclasses import replace
from pathlib import Path

import tyro

from cascaded.exhibits import claimed, published
from cascaded.paper.commands import commands_for
from cascaded.paper.experiments import ACCURACY, FORMS, ITEMS, find_item
from cascaded.paper.network import Network
from cascaded.paper.paper import EVERY_FRAME, LAST, TD0, paper_says
from cascaded.paper.reproduce import Work
from cascaded.paper.rows import rows_of, shown_by
from cascaded.paper.scales import SCALES
from cascaded.paper.showings import shown_to
from cascaded.results.groups import Condition, Group
from cascaded.traces.config import RecordingConfig
from cascaded.traces.protocols import check_config
from cascaded.training.config import RECIPES
from tests.made_materials import made_asked, made_material

PAPER, LAPTOP = SCALES["paper"], SCALES["laptop"]
EVERY = [network for item in ITEMS.values() for network in item.networks]


def test_the_papers_scale_is_the_papers_recipe_with_five_seeds():
    assert all(PAPER.seeds_of(network) == (0, 1, 2, 3, 4) for network in EVERY)
    for network in EVERY:
        batch = 32 if network.data == "terriers" else 128
        config = PAPER.config(network)
        assert config == replace(RECIPES["paper"], data=network.data, noise=network.noise, batch_size=batch)


def test_all_networks_of_an_item_are_trained_alike_at_every_scale():
    for scale in SCALES.values():
        for item in ITEMS.values():
            recipes = {(n.data, n.noise): set() for n in item.networks}
            for network in item.networks:
                recipes[network.data, network.noise].add(scale.config(network))
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
    assert {str(job.folder) for job in work.first()} == {job.config.init_from for job in work.asked()}
    assert set(work.first()) <= set(Work(ITEMS["table-lambda"], LAPTOP, Path("out")).asked())
    paper = Work(ITEMS["noise-persistent"], PAPER, Path("out"))
    assert not paper.first()
    assert {job.config.init_from for job in paper.asked()} == {None}


def test_networks_are_shared_between_items():
    works = [Work(item, LAPTOP, Path("out")) for item in ITEMS.values()]
    asked = [set(work.asked()) for work in works]
    together = set().union(*asked)
    assert len(together) < sum(map(len, asked)) / 1.5
    folders = {job.folder for job in together}
    assert len(folders) == len(together)


def test_a_smaller_scale_is_the_same_with_less_of_everything():
    small = LAPTOP.smaller(data_limit=200, epochs=1, seeds=(3,))
    options = small.config(Network("cascaded-td", "0", noise="focus"))
    assert (options.max_images, options.epochs, options.noise) == (200, 1, "focus")
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
                assert all(check_config(each) is None for each in shown)
                if network.is_serial:
                    assert {each.kernel for each in shown} <= {"osd"}


def test_the_papers_commands_are_of_the_papers_recipe():
    lines = commands_for(Work(ITEMS["table-lambda"], PAPER, Path("out/paper")))
    assert lines[0] == (
        "cascaded train --recipe paper --data cifar10 --lam 0.0 --out out/paper/runs/cifar10/cascaded-td-lam0 --resume"
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
                words = shlex.split(line)[3:]
                assert tyro.cli(RecordingConfig, args=words) == each


def test_the_papers_effects_are_those_worked_out_by_hand():
    """Differences taken by hand from the tables of the paper."""
    told = {(test.told, test.b in (claimed.CE, claimed.TD1)): test.paper for test in claimed.TESTS}
    final = {data: effects["0"] for data, effects in claimed.FINAL_EFFECTS.items()}
    assert final == {"cifar10": "+2.47", "cifar100": "+4.28", "tinyimagenet": "+0.88", "terriers": "+7.40"}
    assert told["rho of negative latency with C-score", True] == "+0.163"
    assert told["rho of negative latency with human agreement", True] == "-0.011, no difference"
    assert told["accuracy under lasting occlusion", True] == "+7.03"
    assert told["accuracy under lasting resolution", False] == "+3.66"
    assert told["drop saved under passing occlusion", True] == "+7.32"
    assert told["drop saved under passing focus", False] == "+0.62"
    assert [told[f"AUROC won, read as {form}", False] for form in FORMS] == ["+1.4", "+2.2", "+3.1", "+0.6"]


def test_an_items_table_finds_the_papers_figure():
    assert paper_says(ACCURACY.told, "cifar100", LAST) == 65.56
    assert paper_says(ITEMS["noise-persistent"].measures[0].told, "rotation", EVERY_FRAME) == 89.11
    assert paper_says(ITEMS["noise-transient"].measures[0].told, "occlusion", TD0) == 0.93
    assert paper_says(ITEMS["taxonomy"].measures[0].told, "cifar100", LAST) == 8
    assert paper_says("FPR at 95 % TPR, logits, all steps", "cifar10", TD0) == 13.7
    assert paper_says(ACCURACY.told, "terriers", "Shallow-Deep") == 63.2
    assert paper_says("AUROC, without MetaCog", "cifar10", TD0) == 89.5
    assert paper_says(ACCURACY.told, "svhn", TD0) is None


def test_where_folds_have_judged_held_out_images_single_runs_do_not_stand_beside_them():
    asked = made_asked("prototypicality", split="validation", kernel="ews:0.9")
    material = made_material({("cascaded-td", 0.0): {0: [(asked, {"headline": {"rho centrality": 0.5}})]}})
    (single,) = material.conditions
    (seed, answered), *_ = single.group.by_seed.items()
    subject = replace(answered.subject, runs=(Path("fold1of2/0"), Path("fold2of2/0")))
    folds = Group("folds", {seed: replace(answered, subject=subject)})
    both = replace(material, conditions=(single, Condition("folds", folds, single.by_seed)))
    item = ITEMS["prototypicality"]
    assert [row.value for row in rows_of(item, shown_by(item, material), "cifar10")] == [0.5]
    assert [row.model for row in rows_of(item, shown_by(item, both), "cifar10")] == ["folds"]


def test_the_docs_print_the_papers_figures_as_they_stand_in_the_code():
    page = (Path(__file__).parent.parent / "docs" / "experiments.md").read_text().replace("*", "")

    def has(name, *cells):
        return f"\n| {' | '.join((name, *cells))} |\n" in page

    for name in ("CIFAR-10", "CIFAR-100", "TinyImageNet"):
        data = name.lower().replace("-", "")
        final = (*published.FINAL[data].values(), published.FINAL_CE[data])
        assert has(name, *(f"{value:.2f}" for value in final))
    for measure, values in published.RHO.items():
        assert has(measure, *(f"{value:.3f}".removeprefix("0") for value in values))
    for noise, lasting in published.PERSISTENT.items():
        passing = (f"{value:.2f}".removeprefix("0") for value in published.TRANSIENT[noise])
        name = "Perlin" if noise == "perlin" else noise
        assert has(name, " / ".join(f"{value:.2f}" for value in lasting), " / ".join(passing))
    names = {"msp": "highest probability"}
    for form in FORMS:
        tables = (published.AUROC, published.FPR)
        assert has(names.get(form, form), *(" / ".join(f"{value:.1f}" for value in table[form]) for table in tables))


def test_every_measure_of_every_item_is_a_figure_that_its_analysis_gives():
    from cascaded.results.registry import ANALYSES

    for item in ITEMS.values():
        assert set(item.analyses) <= set(ANALYSES)
        assert find_item(item.name) is item
