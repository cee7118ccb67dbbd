"""What is missing is said with the command that fills it, and the command does."""

import shlex
import shutil
from dataclasses import replace

import pytest

from cascaded.cli.main import run
from cascaded.errors import InputError
from cascaded.exhibits.exhibition import exhibition
from cascaded.exhibits.gaps import gaps, passed_over, refusals
from cascaded.exhibits.inside import explorers, schedule_section, seen, wanting
from cascaded.exhibits.material import gather
from cascaded.exhibits.robustness import noise_section
from cascaded.exhibits.speed import accuracy_section, lambda_section
from cascaded.results.registry import ANALYSES
from cascaded.traces.activations import save_activations
from tests.made_materials import accuracies, analyse, made_asked, write_answers
from tests.made_traces import made_run, made_trace
from tests.tiny_runs import tiny_run as tiny_run

ODD = "my run's; <b> $HOME"
"""A folder that a shell would take apart."""


def commands(material, *names):
    return [each.command for each in gaps(material, *names)]


def typed(command):
    """A command as a shell would hand it on."""
    program, *words = shlex.split(command)
    assert program == "cascaded"
    run(words)


def test_what_was_recorded_and_not_analysed_is_analysed_by_the_command(tmp_path):
    for model in ("cascaded-td", "cascaded-ce"):
        made_run(tmp_path / ODD / model / "0", {"t": made_trace()}, method=model)
    section = accuracy_section(material := gather([tmp_path / ODD]))
    assert not section.figures
    (missing,) = section.missing
    assert missing.command == f"cascaded analyse {shlex.quote(str(tmp_path / ODD))} --only speed_accuracy"
    assert missing.what == f"speed accuracy: {ANALYSES['speed_accuracy'].about}"
    assert lambda_section(material).missing == section.missing  # first things first
    typed(missing.command)
    filled = accuracy_section(gather([tmp_path / ODD]))
    assert len(filled.figures[0].body.series) == 2
    assert filled.missing == ()


def test_what_was_not_recorded_is_recorded_and_then_analysed_by_the_commands(tiny_run, tmp_path):
    place = shutil.copytree(tiny_run("cascaded-td"), tmp_path / ODD / "0").parent
    (record,) = commands(gather([place]), "persistent_noise")
    assert record == f"cascaded record {shlex.quote(str(place))} --noise occlusion"
    typed(f"{record} --max-images 20 --trials 1 --threads 1")
    (then,) = commands(gather([place]), "persistent_noise")
    assert then == f"cascaded analyse {shlex.quote(str(place))} --only persistent_noise"
    typed(then)
    section = noise_section(gather([place]))
    assert [figure.key for figure in section.figures[1:]] == ["persistent-digits-test"]
    assert not [each for each in section.missing if each.what.startswith("persistent")]


def test_states_are_recorded_by_the_command_and_those_of_other_weights_are_passed_over(tiny_run, tmp_path):
    place = shutil.copytree(tiny_run("cascaded-td"), tmp_path / ODD / "0").parent
    material = gather([place])
    assert schedule_section(material, seen(material)[0]).missing == (wanting(material),)
    command = wanting(material).command
    assert command == f"cascaded record {shlex.quote(str(place))} --activations 40"
    typed(f"{command} --max-images 40 --threads 1")
    found, notes = seen(material)
    (explorer,) = explorers(material, found)
    assert (len(explorer.labels), notes) == (40, ())
    (figure,) = schedule_section(material, found).figures
    assert [name for name, _ in figure.body.schedules] == ["serial", "cascaded"]

    own = found[0].states
    old = place / "0" / "activations" / "old.safetensors"
    save_activations(replace(own, provenance=replace(own.provenance, weights="f" * 64)), old)
    still, (note,) = seen(material)
    now = own.provenance.weights
    assert [each.states.provenance.weights for each in still] == [now]
    assert note == f"{old} is of weights ffffffffffff, the run's last checkpoint has {now[:12]}: record it again"


def test_results_that_are_older_than_the_traces_do_not_ask_for_what_is_there(tmp_path):
    folder = made_run(tmp_path / "0", {"digits-test": made_trace()})
    analyse(folder)
    (record,) = commands(gather([folder]), "learned_stopper")
    assert record == f"cascaded record {folder} --split validation --kernel ews:0.9 --steps 70"
    made_run(folder, {"digits-validation": made_trace(1, split="validation")})
    assert commands(gather([folder]), "learned_stopper") == [f"cascaded analyse {folder} --only learned_stopper"]


def test_commands_name_a_run_where_it_is_now(tmp_path):
    analyse(made_run(tmp_path / "old" / "0", {"digits-test": made_trace()}))
    (tmp_path / "old").rename(tmp_path / "new")
    told = commands(gather([tmp_path / "new"]), *ANALYSES)
    assert told
    assert not [command for command in told if "old" in command]
    assert f"cascaded record {tmp_path}/new --noise occlusion" in told


def test_a_command_is_for_the_runs_that_lack_something(tmp_path):
    one, other = (tmp_path / ODD / name / "0" for name in ("a", "b"))
    write_answers(one, [(made_asked("speed_accuracy"), accuracies([0.5]))])
    made_run(other, {"t": made_trace()}, lam=1.0)
    (missing,) = gaps(gather([tmp_path]), "speed_accuracy")
    assert missing.command == f"cascaded analyse {shlex.quote(str(other))} --only speed_accuracy"
    assert missing.what.endswith("(of 1 of 2 runs)")


def test_serial_networks_are_recorded_without_a_kernel(tmp_path):
    made_run(tmp_path / "td" / "0")
    made_run(tmp_path / "sdn" / "0", method="shallow-deep")
    told = commands(gather([tmp_path]), "selection_latency")
    assert told == [
        f"cascaded record {tmp_path}/sdn/0",
        f"cascaded record {tmp_path}/td/0 --kernel ews:0.9 --steps 70",
    ]


def test_what_no_command_would_fill_is_a_sentence(tmp_path):
    for fold in (1, 2):
        made_run(tmp_path / f"fold{fold}of2" / "0", {"v": made_trace(fold, split="validation")}, fold=(fold, 2))
    (missing,) = gaps(gather([tmp_path]), "learned_stopper")
    assert missing.command == ""
    assert missing.what.endswith("; not asked of folds: record a run that has test images of its own")


def test_data_of_one_level_of_classes_needs_other_runs_and_data_of_two_does_not(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made_run(tmp_path / "digits" / "0", {"t": made_trace()})
    made_run(tmp_path / "cifar" / "0", data="cifar100")
    assert commands(gather([tmp_path / "cifar"]), "taxonomic_compliance") == [f"cascaded record {tmp_path}/cifar"]
    (command,) = commands(gather([tmp_path / "digits"]), "taxonomic_compliance")
    typed(f"{command} --dry-run")
    assert "cascaded-ce" in capsys.readouterr().out


@pytest.mark.parametrize("name", ANALYSES)
def test_of_a_run_with_nothing_recorded_every_analysis_begins_with_a_command(tmp_path, name):
    told = commands(gather([made_run(tmp_path / "0")]), name)
    assert told
    assert all(shlex.split(command)[:2] in (["cascaded", "record"], ["cascaded", "sweep"]) for command in told)


def test_what_was_refused_and_passed_over_is_told(tmp_path):
    folder = made_run(tmp_path / "0", {"a": made_trace(), "b": made_trace(1)})
    file = folder / "traces" / "b.safetensors"
    file.write_bytes(file.read_bytes()[:-4] + b"1234")
    (folder / "traces" / "c.safetensors").write_bytes(b"what is this")
    with pytest.raises(InputError, match="speed_accuracy could not be answered"):
        analyse(folder, "speed_accuracy")
    material = gather([folder])
    (refused,) = refusals(material, "speed_accuracy")
    assert refused.startswith(f"{folder}, b: ")
    assert "is not what was recorded" in refused
    (passed,) = passed_over(material)
    assert passed.startswith(f"{folder}, c: ")
    assert not commands(material, "speed_accuracy")  # there is an answer of the other trace
    assert len(accuracy_section(material).figures) == 1
    leftovers = next(section for section in exhibition([folder]).sections if section.key == "passed-over")
    assert leftovers.notes == (passed,)


def test_lambdas_come_after_what_they_are_compared_in(tmp_path, capsys, monkeypatch):
    asked, answer = made_asked("speed_accuracy"), accuracies([0.5])
    write_answers(tmp_path / "a" / "0", [(asked, answer)])
    (alone,) = lambda_section(gather([tmp_path])).missing
    monkeypatch.chdir(tmp_path)
    typed(f"{alone.command} --dry-run")
    said = capsys.readouterr().out
    assert all(f"cascaded-td-lam{lam} " in said for lam in ("0", "0.5", "1"))
    write_answers(tmp_path / "b" / "0", [(asked, answer)], lam=1.0)
    section = lambda_section(gather([tmp_path]))
    assert not section.missing
    assert [dot.group for dot in section.figures[0].body.dots] == ["0", "1"]
