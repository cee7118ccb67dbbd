"""What the traces of a run allow is answered, once, and what is missing is told."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cascaded import analysis
from cascaded.errors import CascadedWarning, InputError
from cascaded.results import answers
from cascaded.results.answers import answer_all, read_results
from cascaded.results.questions import Settings
from cascaded.results.registry import ANALYSES, chosen
from cascaded.results.subjects import find_subjects
from tests.made_traces import made_run, made_trace, noisy_trace, with_facts

QUICK = Settings(epochs=1)
TEST = made_trace(embeddings=True, coarse_of=(0, 0, 1, 1), coarse_classes=("small", "large"))
VALIDATION = made_trace(1, split="validation")


def strangers(split, seed):
    return made_trace(seed, good=0.0, data="svhn", split=split, in_distribution=False)


EVERYTHING = {
    "digits-test": TEST,
    "digits-validation": VALIDATION,
    "svhn-test": strangers("test", 2),
    "svhn-validation": strangers("validation", 3),
    "digits-test-osd-focus-persistent": noisy_trace(),
    "digits-test-osd-focus-transient-1": noisy_trace("transient", 1),
    "digits-test-osd-focus-transient-2": noisy_trace("transient", 2),
}


def subject(tmp_path, traces):
    return find_subjects([made_run(tmp_path / "0", traces)])[0]


def ask(who, names=tuple(ANALYSES), settings=QUICK, again=False):
    return {(question.analysis, question.of): result for question, result in answer_all(who, names, settings, again)}


def test_every_analysis_is_a_function_of_the_same_name():
    for name in chosen([]):
        assert callable(getattr(analysis, name))


def test_everything_that_the_traces_allow_is_answered(tmp_path):
    who = subject(tmp_path, EVERYTHING)
    told = ask(who)
    assert {name for name, _ in told} == set(ANALYSES)
    assert ("transient_noise", "digits-test-osd-focus-transient") in told
    assert ("speed_accuracy", "svhn-test") not in told
    written = read_results(who.file)
    assert written["missing"] == {}
    assert written["analyses"]["out_of_distribution"]["digits-test"]["made_from"].keys() == {
        "digits-test",
        "digits-validation",
        "svhn-test",
        "svhn-validation",
    }
    json.dumps(written, allow_nan=False)


def test_answers_are_those_of_the_functions(tmp_path):
    told = ask(subject(tmp_path, EVERYTHING))
    latency = analysis.selection_latency(TEST)
    expected = {
        ("speed_accuracy", "digits-test"): analysis.speed_accuracy(TEST),
        ("selection_latency", "digits-test"): latency,
        ("taxonomic_compliance", "digits-test"): analysis.taxonomic_compliance(TEST),
        ("persistent_noise", "digits-test-osd-focus-persistent"): analysis.persistent_noise(noisy_trace()),
        ("prototypicality", "digits-test"): analysis.prototypicality(
            TEST, {"centrality": analysis.centrality(TEST)}, latency=latency.steps
        ),
    }
    for key, result in expected.items():
        headline = {name: None if np.isnan(value) else value for name, value in result.headline.items()}
        assert told[key]["headline"] == pytest.approx(headline), key
    assert told["speed_accuracy", "digits-test"]["in operations"]["unit"] == "operations"


def test_intervals_hold_the_figure_they_are_of(tmp_path):
    for result in ask(subject(tmp_path, EVERYTHING)).values():
        for name, interval in result["intervals"].items():
            if interval["low"] is not None:
                assert interval["low"] <= interval["value"] <= interval["high"]
                assert interval["value"] == pytest.approx(result["headline"][name])


def test_what_is_missing_is_told_with_the_command_that_brings_it(tmp_path):
    who = subject(tmp_path, {"digits-test": made_trace()})
    ask(who)
    missing = read_results(who.file)["missing"]
    assert set(missing) == set(ANALYSES) - {"speed_accuracy", "selection_latency"}
    assert missing["persistent_noise"] == (f"cascaded record {who.runs[0].as_posix()} --noise occlusion")
    assert "such as cifar100" in missing["taxonomic_compliance"]


def test_the_same_traces_and_settings_are_not_asked_again(tmp_path, monkeypatch):
    who = subject(tmp_path, EVERYTHING)
    first, times = ask(who), []
    computed = answers._answer
    monkeypatch.setattr(answers, "_answer", lambda *given: times.append(given[0].analysis) or computed(*given))
    assert ask(who) == first
    assert times == []
    ask(who, ["speed_accuracy"], again=True)
    assert times == ["speed_accuracy"] * 2
    ask(who, ["selection_latency"], replace(QUICK, failing=0.2))
    assert times[2:] == ["selection_latency"] * 2


def test_a_trace_that_was_recorded_anew_is_asked_anew_and_one_that_is_gone_is_forgotten(tmp_path):
    who = subject(tmp_path, EVERYTHING)
    before = ask(who, ["speed_accuracy"])
    made_run(who.runs[0], {"digits-test": made_trace(9, good=5.0)})
    (who.runs[0] / "traces" / "digits-validation.safetensors").unlink()
    after = ask(find_subjects([who.runs[0]])[0], ["speed_accuracy"])
    assert set(after) == {("speed_accuracy", "digits-test")}
    assert after["speed_accuracy", "digits-test"] != before["speed_accuracy", "digits-test"]
    assert set(read_results(who.file)["analyses"]["speed_accuracy"]) == {"digits-test"}


def test_one_analysis_leaves_the_others_as_they_were(tmp_path):
    who = subject(tmp_path, EVERYTHING)
    ask(who)
    before = read_results(who.file)
    ask(who, ["speed_accuracy"], again=True)
    after = read_results(who.file)
    assert set(after["analyses"]) == set(before["analyses"])
    assert after["analyses"]["out_of_distribution"] == before["analyses"]["out_of_distribution"]


def test_a_trace_of_another_network_is_not_held_against_this_one(tmp_path):
    odd = {
        **EVERYTHING,
        "svhn-test": with_facts(strangers("test", 2), weights="x"),
    }
    who = subject(tmp_path, odd)
    ask(who, ["out_of_distribution"])
    assert "out_of_distribution" in read_results(who.file)["missing"]


def test_a_damaged_trace_is_refused_and_the_others_are_answered(tmp_path):
    who = subject(tmp_path, {"a-test": made_trace(), "b-test": made_trace(1), "c-test": made_trace(2)})
    file = who.runs[0] / "traces" / "b-test.safetensors"
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)
    assert set(ask(who, ["speed_accuracy"])) == {("speed_accuracy", "a-test"), ("speed_accuracy", "c-test")}
    written = read_results(who.file)
    assert set(written["analyses"]["speed_accuracy"]) == {"a-test", "c-test"}
    assert "b-test.safetensors is not what was recorded" in written["refused"]["speed_accuracy"]["b-test"]
    made_run(who.runs[0], {"b-test": made_trace(1)})
    assert len(ask(find_subjects([who.runs[0]])[0], ["speed_accuracy"])) == 3
    assert read_results(who.file)["refused"] == {}


@pytest.mark.parametrize("change", [{"made_from": 1}, {"result": {}}, {"result": {"headline": {"accuracy": "high"}}}])
def test_an_answer_that_was_changed_by_hand_is_computed_again(tmp_path, change):
    who = subject(tmp_path, {"digits-test": made_trace()})
    first = ask(who, ["speed_accuracy"])
    told = read_results(who.file)
    told["analyses"]["speed_accuracy"]["digits-test"].update(change)
    who.file.write_text(json.dumps(told))
    with pytest.warns(CascadedWarning, match="was changed after cascaded wrote it: it is made again"):
        assert ask(who, ["speed_accuracy"]) == first


def test_a_number_that_was_changed_by_hand_is_computed_again(tmp_path):
    who = subject(tmp_path, {"digits-test": made_trace()})
    ask(who, ["speed_accuracy"])
    whole = read_results(who.file)
    told = read_results(who.file)
    told["analyses"]["speed_accuracy"]["digits-test"]["result"]["headline"]["accuracy"] = 0.123
    who.file.write_text(json.dumps(told))
    with pytest.warns(CascadedWarning, match="it is made again"):
        ask(who, ["speed_accuracy"])
    again = read_results(who.file)["analyses"]["speed_accuracy"]["digits-test"]["result"]
    assert again == whole["analyses"]["speed_accuracy"]["digits-test"]["result"]


@pytest.mark.parametrize("change", [{"analyses": []}, {"missing": None}, {"analyses": {"speed_accuracy": 3}}])
def test_results_that_were_changed_beyond_use_are_refused(tmp_path, change):
    who = subject(tmp_path, {"digits-test": made_trace()})
    ask(who, ["speed_accuracy"])
    who.file.write_text(json.dumps(read_results(who.file) | change))
    with pytest.raises(InputError, match="was changed and is not what cascaded writes any more: move it away"):
        ask(who, ["speed_accuracy"])


def test_what_is_there_is_not_asked_for_again(tmp_path):
    who = subject(tmp_path, {"digits-test": made_trace()})
    ask(who, ["learned_stopper"])
    told = read_results(who.file)["missing"]["learned_stopper"]
    assert told == f"cascaded record {who.runs[0].as_posix()} --split validation --kernel ews:0.9 --steps 70"


def test_serial_networks_are_not_asked_for_a_kernel(tmp_path):
    who = find_subjects([made_run(tmp_path / "0", {"t": made_trace(schedule="serial")}, method="shallow-deep")])[0]
    ask(who, ["learned_stopper"])
    assert "--kernel" not in read_results(who.file)["missing"]["learned_stopper"]


def test_names_are_as_people_type_them():
    assert chosen([]) == [*ANALYSES, "lambda_effect"]
    assert chosen(["speed-accuracy", "transient_noise"]) == ["speed_accuracy", "transient_noise"]
    with pytest.raises(InputError, match="there is no analysis 'sped_accuracy': say speed_accuracy"):
        chosen(["sped_accuracy"])


def test_results_of_something_else_are_not_overwritten(tmp_path):
    who = subject(tmp_path, {"digits-test": made_trace()})
    who.file.write_text('{"mine": 1}')
    with pytest.raises(InputError, match="holds no results of format 1, the one this cascaded reads: move it away"):
        ask(who)
    assert who.file.read_text() == '{"mine": 1}'


@pytest.mark.parametrize("settings", [{"failing": 1.0}, {"failing": -0.1}, {"epochs": 0}])
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(InputError, match=f"--{next(iter(settings))} is"):
        Settings(**settings)


def test_noise_is_not_taken_for_the_outside_set_it_was_laid_over(tmp_path):
    noisy = with_facts(strangers("test", 5), noise="focus", protocol="persistent", trials=1)
    who = subject(tmp_path, {**EVERYTHING, "svhn-test-zz-persistent": noisy})
    ask(who, ["out_of_distribution"])
    (answer,) = read_results(who.file)["analyses"]["out_of_distribution"].values()
    assert "svhn-test-zz-persistent" not in answer["made_from"]
    assert list(answer["result"]["pairs"]) == ["svhn"]


def test_an_answer_holds_for_what_its_traces_tell_as_well(tmp_path):
    first = ask(subject(tmp_path, {"digits-test": made_trace(operations=(10,) * 6)}), ["speed_accuracy"])
    again = ask(subject(tmp_path, {"digits-test": made_trace(operations=(1000,) * 6)}), ["speed_accuracy"])
    costs = [
        each["speed_accuracy", "digits-test"]["in operations"]["curves"]["deadline"]["cost"] for each in (first, again)
    ]
    assert (costs[0][-1], costs[1][-1]) == (60, 6000)


def test_settings_that_an_analysis_does_not_read_do_not_matter_to_it(tmp_path, monkeypatch):
    who, times = subject(tmp_path, EVERYTHING), []
    ask(who)
    computed = answers._answer
    monkeypatch.setattr(answers, "_answer", lambda *given: times.append(given[0].analysis) or computed(*given))
    ask(who, settings=replace(QUICK, failing=0.3))
    assert set(times) == {"selection_latency", "prototypicality"}
    times.clear()
    ask(who, settings=replace(QUICK, failing=0.3, epochs=2))
    assert set(times) == {"learned_stopper", "out_of_distribution"}


def test_what_another_process_has_answered_meanwhile_is_kept(tmp_path):
    who = subject(tmp_path, EVERYTHING)
    slow = answer_all(who, ["speed_accuracy"], QUICK)
    next(slow)
    ask(who, ["selection_latency"])
    list(slow)
    assert set(read_results(who.file)["analyses"]) == {"speed_accuracy", "selection_latency"}


def test_training_images_are_not_asked_how_well_they_are_known(tmp_path):
    told = ask(subject(tmp_path, {"digits-train": made_trace(split="train"), "digits-test": made_trace()}))
    assert {of for _, of in told} == {"digits-test"}


def test_epochs_and_seed_reach_what_is_trained(tmp_path):
    who = subject(tmp_path, EVERYTHING)
    told = ask(who, settings=Settings(epochs=2, seed=3))
    assert told["learned_stopper", "digits-test"]["recipe"]["epochs"] == 2
    assert told["learned_stopper", "digits-test"]["recipe"]["seed"] == 3
    assert told["out_of_distribution", "digits-test"]["recipe"]["epochs"] == 2
    assert told["out_of_distribution", "digits-test"]["seed"] == 3


def test_of_several_validation_traces_the_largest_is_trained_on(tmp_path):
    few = VALIDATION.select(np.arange(5))
    told = ask(subject(tmp_path, {**EVERYTHING, "digits-validation-5images": few}), ["learned_stopper"])
    assert told["learned_stopper", "digits-test"]["trained on"] == "digits-validation"
