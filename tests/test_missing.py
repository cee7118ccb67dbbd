"""What is missing is named with the command that fills it, and the command does."""

import shlex
import shutil
from importlib.resources import files

import pytest

from cascaded.cli.main import run
from cascaded.report.missing import missing_activations, missing_analyses
from cascaded.results.analyzed import find_analyzed
from cascaded.results.registry import ANALYSES
from cascaded.results.table import load, results_file
from tests.made_runs import made_run, made_runs
from tests.made_table import made_table
from tests.tiny_runs import tiny_run as tiny_run

ODD = "my run's; <b> $HOME"
"""A folder that a shell would take apart."""
NAMES = [name for name, analysis in ANALYSES.items() if analysis.needs]


def typed(command):
    """Run a command as a shell would, on a few images."""
    for words in map(shlex.split, command.split(" && ")):
        assert words[0] == "cascaded"
        few = ["--max-images", "40"] if words[1] == "record" else []
        run([*words[1:], *few, *(["--trials", "1"] if "--noise" in words else [])])


def missing(place, *names):
    return missing_analyses(find_analyzed([place]), [place], names)


@pytest.fixture(scope="module")
def place(tiny_run, tmp_path_factory):
    return shutil.copytree(tiny_run("cascaded-td"), tmp_path_factory.mktemp("missing") / ODD / "0").parent


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("taxonomic_compliance", "human")])
def test_every_command_fills_its_gap(place, name):
    (gap,) = missing(place, name)
    assert gap.what == ANALYSES[name].label
    typed(gap.command)
    assert missing(place, name) == ()
    assert set(load(place, name)["analysis"]) == {name}


def test_activations_are_recorded_by_the_command(place):
    typed(missing_activations([place]).command)
    assert list((place / "0" / "activations").glob("*.safetensors"))


def test_an_analysis_that_the_data_does_not_allow_has_a_reason_and_no_command(place):
    (gap,) = missing(place, "taxonomic_compliance")
    assert gap.command == ""
    assert "two levels of classes" in gap.what
    (gap,) = missing(place, "human")
    assert gap.command == ""
    assert gap.what.endswith("people were shown the classes of cifar10, and digits has others")


def test_what_people_were_shown_is_recorded_by_one_command(tmp_path):
    network = tmp_path / "cifar10-ce"
    shutil.copytree(str(files("cascaded") / "hub" / "networks" / network.name), network)
    run(["record", str(network), "--data", "cifar10-sample", "--max-images", "40"])
    (gap,) = missing(network, "human")
    record = f"cascaded record {network} --human --data cifar10-sample"
    assert gap.command == f"{record} && cascaded analyze {network} --only human"
    typed(gap.command)
    assert missing(network, "human") == ()
    assert set(load(network, "human")["metric"]) >= {"fit_error", "ceiling_error"}


def test_a_command_is_for_the_runs_that_lack_something(tmp_path):
    made_runs(tmp_path, made_table("speed_accuracy", methods=(("cascaded-td", 0.0),), seeds=(0,)))
    other = made_run(tmp_path / ODD / "0", lam=1.0)
    (gap,) = missing(tmp_path, "speed_accuracy")
    folder = shlex.quote(str(other))
    assert gap.command == f"cascaded record {folder} && cascaded analyze {folder} --only speed_accuracy"
    assert gap.what.endswith("(1 of 2 runs)")
    assert not results_file(other, "speed_accuracy").exists()
