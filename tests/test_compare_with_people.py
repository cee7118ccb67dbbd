"""Networks beside people: people who are made from a network resemble it, and bad input is refused."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from cascaded.analysis.human import compare_with_people
from cascaded.analysis.mapping import Line
from cascaded.analysis.network_curves import Network
from cascaded.cli.main import run
from cascaded.data.trials import Answers, count_answers, trials
from cascaded.results.compare import estimates
from cascaded.results.human import main_rows
from cascaded.results.table import load, read_provenance, results_file
from cascaded.traces.stimuli import CONDITIONS, READINGS, noise_of
from tests.made_traces import made_run, made_trace, with_facts
from tests.refused import refused

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
MS = (200.0, 400.0, 600.0, 800.0, 1000.0)
LINE = Line(250.0, 90.0)


def recorded(noise, seed=0, items=400, **more):
    """A trace whose accuracy depends on the noise."""
    good = 1 + len(str(noise)) % 7
    trace = made_trace(seed, items, 9, 10, good, kernel="osd")
    trace = with_facts(trace, classes=CLASSES, items="same", **more)
    if noise is None:
        return trace
    return with_facts(trace, noise=noise, protocol="still", trials=1)


@pytest.fixture(scope="module")
def traces():
    noises = {noise_of(reading, level) for name, level in CONDITIONS for reading in READINGS[name]}
    return {noise: recorded(noise) for noise in noises}


@pytest.fixture(scope="module")
def answers(traces):
    """People who answer as the network does at the steps of a line: many, and all alike."""
    network = Network(traces, CLASSES)
    counts = np.zeros((6, len(CONDITIONS), 5, 10, 10), np.int64)
    names = [(name, str(k)) for name in ("noise", "blur", "color") for k in range(2)]
    for c, (name, level) in enumerate(CONDITIONS):
        matrices = network.confusions[noise_of(READINGS[name][0], level)]
        for d, place in enumerate(LINE.places(np.array(MS))):
            low = min(int(max(place, 0)), 8)
            share = min(max(place, 0), 9) - low
            mixed = (1 - share) * matrices[low] + share * matrices[low + 1]
            for o, (own, _) in enumerate(names):
                counts[o, c, d] = (own == name) * np.round(1e6 * mixed)
    return Answers(CONDITIONS, MS, CLASSES, tuple(names), counts)


@pytest.fixture(scope="module")
def rows(traces, answers):
    return compare_with_people(traces, answers, draws=4)


def value(rows, metric, **variant):
    chosen = rows[rows["metric"] == metric]
    for column, wanted in variant.items():
        chosen = chosen[chosen[column].isna() if wanted is None else chosen[column] == wanted]
    (found,) = chosen["value"]
    return found


EVERY = {"manipulation": "noise+blur+color", "level": None}
STEPS = {"rule": "deadline", "unit": "steps"}


def test_people_made_from_a_network_are_fitted_by_it(rows):
    assert value(rows, "mapping_offset", **EVERY, **STEPS) == pytest.approx(250, abs=2)
    assert value(rows, "mapping_scale", **EVERY, **STEPS) == pytest.approx(90, rel=0.01)
    assert value(rows, "fit_error", **EVERY, **STEPS) < 1e-3
    for metric in ("category_correlation", "confusion_similarity_early", "confusion_similarity_late"):
        assert value(rows, metric, **EVERY) > 0.99
    assert value(rows, "curve_correlation", **EVERY, **STEPS) == pytest.approx(1, abs=1e-4)
    assert value(rows, "steepness", **EVERY) == pytest.approx(value(rows, "human_steepness", **EVERY), rel=0.02)
    other = {**EVERY, "manipulation": "noise+blur-190+color"}
    assert value(rows, "fit_error", **other, **STEPS) > 0.01


def test_operations_that_rise_evenly_give_the_same_line(rows):
    """Ten operations per step: a million operations take as long as 100,000 steps."""
    by_step, by_operation = (
        value(rows, "mapping_scale", **EVERY, rule="deadline", unit=unit) for unit in ("steps", "operations")
    )
    assert by_operation * 1e-5 == pytest.approx(by_step, rel=0.01)


def test_accuracies_per_step_and_category_are_those_of_a_loop(rows, traces):
    trace = traces["gray:sd=0.04"]
    own = rows[(rows["metric"] == "network_accuracy") & (rows["manipulation"] == "noise") & (rows["level"] == 0.04)]
    expected = [sum(int(trace.logits[t, i].argmax()) == trace.labels[i] for i in range(400)) / 400 for t in range(9)]
    assert own["value"].tolist() == pytest.approx(expected)
    matrix = Network(traces, CLASSES[::-1]).confusions["gray:sd=0.04"][9]
    for i, j in ((0, 0), (2, 7), (9, 4)):
        items = [k for k in range(400) if CLASSES[trace.labels[k]] == CLASSES[::-1][i]]
        answered = [CLASSES[trace.logits[8, k].argmax()] == CLASSES[::-1][j] for k in items]
        assert matrix[i, j] == pytest.approx(np.mean(answered))


def test_curves_of_people_are_those_of_the_data(traces):
    found = compare_with_people(traces, count_answers(trials()), draws=4)
    own = found[(found["metric"] == "human_accuracy") & (found["manipulation"] == "noise") & (found["level"] == 0)]
    assert (100 * own["value"]).round(1).tolist() == [10.8, 10.8, 32.3, 56.9, 59.6]
    assert set(found["human"]) == {"human_sat"}
    assert value(found, "ceiling_error", **EVERY) == pytest.approx(0.048, abs=0.002)
    own = found[(found["metric"] == "human_confusion") & (found["x"] == 1000) & found["level"].isna()]
    assert own.groupby("category")["value"].sum().tolist() == pytest.approx([1] * 10)


def test_what_is_missing_or_different_is_named(traces, answers):
    some = {noise: trace for noise, trace in traces.items() if noise != "gray:sd=0.04"}
    refused(
        "shown gray:sd=0.04, which are not rec.*cascaded record --noise gray:sd=0.04",
        compare_with_people,
        some,
        answers,
    )
    others = replace(answers, categories=tuple("abcdefghij"))
    refused("the classes of the network are airplane.*, those of people a, b", compare_with_people, traces, others)
    once = replace(answers, deadlines=(200.0,), counts=answers.counts[:, :, :1])
    refused("people answered at 1 deadline: give at least two", compare_with_people, traces, once)


@pytest.fixture
def folder(tmp_path, traces):
    named = {f"t{number}": trace for number, trace in enumerate(traces.values())}
    return made_run(tmp_path / "td" / "0", named, method="cascaded-td", lam=0.0, data="digits")


def test_the_command_compares_a_run_with_people_and_with_a_users_own(folder, tmp_path, capsys):
    run(["analyze", str(folder), "--only", "human", "--draws", "3"])
    assert "fit_error (deadline, steps, noise+blur+color)" in " ".join(capsys.readouterr().out.split())
    table = load(folder, "human")
    assert table["noise"].isna().all()
    assert estimates(main_rows(table))["interval_over"].isin(["observers", "none"]).all()
    mine = tmp_path / "mine.csv"
    trials().query("manipulation == 'noise' and observer <= 'noise-04'").to_csv(mine, index=False)
    run(["analyze", str(folder), "--only", "human", "--draws", "3", "--human", str(mine)])
    table = load(folder, "human")
    (name,) = set(table["human"])
    assert name.startswith("mine-")
    assert set(table["manipulation"]) == {"noise"}
    assert read_provenance(results_file(folder, "human"))["settings"]["human_data"] == name


def test_a_wrong_file_of_answers_ends_in_one_sentence_and_exit_code_2(folder, tmp_path):
    mine = tmp_path / "mine.csv"
    mine.write_text("manipulation,observer,deadline_ms,level,category,answer,rt_ms\nnoise,a,soon,0,cat,cat,1\n")
    words = ["analyze", str(folder), "--only", "human", "--human", str(mine)]
    command = [sys.executable, "-m", "cascaded", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 2
    assert done.stderr == f"cascaded: {mine} has deadline_ms 'soon' in line 2: give a number of at least 1\n"


def test_levels_that_are_not_recorded_are_named_with_their_command(folder, tmp_path):
    mine = tmp_path / "mine.csv"
    trials().query("manipulation == 'noise'").replace({"level": {0.04: 0.08}}).to_csv(mine, index=False)
    words = ["analyze", str(folder), "--only", "human", "--human", str(mine)]
    refused(r"people were shown gray:sd=0.08, .*cascaded record --noise gray:sd=0.08 --protocol still", run, words)
