"""`cascaded analyze`: from a trained run to results, the tables it prints, and wrong input."""

import json
import shlex
import shutil

import pandas as pd
import pytest

from cascaded.cli.main import run
from cascaded.errors import InputError
from cascaded.results import load
from cascaded.results.galleries import read_galleries
from cascaded.shell import program
from tests.hand_made import curve_of
from tests.made_traces import made_run, made_trace
from tests.tiny_runs import tiny_run as tiny_run


def test_from_trained_networks_to_results(tiny_run, tmp_path, capsys):
    for method in ("cascaded-td", "cascaded-ce"):
        shutil.copytree(tiny_run(method), tmp_path / method / "0")
    td = tmp_path / "cascaded-td"
    run(["record", str(tmp_path), "--threads", "1", "--embeddings"])
    run(["record", str(td), "--threads", "1", "--split", "validation"])
    run(["record", str(td), "--noise", "occlusion", "--trials", "2", "--max-images", "40"])
    capsys.readouterr()
    run(["analyze", str(tmp_path), "--epochs", "1", "--draws", "20", "--csv", str(tmp_path / "all.csv")])
    printed = capsys.readouterr().out
    metrics = (td / "0" / "metrics.jsonl").read_text().splitlines()
    df = load(td)
    speed = df[(df.analysis == "speed_accuracy") & (df.split == "test")]
    accuracy = json.loads(metrics[-1])["test"]
    assert list(curve_of(speed, "accuracy_per_step").values()) == pytest.approx(accuracy)
    assert set(df.analysis) == {
        "speed_accuracy",
        "selection_latency",
        "prototypicality",
        "persistent_noise",
        "learned_stopper",
        "run_time",
    }
    assert f"{100 * accuracy[-1]:.1f} %" in printed
    assert "CascadedTD(0)" in printed
    assert "paired differences" in printed
    assert len(read_galleries(td / "0")) == 2
    assert len(pd.read_csv(tmp_path / "all.csv")) == len(load(tmp_path))


def test_commands_for_what_is_missing_work_as_printed(tiny_run, tmp_path, capsys):
    folder = tmp_path / "my run" / "0"
    shutil.copytree(tiny_run("cascaded-td"), folder)
    run(["record", str(folder), "--threads", "1", "--max-images", "20"])
    words = ["analyze", str(folder), "--epochs", "1", "--draws", "5", "--only"]
    capsys.readouterr()
    run([*words, "speed_accuracy", "transient_noise"])
    (line,) = [line.strip() for line in capsys.readouterr().out.splitlines() if "&&" in line]
    record, analyze = map(shlex.split, line.split(" && "))
    assert record[:3] == [program(), "record", str(folder)]
    run([*record[1:], "--max-images", "10", "--trials", "1"])
    run([*analyze[1:], "--draws", "5"])
    assert "dip" in set(load(folder, "transient_noise").metric)


def test_one_analysis_alone(tmp_path, capsys):
    made_run(tmp_path / "0", {"t": made_trace()})
    run(["analyze", str(tmp_path / "0"), "--only", "selection-latency", "--no-galleries"])
    assert set(load(tmp_path).analysis) == {"selection_latency"}
    assert not (tmp_path / "0" / "results" / "galleries").exists()
    assert "transient_noise" not in capsys.readouterr().out


def test_a_gallery_without_its_data_is_no_reason_to_stop(tmp_path, capsys):
    place = str(tmp_path / "nowhere")
    made_run(tmp_path / "0", {"t": made_trace(data=place)}, data=place)
    run(["analyze", str(tmp_path / "0"), "--only", "selection_latency"])
    assert "no gallery of" in capsys.readouterr().out
    assert len(load(tmp_path))


def test_odd_names_are_printed_as_they_are(tmp_path, capsys):
    made_run(tmp_path / "my [red]run [" / "x]" / "0", {"t [bold]x": made_trace()})
    made_run(tmp_path / "my [red]run [" / "y]" / "0", {"t [bold]x": made_trace(1)}, lam=1.0)
    run(["analyze", str(tmp_path), "--only", "speed_accuracy"])
    assert f"wrote {tmp_path / 'my [red]run [' / 'x]' / '0' / 'results'}" in capsys.readouterr().out


def test_runs_that_share_a_name_have_columns_of_their_own(tmp_path, capsys):
    for width in (8, 16):
        made_run(tmp_path / str(width) / "0", {"t": made_trace(width)}, width=width)
    run(["analyze", str(tmp_path), "--only", "speed_accuracy"])
    printed = capsys.readouterr().out
    assert all(f"config {config}" in printed for config in set(load(tmp_path).config))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "no run is given: add one, as in .*cascaded analyze runs/td0/0"),
        (["nowhere"], "there is no folder nowhere"),
        (["{run}", "--only", "speed_acuracy"], "there is no analysis 'speed_acuracy': did you mean speed_accuracy"),
        (["{run}", "--unsettled-fraction", "2"], r"--unsettled-fraction is 2.0: give 0 or more"),
        (["{run}", "--seed", "-1"], "--seed is -1: give 0 or more"),
        (["{run}", "--draws", "1"], "--draws 1: give at least 1 and 2"),
        (["{run}"], "no trace is recorded in .*: .*cascaded record .* makes one"),
    ],
)
def test_wrong_input_is_refused_with_the_fix(tmp_path, words, sentence):
    folder = made_run(tmp_path / "0")
    with pytest.raises(InputError, match=sentence):
        run(["analyze", *(word.format(run=folder) for word in words)])


def test_a_damaged_trace_is_an_error_after_the_rest_was_printed(tmp_path, capsys):
    folder = made_run(tmp_path / "0", {"a": made_trace(), "b": made_trace(1)})
    file = folder / "traces" / "b.safetensors"
    file.write_bytes(file.read_bytes()[:-4] + b"1234")
    with pytest.raises(InputError, match=r"speed_accuracy of b failed, .*b.safetensors is not what was recorded"):
        run(["analyze", str(folder), "--only", "speed_accuracy"])
    assert "accuracy" in capsys.readouterr().out
