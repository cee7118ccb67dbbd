"""The text of a report: findings whose numbers are in the table, and what is missing with the command that fills it."""

import shlex
import shutil
from importlib.resources import files

import pandas as pd
import pytest

from cascaded.cli.main import run
from cascaded.report.findings import context, findings, main_rows
from cascaded.report.missing import missing_analyses
from cascaded.results.analyzed import find_analyzed
from cascaded.results.registry import ANALYSES
from cascaded.results.table import empty, load, results_file
from tests.made_table import made_table
from tests.made_traces import made_run, made_runs
from tests.tiny_runs import tiny_run as tiny_run

ODD = "my run's; <b> $HOME"
"""A folder that a shell would take apart."""
NAMES = [name for name, analysis in ANALYSES.items() if analysis.needs]


def typed(command):
    """Run a command as a shell would, on a few images, with few draws and short trainings."""
    for words in map(shlex.split, command.split(" && ")):
        assert words[0] == "cascaded"
        few = ["--max-images", "40"] if words[1] == "record" else ["--epochs", "3", "--draws", "20"]
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


TD0, CE, EXITS = ("cascaded-td", 0.0), ("cascaded-ce", None), ("serial-td-multihead", 1.0)


def table(*methods, **options):
    return made_table("speed_accuracy", methods=methods, **options)


def percent(rows, method, step):
    own = rows[(rows["metric"] == "accuracy_per_step") & (rows["time"] == "coarse") & (rows["method"] == method)]
    return f"{100 * own[own['x'] == step]['value'].mean():.0f} %"


def test_two_networks_are_compared_at_the_step_of_the_largest_difference_and_at_the_last():
    rows = table(TD0, CE)
    step = max(
        range(1, 9), key=lambda t: int(percent(rows, "cascaded-td", t)[:-2]) - int(percent(rows, "cascaded-ce", t)[:-2])
    )
    early, late = ([percent(rows, method, at) for method in ("cascaded-td", "cascaded-ce")] for at in (step, 9))
    assert findings(rows) == (
        f"After {step} of 9 steps the network trained with TD(0) is right on {early[0]} of the images, the one trained "
        f"with cross-entropy on {early[1]}; at the last step {late[0]} and {late[1]}.",
    )


def test_one_network_is_compared_with_itself():
    (sentence,) = findings(table(("cascaded-td", 0.5)))
    assert sentence.startswith("After 6 of 9 steps the network trained with TD(0.5) is right on ")
    assert sentence.endswith(f"; at the last step on {percent(table(('cascaded-td', 0.5)), 'cascaded-td', 9)}.")


def test_of_several_data_sets_each_has_a_sentence_the_one_with_most_networks_first():
    rows = pd.concat([table(TD0, data="digits"), table(TD0, CE, data="cifar10")], ignore_index=True)
    first, second = findings(rows)
    assert first.startswith("On cifar10, after ")
    assert second.startswith("On digits, after ")
    assert context(rows) == "1,000 test images of cifar10, 3 seeds per network."
    assert [(data, set(own["data"])) for data, own in main_rows(rows).items()] == [
        ("cifar10", {"cifar10"}),
        ("digits", {"digits"}),
    ]


def test_without_results_nothing_was_found():
    assert findings(empty()) == ()
    assert context(empty()) == ""
    assert main_rows(empty()) == {}
