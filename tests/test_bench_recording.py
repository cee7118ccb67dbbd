"""Recording and analyses in the benchmark: the real ones, timed."""

import json

from cascaded.bench.recording import analyses, recording
from cascaded.cli import run


def test_all_images_are_evaluated_and_recorded():
    told = []
    measured = recording("resnet18", width=2, size=16, items=20, told=told.append)
    assert sum(told) == 40
    assert measured["times_serial"] == measured["record"] / measured["serial"] > 0


def test_analyses_are_timed_one_by_one():
    seconds = analyses((3, 50, 4))
    assert set(seconds) == {"speed_accuracy", "selection_latency", "prototypicality", "taxonomic_compliance"}
    assert min(seconds.values()) > 0


def test_the_command_keeps_what_it_measured(tmp_path, capsys):
    options = ["--width", "2", "--batch", "4", "--size", "16", "--repeats", "1", "--no-memory", "--threads", "1"]
    run(["bench", *options, "--record", "10", "--json", str(tmp_path / "b.json")])
    told = json.loads((tmp_path / "b.json").read_text())
    assert [each["items"] for each in told["recording"]] == [10]
    assert set(told["analyses"]) >= {"speed_accuracy"}
    assert "recording 10 images at width 2" in capsys.readouterr().out
