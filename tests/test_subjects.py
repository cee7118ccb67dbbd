"""Who is analysed: runs one by one, and the folds of a cross-validation as one."""

from pathlib import Path

import numpy as np

from cascaded.results.subjects import find_subjects, what_of
from tests.made_traces import made_run, made_trace, noisy_trace


def fold_trace(number, **options):
    rows = np.arange(number - 1, 12, 3)
    return made_trace(number, items=4, indices=rows, split="validation", **options)


def test_a_run_is_a_subject_with_its_traces(tmp_path):
    trace = made_trace()
    run = made_run(tmp_path / "td0" / "3", {"digits-test-ews0.9-6": trace}, lam=0.5, seed=3)
    (subject,) = find_subjects([tmp_path])
    assert (subject.runs, subject.file, subject.label) == ((run,), run / "results.json", "cascaded-td(0.5)")
    (found,) = subject.traces
    assert found.name == "digits-test-ews0.9-6"
    assert np.array_equal(found.load().logits, trace.logits)


def test_labels_tell_model_and_lambda(tmp_path):
    made_run(tmp_path / "a", method="cascaded-ce")
    made_run(tmp_path / "b", method="cascaded-td", lam=(1.0, 0.0))
    assert [subject.label for subject in find_subjects([tmp_path])] == ["cascaded-ce", "cascaded-td(1:0)"]


def test_folds_are_one_subject_whose_traces_are_joined(tmp_path):
    for number in (1, 2, 3):
        folder = tmp_path / "cascaded-td" / f"fold{number}of3" / "0"
        made_run(folder, {"t": fold_trace(number), f"only{number}": fold_trace(number)}, fold=(number, 3))
    (subject,) = find_subjects([tmp_path])
    assert subject.file == tmp_path / "cascaded-td" / "results-3folds-0.json"
    assert subject.name.endswith("cascaded-td (3 folds)")
    (found,) = subject.traces  # what one fold alone has recorded cannot stand for all images
    assert "only2.safetensors exists for 1 of 3 folds: record the other folds" in subject.passed_over["only2"]
    whole = found.load()
    assert whole.indices.tolist() == list(range(12))
    assert np.array_equal(whole.logits[:, 1], fold_trace(2).logits[:, 0])


def test_some_folds_are_not_a_cross_validation(tmp_path):
    run = made_run(tmp_path / "m" / "fold1of3" / "0", {"t": fold_trace(1)}, fold=(1, 3))
    (subject,) = find_subjects([tmp_path])
    assert (subject.runs, subject.file) == ((run,), run / "results.json")
    assert subject.traces[0].images == 4


def test_two_cross_validations_in_one_place_are_two(tmp_path):
    for folds in (2, 3):
        for number in range(1, folds + 1):
            made_run(tmp_path / "m" / f"fold{number}of{folds}" / "0", fold=(number, folds))
    subjects = find_subjects([tmp_path])
    assert [len(subject.runs) for subject in subjects] == [2, 3]
    assert len({subject.file for subject in subjects}) == 2


def test_what_was_asked_is_told_whatever_the_schedule(tmp_path):
    traces = {
        "osd": made_trace(kernel="osd"),
        "serial": made_trace(kernel="none", schedule="serial"),
        "ews": made_trace(),
    }
    run = made_run(tmp_path / "0", {**traces, "noise": noisy_trace(trials=2, items=8)})
    told = {found.name: what_of(found) for found in find_subjects([run])[0].traces}
    assert told == {
        "osd": "digits test, 6 cycles, 40 images",
        "serial": "digits test, 6 cycles, 40 images",
        "ews": "digits test, ews:0.9, 6 steps, 40 images",
        "noise": "digits test, persistent focus, 8 images",
    }


def test_one_run_by_two_paths_is_one(tmp_path, monkeypatch):
    made_run(tmp_path / "a" / "0")
    monkeypatch.chdir(tmp_path)
    assert len(find_subjects([Path("a/0"), tmp_path / "a" / "0", Path("a/../a")])) == 1
