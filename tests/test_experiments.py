"""Experiments and scales: which networks are trained, what is recorded of them, and the commands that do the same."""

import shlex
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import tyro

from cascaded.cli.main import COMMANDS
from cascaded.data import noise
from cascaded.errors import InputError
from cascaded.paper.commands import commands
from cascaded.paper.experiments import (
    AS_SHOWN,
    DEMO,
    EXPERIMENTS,
    NOISES,
    SCRATCH,
    SETS,
    SHIPPED,
    STRONG,
    TERRIER_LAMBDAS,
    Network,
    find_experiment,
)
from cascaded.paper.queue import plan
from cascaded.paper.reproduce import Reproduction
from cascaded.paper.scales import DEMO_SCALE, LAPTOP, PAPER, QUICK_DEMO, SCALES
from cascaded.results.metrics import METRICS
from cascaded.results.registry import ANALYSES
from cascaded.traces.config import RecordingConfig
from cascaded.traces.protocols import check_config
from cascaded.training.config import RECIPES

EVERY = list(dict.fromkeys(network for each in EXPERIMENTS.values() for network in each.networks))
WORKS = [Reproduction(each, scale, Path("out")) for scale in SCALES.values() for each in EXPERIMENTS.values()]
WORKS += [Reproduction(DEMO, scale, Path("out")) for scale in (DEMO_SCALE, QUICK_DEMO)]


def test_the_paper_scale_is_the_papers():
    config = PAPER.config(Network("cascaded-td", 0.0))
    assert (config.width, config.epochs, config.batch_size, config.lr) == (64, 120, 128, 0.1)
    assert PAPER.seeds_of(Network("cascaded-td", 0.0)) == (0, 1, 2, 3, 4)
    assert {network for network in EVERY if not PAPER.has(network)} == {*SCRATCH, *STRONG, *AS_SHOWN}
    assert PAPER.config(Network("cascaded-td", 0.0, "terriers")).batch_size == 32


def test_the_laptop_scale_leaves_out_what_does_not_fit():
    assert {network.data for network in EVERY if LAPTOP.has(network)} == {"cifar10", "cifar100", "terriers"}
    assert LAPTOP.seeds_of(Network("cascaded-td", 0.0)) == (0, 1, 2)
    assert LAPTOP.seeds_of(Network("cascaded-td", 0.0, noise="focus")) == (0, 1, 2)
    assert LAPTOP.seeds_of(Network("cascaded-td", 0.0, folds=10)) == (0,)
    assert LAPTOP.config(Network("cascaded-ce", noise="focus")).epochs == 3
    assert LAPTOP.config(SCRATCH[0]).epochs == LAPTOP.recipe.epochs
    assert (LAPTOP.noise_images, LAPTOP.trials) == (2000, 5)
    assert "tinyimagenet-crop" in LAPTOP.ood_data


@pytest.mark.parametrize("scale", SCALES.values(), ids=lambda scale: scale.name)
def test_every_network_of_a_stage_is_part_of_an_experiment_and_trained_once(scale):
    places = [(network, seed) for stage in scale.stages for network in stage.networks for seed in stage.seeds]
    assert len(set(places)) == len(places)
    assert {network for network, _ in places} <= set(EVERY)


def test_the_strong_network_starts_from_cross_entropy_and_ends_the_first_stage():
    works = [Reproduction(each, LAPTOP, Path("out")) for each in EXPERIMENTS.values()]
    ce, td = plan(works, stages=[1])[-2:]
    assert [task.name for task in (ce, td)] == ["cifar10-strong/cascaded-ce/0", "cifar10-strong/cascaded-td-lam0/0"]
    assert td.after == (ce,)
    assert td.work.config == replace(
        RECIPES["strong"], data="cifar10", lam=0.0, epochs=6, lr=0.05, init_from=str(ce.folder)
    )


def test_the_queue_of_the_laptop_scale_has_its_order():
    def runs(part, names, *seeds):
        return [f"{part}/{name}/{seed}" for seed in seeds for name in names]

    both = ["cascaded-td-lam0", "cascaded-ce"]
    eight = ["cascaded-td-lam0", "cascaded-td-lam0.5", "cascaded-td-lam1", "cascaded-ce", "serial-td-multihead-lam1"]
    eight += ["serial-td-multihead-lam0", "serial-td-lam1", "cascaded-td-multihead-lam0"]
    strong = ["cifar10-strong/cascaded-ce/0", "cifar10-strong/cascaded-td-lam0/0"]
    shown = [*both, "serial-td-multihead-lam1"]

    def noisy(seed):
        return [run for noise in NOISES for run in runs(f"cifar10-{noise}", both, seed)]

    def folds(name):
        return [f"cifar10-10folds/{name}/{each}" for each in (*(f"fold{k}of10/0" for k in range(1, 11)), "folds-0")]

    lams = ["cascaded-td-lam0.25", "cascaded-td-lam0.83"]
    terriers = [f"cascaded-td-lam{lam:g}" for lam in TERRIER_LAMBDAS] + ["serial-td-multihead-lam1"]
    expected = {
        1: [*runs("cifar10", eight, 0), *strong],
        2: runs("cifar10", eight, 1, 2),
        3: [*noisy(0), *runs("cifar10-occlusion-scratch", both, 0), *runs("cifar10-gray", shown, 0)],
        4: runs("cifar100", eight, 0, 1, 2),
        5: [*folds("cascaded-td-lam0"), *folds("cascaded-ce")],
        6: runs("cifar10", lams, 0, 1, 2),
        7: runs("cifar10-resnet34", both, 0),
        8: [run for seed in (1, 2) for run in (*noisy(seed), *runs("cifar10-gray", shown, seed))],
        9: runs("terriers", terriers, 0),
    }
    works = [Reproduction(each, LAPTOP, Path("out")) for each in EXPERIMENTS.values()]
    planned = [(task.stage, task.name) for task in plan(works)]
    assert planned == [(stage, name) for stage, names in expected.items() for name in names]


def test_networks_are_shared_between_experiments():
    jobs = [
        {job.folder: job for network in work.networks for job in work.jobs(network)}
        for work in WORKS
        if work.scale is LAPTOP
    ]
    together = {folder: job for each in jobs for folder, job in each.items()}
    assert len(together) < sum(map(len, jobs)) / 1.5
    assert all(each[folder] == together[folder] for each in jobs for folder in each)


def test_noise_networks_start_from_the_clean_network_of_their_seed():
    work = Reproduction(EXPERIMENTS["noise-persistent"], LAPTOP, Path("out"))
    clean = [job for job in work.all_jobs() if job.config.noise is None]
    assert work.all_jobs()[: len(clean)] == clean
    named = ("cascaded-ce", "cascaded-td-lam0")
    assert {job.folder for job in clean} == {Path(f"out/runs/cifar10/{name}/{n}") for name in named for n in range(3)}
    for network in work.networks:
        for job in work.jobs(network):
            assert job.config.init_from == f"out/runs/cifar10/{network.name}/{job.config.seed}"
    scratch = Reproduction(EXPERIMENTS["noise-scratch"], LAPTOP, Path("out"))
    assert {job.config.init_from for job in scratch.all_jobs()} == {None}


@pytest.mark.parametrize("work", WORKS, ids=lambda work: f"{work.scale.name} {work.experiment.name}")
def test_recordings_are_possible_and_none_is_made_twice(work):
    for network in work.networks:
        recordings = work.scale.recordings(network, work.experiment)
        assert len(set(recordings)) == len(recordings)
        for config in recordings:
            check_config(config)
            assert config.time == "coarse" or not network.is_serial
            assert network in AS_SHOWN or network.noise in (None, config.noise)
            assert config.data not in (network.data,)


def test_serial_ce_is_cascaded_ce_under_the_serial_schedule():
    """On clean images, and on every noisy frame (SerialCEx9): no network is trained for either."""
    assert "serial-ce" not in {network.method for network in EVERY}
    for name in ("speed-accuracy", "deadline", "noise-persistent", "noise-transient"):
        experiment = EXPERIMENTS[name]
        serial = {
            network.method
            for network in experiment.networks
            for config in PAPER.recordings(network, experiment)
            if config.schedule == "serial"
        }
        assert serial == {"cascaded-ce"}
        assert {network.data for network in experiment.networks} == ({"cifar10"} if "noise" in name else set(SETS))


def test_the_stopper_and_metacog_are_trained_on_validation_images_and_tested_on_test_images():
    for name, networks in (("stopping", ["cascaded-td-lam0", "cascaded-ce"]), ("ood", ["cascaded-td-lam0"])):
        experiment = EXPERIMENTS[name]
        assert [network.name for network in experiment.networks] == networks
        recorded = PAPER.recordings(experiment.networks[0], experiment)
        assert {(each.kernel, each.steps, each.max_images) for each in recorded} == {("ews:0.9", 70, None)}
        sets = {} if name == "stopping" else {data: {"validation", "test"} for data in PAPER.ood_data}
        splits = {data: {each.split for each in recorded if each.data == data} for data in {x.data for x in recorded}}
        assert splits == {None: {None, "validation"}, **sets}  # of a run's own data the default is the test split
    sizes = [f"{name}-{size}" for name in ("lsun", "tinyimagenet") for size in ("crop", "resize")]
    assert PAPER.ood_data == ("svhn", *sizes)
    assert PAPER.fit_epochs == 300


def test_the_scales_have_what_the_paper_sweeps():
    terriers = [network for network in EXPERIMENTS["terriers"].networks if network.method == "cascaded-td"]
    assert [network.lam for network in terriers] == [0.0, 0.25, 0.5, 0.55, 0.83, 1.0]
    work = Reproduction(EXPERIMENTS["taxonomy"], PAPER, Path("out"))
    assert all(task.work.deterministic for task in plan([work]))
    assert all(" --deterministic " in line for line in commands(work) if " train " in line)
    assert not any(" --deterministic " in line for line in commands(replace(work, scale=LAPTOP)))
    kernels = {each.kernel for each in EXPERIMENTS["alpha"].recordings}
    assert kernels == {"ews:0.8", "ews:0.95"}  # besides .9
    assert {network.arch for network in EXPERIMENTS["depth"].networks if LAPTOP.has(network)} == {
        "resnet18",
        "resnet34",
    }
    folds = [network for network in EXPERIMENTS["prototypicality"].networks if network.folds]
    assert {(network.folds, LAPTOP.has(network)) for network in folds} == {(10, True)}
    assert {(LAPTOP.config(network).epochs, PAPER.config(network).epochs) for network in folds} == {(12, 120)}
    assert {network.data for network in EXPERIMENTS["images"].networks} == {"cifar10", "cifar100"}
    assert {network.data for network in EXPERIMENTS["run-time"].networks} == set(SETS)
    on_cifar100 = [network for network in EVERY if network.data == "cifar100" and LAPTOP.has(network)]
    assert len(on_cifar100) == 8
    assert {LAPTOP.seeds_of(network) for network in on_cifar100} == {(0, 1, 2)}
    assert {LAPTOP.config(network).max_images for network in on_cifar100} == {None}  # all 500 per class


def test_people_are_compared_on_what_they_were_shown_also_with_networks_trained_with_it():
    for name, networks in (("human", 8), ("human-augmented", 3)):
        experiment = EXPERIMENTS[name]
        assert len(experiment.networks) == networks
        for network in experiment.networks:
            recorded = LAPTOP.recordings(network, experiment)
            assert {(each.noise, each.protocol, each.max_images) for each in recorded} == {
                (None, None, None),
                *((noise, "still", None) for noise in ("gray", "gray:sd=0.04", "gray:sd=0.16")),
                *((f"gray:sigma={sigma:g}", "still", None) for sigma in (1, 3)),
                *((f"gray:sigma={sigma:g},side=190", "still", None) for sigma in (1, 3)),
            }
            assert network.part in ("cifar10", "cifar10-gray")


def test_the_demo_evaluates_the_shipped_networks_on_the_sample():
    work = Reproduction(DEMO, DEMO_SCALE, Path("out"))
    folders = [folder for network in work.networks for folder in work.folders(network)]
    assert folders[: len(SHIPPED)] == [Path("out/runs") / name / "0" for name in SHIPPED]
    recordings = work.scale.recordings(DEMO.networks[0], DEMO)
    own = [config for config in recordings if config.data == "cifar10-sample"]
    assert {(config.time, config.split, config.noise) for config in own} == {
        ("coarse", None, None),
        ("fine", None, None),
        ("fine", "validation", None),
        ("coarse", None, "occlusion"),
    }
    assert {config.data for config in recordings if config not in own} == {"digits"}
    assert [config.activations for config in own if config.activations] == [20]


def test_the_commands_give_the_same_configurations():
    parsed = cache(lambda *words: tyro.cli(RecordingConfig, args=words))  # most experiments share their recordings
    for work in WORKS:
        if work.experiment is DEMO:
            continue
        lines = [shlex.split(line.partition("cascaded ")[2]) for line in commands(work)]
        assert all(words[0] in COMMANDS for words in lines)
        recorded = [parsed(*words[2:]) for words in lines if words[0] == "record"]
        wanted = [each for network in work.networks for each in work.scale.recordings(network, work.experiment)]
        assert recorded == wanted


def test_every_metric_and_analysis_is_known():
    for experiment in [*EXPERIMENTS.values(), DEMO]:
        assert set(experiment.analyses) <= set(ANALYSES)
        assert set(experiment.metrics) <= set(METRICS)
        assert experiment is DEMO or find_experiment(experiment.name) is experiment


def test_the_names_of_the_noises_are_those_of_the_data():
    assert tuple(noise.NOISES) == NOISES


def test_an_unknown_name_is_refused():
    with pytest.raises(InputError, match=r"there is no experiment 'table-lamda': did you mean table-lambda"):
        find_experiment("table-lamda")


def test_no_train_counts_trained_networks_only(tmp_path):
    work = Reproduction(EXPERIMENTS["table-lambda"], LAPTOP, tmp_path)
    assert work.networks
    assert replace(work, no_train=True).networks == []
