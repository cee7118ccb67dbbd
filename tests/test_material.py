"""What some runs have to show: names, what belongs together, and comparisons that are still of these very answers."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cascaded.errors import InputError
from cascaded.exhibits.material import gather, role
from cascaded.exhibits.names import spoken
from tests.made_materials import (
    CE,
    TD0,
    TD1,
    accuracies,
    analyse,
    made_asked,
    made_material,
    write_answers,
    write_comparison,
)
from tests.made_traces import made_run, made_trace

ASKED = made_asked("speed_accuracy")
ANSWER = accuracies([0.2, 0.5, 0.9])


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("cascaded-td(0)", "CascadedTD(0)"),
        ("cascaded-td(0:0.5:1)", "CascadedTD(0:0.5:1)"),
        ("cascaded-td-multihead(0)", "CascadedTD(0)-MultiHead"),
        ("cascaded-ce", "CascadedCE"),
        ("serial-td(1)", "SerialTD(1)"),
        ("serial-ce", "SerialCE"),
        ("serial-td-multihead(1)", "Shallow-Deep"),
        ("serial-td-multihead(0.5)", "Shallow-Deep (0.5)"),
        ("shallow-deep(1)", "Shallow-Deep, own features"),
        ("cascaded-td(0), serial", "CascadedTD(0), serial"),
        ("cascaded-ce narrow/<b>\nx", "CascadedCE narrow/<b>\nx"),
        ("somebody's own(3)", "somebody's own(3)"),
        ("", ""),
    ],
)
def test_models_are_called_as_the_paper_calls_them(label, name):
    assert spoken(label) == name


def test_runs_that_differ_in_their_seed_alone_are_one_condition(tmp_path):
    for seed in (0, 1):
        write_answers(tmp_path / "td" / str(seed), [(ASKED, ANSWER)], seed=seed)
    write_answers(tmp_path / "ce" / "0", [(ASKED, ANSWER)], method="cascaded-ce")
    made_run(tmp_path / "bare" / "0", lam=1.0)
    material = gather([tmp_path])
    assert material.names == {
        "cascaded-ce": "CascadedCE",
        "cascaded-td(0)": "CascadedTD(0)",
        "cascaded-td(1)": "CascadedTD(1)",
    }
    answers = material.answers(ASKED.row)
    assert {label: list(by_seed) for label, by_seed in answers.items()} == {
        "cascaded-td(0)": [0, 1],
        "cascaded-ce": [0],
    }
    assert len(material.subjects) == 4


def test_validation_images_are_shown_of_models_that_have_seen_no_others_of_the_data():
    held = replace(ASKED, split="validation", what="held out", shown="held")
    alone = made_asked("speed_accuracy", data="mine", split="validation")
    other = made_asked("selection_latency", split="validation")
    every = [(each, ANSWER) for each in (held, ASKED, alone, other)]
    material = made_material({TD0: {0: every}})
    assert material.rows("speed_accuracy") == [ASKED, alone]
    assert material.rows("selection_latency") == [other]
    folds = made_material({TD0: {0: every}, CE: {0: [(held, ANSWER)]}})
    assert folds.rows("speed_accuracy") == [ASKED, alone, held]


def test_whole_steps_come_before_fine_ones_and_a_noise_can_be_asked_for():
    fine = made_asked("speed_accuracy", kernel="ews:0.9", steps=70)
    serial = made_asked("speed_accuracy", data="other", kernel="none", schedule="serial")
    foggy, blurred = (made_asked("persistent_noise", noise=name) for name in ("perlin", "focus"))
    material = made_material({TD0: {0: [(each, ANSWER) for each in (fine, ASKED, serial, foggy, blurred)]}})
    assert material.rows("speed_accuracy") == [ASKED, serial, fine]
    assert material.rows("persistent_noise", "focus") == [blurred]
    assert set(material.rows("persistent_noise")) == {foggy, blurred}


def test_a_role_is_a_model_and_its_lambda_and_another_one_under_another_schedule():
    serial = replace(ASKED, schedule="serial")
    material = made_material({TD1: {0: [(ASKED, ANSWER), (serial, ANSWER)]}, CE: {0: [(ASKED, ANSWER)]}})
    assert {each.label: role(each) for each in material.conditions} == {
        "cascaded-td(1)": ("cascaded-td", "1"),
        "cascaded-td(1), serial": ("cascaded-td, other schedule", "1"),
        "cascaded-ce": ("cascaded-ce", ""),
    }


def test_tables_are_those_of_what_is_shown():
    held = replace(ASKED, split="validation", what="held out")
    about = {"analysis": "speed_accuracy", "metric": "accuracy", "images": ASKED.images, "shown": ASKED.shown}
    tables = [{**about, "of": each.what} for each in (ASKED, held)]
    material = made_material({TD0: {0: [(ASKED, ANSWER), (held, ANSWER)]}}, tables)
    assert material.tables("speed_accuracy", "accuracy") == [tables[0]]
    assert material.tables("speed_accuracy", "area threshold") == []


def two_runs(folder):
    write_answers(folder / "td" / "0", [(ASKED, ANSWER)])
    write_answers(folder / "ce" / "0", [(ASKED, ANSWER)], method="cascaded-ce")
    return write_comparison(folder, [{"a": "table"}])


def test_a_comparison_of_these_very_answers_is_used(tmp_path):
    two_runs(tmp_path)
    material = gather([tmp_path])
    assert (material.uncompared, material.comparison["tables"]) == ("", [{"a": "table"}])


def test_what_analyse_writes_is_used_until_a_run_is_analysed_again(tmp_path):
    for model in ("cascaded-td", "cascaded-ce"):
        made_run(tmp_path / model / "0", {"t": made_trace(items=8)}, method=model)
    analyse(tmp_path, "speed_accuracy")
    assert gather([tmp_path]).uncompared == ""
    made_run(tmp_path / "cascaded-td" / "0", {"t": made_trace(5, items=8)})
    analyse(tmp_path / "cascaded-td" / "0", "speed_accuracy")
    material = gather([tmp_path])
    assert material.comparison == {}
    file = tmp_path / "comparison.json"
    assert material.uncompared == f"{tmp_path}/cascaded-td/0 was analysed again after {file} was written"
    analyse(tmp_path, "speed_accuracy")
    assert gather([tmp_path]).uncompared == ""


def test_a_missing_comparison_and_one_run_alone_are_told(tmp_path):
    two_runs(tmp_path).unlink()
    assert gather([tmp_path]).uncompared == "these runs have not been compared"
    assert gather([tmp_path / "td"]).uncompared == "there is one run"


def test_a_comparison_of_other_runs_is_not_used(tmp_path):
    file = two_runs(tmp_path)
    write_answers(tmp_path / "td1" / "0", [(ASKED, ANSWER)], lam=1.0)
    assert gather([tmp_path]).uncompared == f"{file} does not know {tmp_path}/td1/0"
    assert gather([tmp_path / "td", tmp_path / "ce"]).uncompared == ""  # the two it knows


def test_a_comparison_in_which_runs_have_other_names_or_more_seeds_is_not_used(tmp_path):
    write_answers(tmp_path / "wide" / "td" / "0", [(ASKED, ANSWER)], max_images=100)
    two_runs(tmp_path)  # there are two kinds of cascaded-td(0): both carry their folders
    few = gather([tmp_path / "td", tmp_path / "ce"])
    assert few.comparison == {}
    assert few.uncompared == f"{tmp_path}/comparison.json is of other runs beside those of cascaded-td(0)"
    write_answers(tmp_path / "ce" / "1", [(ASKED, ANSWER)], method="cascaded-ce", seed=1)
    write_comparison(tmp_path)
    assert gather([tmp_path]).uncompared == ""
    seeds = gather([tmp_path / "ce" / "0", tmp_path / "wide", tmp_path / "td"])
    assert seeds.uncompared.endswith("is of other runs beside those of cascaded-ce")


def test_a_comparison_moves_with_its_runs_and_knows_them_by_any_spelling(tmp_path, monkeypatch):
    two_runs(tmp_path / "old")
    (tmp_path / "old").rename(tmp_path / "new")
    assert gather([tmp_path / "new"]).comparison["tables"] == [{"a": "table"}]
    monkeypatch.chdir(tmp_path)
    assert gather([Path("new/td"), tmp_path / "new" / "ce"]).uncompared == ""


@pytest.mark.parametrize("change", ["", "{", "[]", '{"format": 7, "made_from": {}}', '{"format": 1, "made_from": 3}'])
def test_a_damaged_comparison_is_told_in_a_sentence(tmp_path, change):
    file = two_runs(tmp_path)
    file.write_text(change)
    with pytest.raises(InputError, match=r"comparison.json is (not JSON|no comparison that this cascaded reads)"):
        gather([tmp_path])


@pytest.mark.parametrize("keep", [0, 1, 30, 200])
def test_results_that_were_cut_off_are_told_in_a_sentence(tmp_path, keep):
    two_runs(tmp_path)
    file = tmp_path / "td" / "0" / "results.json"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(InputError, match=r"results.json is not JSON .*: it is damaged or something else"):
        gather([tmp_path])


def test_folders_are_told_as_one_types_them():
    places = (Path("runs/my run"), Path("it's; here"))
    assert replace(made_material({TD0: {0: []}}), places=places).words == "'runs/my run' 'it'\"'\"'s; here'"


def test_answers_of_a_later_version_and_of_an_older_one_do_not_stop_the_rest(tmp_path):
    folder = write_answers(tmp_path / "0", [(ASKED, ANSWER)])
    told = json.loads((folder / "results.json").read_text())
    told["analyses"]["speed_accuracy"]["t0"]["asked"]["colour"] = "red"
    told["analyses"]["speed_accuracy"]["old"] = {"made_from": {}, "result": ANSWER}
    (folder / "results.json").write_text(json.dumps(told))
    material = gather([folder])
    assert material.rows("speed_accuracy") == [ASKED]
    assert material.answers(ASKED.row) == {"cascaded-td(0)": {0: ANSWER}}


@pytest.mark.parametrize("change", [{"asked": {}}, {"asked": 3}, {"result": {}}, {"result": {"headline": 3}}])
def test_answers_that_were_changed_are_told_in_a_sentence(tmp_path, change):
    folder = write_answers(tmp_path / "0", [(ASKED, ANSWER)])
    told = json.loads((folder / "results.json").read_text())
    told["analyses"]["speed_accuracy"]["t0"] |= change
    (folder / "results.json").write_text(json.dumps(told))
    message = r"was changed, speed_accuracy is not what cascaded writes any more: .*cascaded analyse"
    with pytest.raises(InputError, match=message):
        gather([tmp_path])
