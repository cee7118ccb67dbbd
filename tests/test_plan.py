"""Which runs a sweep has."""

from pathlib import Path

import pytest

from cascaded.errors import InputError
from cascaded.training.config import RunConfig
from cascaded.training.sweep import plan
from tests.refused import refused

CONFIG = RunConfig()


def test_models_times_lambdas_times_seeds_and_models_without_lambda_once_a_seed(tmp_path):
    jobs = plan(CONFIG, ["cascaded-td", "cascaded-ce"], ["0", "1:0"], [0, 1], tmp_path)
    names = ["cascaded-td-lam0", "cascaded-td-lam1-0", "cascaded-ce"]
    assert [job.folder for job in jobs] == [tmp_path / name / str(seed) for seed in (0, 1) for name in names]
    assert [job.config.lam for job in jobs[:3]] == [0.0, (1.0, 0.0), None]


def test_a_lambda_names_the_same_folder_however_it_is_written():
    names = {plan(CONFIG, ["cascaded-td"], [lam], [0], Path("runs"))[0].name for lam in ("0", "0.0", "0e1")}
    assert names == {"cascaded-td-lam0"}


def test_without_lambdas_every_model_has_its_own():
    assert [job.name for job in plan(CONFIG, ["serial-td", "shallow-deep"], [], [3], Path("runs"))] == [
        "serial-td",
        "shallow-deep",
    ]


@pytest.mark.parametrize(
    ("models", "lams", "seeds", "message"),
    [
        ([], [], [0], "--methods is empty"),
        (["serial-ce"], [], [], "--seeds is empty"),
        (["serial-ce"], [], [1, 1], "--seeds has the same value twice"),
        (["cascaded-td"], ["0", "0.0"], [0], "--lam has the same value twice"),
        (["cascaded-td"], ["2"], [0], r"lam is 2\.0"),
        (["cascade"], [], [0], "there is no method 'cascade'"),
    ],
)
def test_impossible_sweeps_are_refused(models, lams, seeds, message):
    refused(message, plan, CONFIG, models, lams, seeds, Path("runs"))


def test_folds_stand_between_model_and_seed_and_each_holds_out_its_own():
    jobs = plan(CONFIG, ["cascaded-td", "serial-ce"], ["0"], [4], Path("runs"), folds=3)
    names = [f"{model}/fold{number}of3" for model in ("cascaded-td-lam0", "serial-ce") for number in (1, 2, 3)]
    assert [job.folder for job in jobs] == [Path("runs") / name / "4" for name in names]
    assert [job.config.fold for job in jobs] == [(1, 3), (2, 3), (3, 3)] * 2
    words = jobs[1].arguments()
    assert words[words.index("--fold") + 1] == "2/3"
    assert words[words.index("--out") + 1] == str(Path("runs") / names[1])


@pytest.mark.parametrize("folds", [0, 1])
def test_fewer_than_two_folds_are_refused(folds):
    with pytest.raises(InputError, match=f"--folds is {folds}: give at least 2, each is held out once"):
        plan(CONFIG, ["serial-ce"], [], [0], Path("runs"), folds=folds)
