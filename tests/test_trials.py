"""Answers of people at deadlines: the published accuracies, and one sentence for any other file."""

import gzip
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from cascaded.data.human import curves, trials
from cascaded.data.trials import OWN, accuracy, count_answers, kept_trials
from cascaded.errors import InputError
from tests.refused import refused

HEADER = "manipulation,observer,deadline_ms,level,category,answer,rt_ms"


def saved(tmp_path, *lines, header=HEADER):
    file = tmp_path / "mine.csv"
    file.write_text("\n".join([header, *lines]) + "\n")
    return file


@pytest.mark.parametrize(
    ("manipulation", "level", "expected"),
    [
        ("noise", 0.0, [10.8, 10.8, 32.3, 56.9, 59.6]),
        ("noise", 0.16, [11.5, 9.8, 13.9, 22.6, 20.7]),
        ("blur", 0.0, [9.3, 8.1, 48.7, 71.1, 68.4]),
    ],
)
def test_the_accuracies_are_the_published_ones(manipulation, level, expected):
    table = curves(draws=2)
    own = table[(table["manipulation"] == manipulation) & (table["level"] == level)]
    assert own["deadline_ms"].tolist() == [200, 400, 600, 800, 1000]
    assert (100 * own["accuracy"]).round(1).tolist() == expected


def test_curves_are_those_of_a_loop_over_all_trials():
    tally = {}
    for row in trials().to_dict("records"):
        if row["answer"] == row["answer"] and abs(row["rt_ms"] - row["deadline_ms"]) <= 100:
            key = row["manipulation"], row["level"], row["deadline_ms"]
            correct, total, people = tally.setdefault(key, [0, 0, set()])
            people.add(row["observer"])
            tally[key] = [correct + (row["answer"] == row["category"]), total + 1, people]
    found = curves(draws=2)
    assert len(found) == len(tally) == 40
    for row in found.itertuples():
        correct, total, people = tally[row.manipulation, row.level, row.deadline_ms]
        assert (row.accuracy, row.trials, row.observers) == (pytest.approx(correct / total), total, len(people))


def test_intervals_are_those_of_observers_drawn_within_each_manipulation():
    table = trials()
    answers = count_answers(table)
    drawn = accuracy(answers.drawn(40, 3))
    generator, numbers = np.random.default_rng(3), [0, *np.cumsum([20, 7, 6])]
    chosen = [generator.integers(n, size=(40, n)) + start for n, start in zip((20, 7, 6), numbers, strict=False)]
    for draw in range(40):
        people = np.concatenate([each[draw] for each in chosen])
        assert drawn[draw] == pytest.approx(accuracy(answers.counts[people].sum(axis=0)), nan_ok=True)
    found = curves(table, draws=40, seed=3)
    assert found["low"].tolist() == np.quantile(drawn, 0.025, axis=0).ravel().tolist()
    assert (found["low"] < found["high"]).all()


def test_the_package_has_all_trials_and_reads_them_without_torch(tmp_path):
    assert len(trials()) == 43_488
    assert trials()["manipulation"].unique().tolist() == ["noise", "blur", "color"]
    program = "import sys; from cascaded.data.human import curves; curves(draws=2); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=300).returncode == 0
    assert "CC BY 4.0" in OWN.with_name("README.md").read_text()


def test_the_file_of_a_user_gives_the_same_as_ours(tmp_path):
    plain = tmp_path / "plain.csv"
    plain.write_bytes(gzip.decompress(OWN.read_bytes()))
    pd.testing.assert_frame_equal(trials(plain), trials())


def test_trials_without_an_answer_or_far_from_the_deadline_do_not_count(tmp_path):
    file = saved(
        tmp_path,
        "blur,a,200,0,cat,,200",
        "blur,a,200,0,cat,cat,300",
        "",
        "blur,b,200,1.5,dog,cat,300.1",
        "blur,b,200,1.5,dog,cat,100",
    )
    kept = kept_trials(trials(file))
    assert kept["rt_ms"].tolist() == [300, 100]
    assert curves(trials(file), draws=2)["accuracy"].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("noise,a,soon,0,cat,cat,200", "has deadline_ms 'soon' in line 3: give a number of at least 1"),
        ("noise,a,-200,0,cat,cat,200", "has deadline_ms '-200' in line 3"),
        ("noise,a,inf,0,cat,cat,200", "has deadline_ms 'inf' in line 3"),
        ("noise,a,200,,cat,cat,200", "has level '' in line 3: give a number of at least 0"),
        ("noise,a,200,0,cat,cat,nan", "has rt_ms 'nan' in line 3: give a number"),
        ("fog,a,200,0,cat,cat,200", "has manipulation 'fog' in line 3: give noise, blur, color"),
        ("noise,,200,0,cat,cat,200", "has observer '' in line 3: fill it in"),
        ("noise,a,200,0,cat,cow,200", "has answer 'cow' in line 3: give one of the categories, or nothing"),
        ("noise,a,200,0,cat,cat,200,more", "cannot be read as CSV .*: save it as CSV in UTF-8"),
    ],
)
def test_a_wrong_cell_is_named_by_its_column_and_line(line, message, tmp_path):
    with pytest.raises(InputError, match=rf"mine\.csv {message}"):
        trials(saved(tmp_path, "noise,a,200,0,dog,dog,200", line))


def test_other_files_are_refused(tmp_path):
    refused(
        "has no column manipulation, its columns are level: give manipulation, obs",
        trials,
        saved(tmp_path, header="level"),
    )
    refused("has columns and no trials: give one line per trial", trials, saved(tmp_path))
    refused("cannot be read as CSV", trials, tmp_path / "nothing.csv")
    late = saved(tmp_path, "noise,a,200,0,cat,cat,900")
    refused("none of 1 trials was answered within 100 ms of its deadline: check rt_ms", curves, trials(late))
