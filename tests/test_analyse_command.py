"""`cascaded analyse`, as it is typed: from a trained run to results, and the wrong ways."""

import json
import shutil

import pytest

from cascaded.cli.main import run
from cascaded.errors import InputError
from cascaded.results.tables import shown
from cascaded.shell import program
from tests.made_traces import made_run, made_trace
from tests.tiny_runs import tiny_run as tiny_run


def test_from_a_trained_network_to_results(tiny_run, tmp_path, capsys):
    for model in ("cascaded-td", "cascaded-ce"):
        shutil.copytree(tiny_run(model), tmp_path / model / "0")
    run(["record", str(tmp_path), "--threads", "1", "--embeddings"])
    run(["record", str(tmp_path / "cascaded-td"), "--threads", "1", "--split", "validation"])
    run(["record", str(tmp_path / "cascaded-td"), "--noise", "occlusion", "--trials", "2", "--max-images", "40"])
    capsys.readouterr()
    run(["analyse", str(tmp_path), "--epochs", "1"])
    said = capsys.readouterr().out
    assert "speed_accuracy" in said
    assert "".join(f"not recorded: {program()} record".split()) in "".join(said.split())  # cells are folded
    told = json.loads((tmp_path / "cascaded-td" / "0" / "results.json").read_text())
    metrics = (tmp_path / "cascaded-td" / "0" / "metrics.jsonl").read_text().splitlines()
    result = told["analyses"]["speed_accuracy"]["digits-test-osd-9"]["result"]
    assert result["accuracy"] == pytest.approx(json.loads(metrics[-1])["test"])
    assert set(told["analyses"]) == {
        "speed_accuracy",
        "selection_latency",
        "prototypicality",
        "persistent_noise",
        "learned_stopper",
    }
    assert (tmp_path / "cascaded-td" / "0" / "galleries" / "digits-test-osd-9.png").exists()
    comparison = json.loads((tmp_path / "comparison.json").read_text())
    assert comparison["groups"] == {"cascaded-ce": [0], "cascaded-td(0)": [0]}
    assert any(each["metric"] == "area threshold" for each in comparison["tables"])


def test_one_analysis_alone(tmp_path, capsys):
    made_run(tmp_path / "0", {"digits-test": made_trace()})
    run(["analyse", str(tmp_path / "0"), "--only", "selection-latency", "--no-galleries"])
    assert set(json.loads((tmp_path / "0" / "results.json").read_text())["analyses"]) == {"selection_latency"}
    assert not (tmp_path / "0" / "galleries").exists()
    assert "wrote" in capsys.readouterr().out


def test_comparing_one_analysis_does_not_take_the_others_away(tmp_path):
    for model, good in (("cascaded-td", 3.0), ("cascaded-ce", 2.0)):
        made_run(tmp_path / model / "0", {"t": made_trace(items=20, good=good)}, method=model)

    def compared(*only):
        run(["analyse", str(tmp_path), "--no-galleries", "--only", *only])
        told = json.loads((tmp_path / "comparison.json").read_text())
        return {each["analysis"] for each in told["tables"]}

    assert compared("speed_accuracy") == {"speed_accuracy"}
    assert compared("selection_latency") == {"speed_accuracy", "selection_latency"}
    made_run(
        tmp_path / "cascaded-td" / "0", {"t": made_trace(5, items=20)}
    )  # other traces: what was said of them is gone
    made_run(tmp_path / "cascaded-ce" / "0", {"t": made_trace(6, items=20)}, method="cascaded-ce")
    assert compared("selection_latency") == {"selection_latency"}


def test_a_gallery_without_its_data_is_no_reason_to_stop(tmp_path, capsys):
    made_run(tmp_path / "0", {"t": made_trace(data="nowhere")}, data=str(tmp_path / "nowhere"))
    run(["analyse", str(tmp_path / "0"), "--only", "selection_latency"])
    assert "no gallery of t: there is no file or folder" in capsys.readouterr().out
    assert (tmp_path / "0" / "results.json").exists()


def test_odd_names_are_shown_as_they_are(tmp_path, capsys):
    made_run(tmp_path / "my [red]run [" / "x]" / "0", {"t [bold]x": made_trace()})
    made_run(tmp_path / "my [red]run [" / "y]" / "0", {"t [bold]x": made_trace(1)}, lam=1.0)
    run(["analyse", str(tmp_path), "--only", "speed_accuracy", "selection_latency"])
    said = capsys.readouterr().out
    assert f"wrote {tmp_path / 'my [red]run [' / 'x]' / '0' / 'results.json'}" in said
    assert (tmp_path / "my [red]run [" / "comparison.json").exists()
    assert "[bold]x" in said


def test_timings_of_the_same_weights_are_put_beside(tmp_path):
    made_run(tmp_path / "0", {"t": made_trace()})

    def told(weights):
        (tmp_path / "0" / "latency.json").write_text(json.dumps({"format": 2, "weights": weights, "timings": []}))
        run(["analyse", str(tmp_path / "0"), "--only", "speed_accuracy"])
        return json.loads((tmp_path / "0" / "results.json").read_text()).get("clock")

    assert told("w") == {"format": 2, "weights": "w", "timings": []}
    assert told("of other weights") is None


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "no run is given: say which, as in .*cascaded analyse runs/td0/0"),
        (["nowhere"], "there is no folder nowhere"),
        (["{run}", "--only", "speed_acuracy"], "there is no analysis 'speed_acuracy': say speed_accuracy"),
        (["{run}", "--failing", "2"], r"--failing is 2.0: give a share of 0 or more, below 1"),
        (["{run}", "--only", "lambda_effect"], "lambda_effect compares runs, .* is one: give several"),
        (["{run}", "--seed", "-1"], "--seed is -1: give 0 or more"),
        (["{run}"], "no trace is recorded in .*: .*cascaded record .* makes one"),
    ],
)
def test_the_wrong_words_are_refused_with_the_way_out(tmp_path, words, sentence):
    folder = made_run(tmp_path / "0")
    with pytest.raises(InputError, match=sentence):
        run(["analyse", *(word.format(run=folder) for word in words)])


def test_what_is_refused_does_not_keep_the_rest_from_being_told(tmp_path, capsys):
    folder = made_run(tmp_path / "0", {"a": made_trace(), "b": made_trace(1)})
    file = folder / "traces" / "b.safetensors"
    file.write_bytes(file.read_bytes()[:-4] + b"1234")
    with pytest.raises(
        InputError, match=r"speed_accuracy could not be answered, .*b.safetensors is not what was recorded"
    ):
        run(["analyse", str(folder), "--only", "speed_accuracy"])
    said = capsys.readouterr().out
    assert "refused" in said
    assert "accuracy 0." in said


def test_only_what_was_asked_for_is_called_missing(tmp_path, capsys):
    folder = made_run(tmp_path / "0", {"a": made_trace()})
    run(["analyse", str(folder)])
    assert "transient_noise" in capsys.readouterr().out
    run(["analyse", str(folder), "--only", "speed_accuracy"])
    assert "transient_noise" not in capsys.readouterr().out


def test_a_place_for_comparing_is_refused_where_nothing_is_compared(tmp_path):
    folder = made_run(tmp_path / "0", {"a": made_trace()})
    with pytest.raises(InputError, match=r"--out is x.json, for comparing several runs, .* is one: leave it out"):
        run(["analyse", str(folder), "--out", "x.json"])


def test_figures_are_short():
    assert [shown(value) for value in (0.123456, 3.0, None)] == ["0.1235", "3", "-"]
