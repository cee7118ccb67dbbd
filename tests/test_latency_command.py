"""`cascaded latency` on the command line."""

import json
import shutil
import sys

import pytest

from cascaded.cli import main as cli
from cascaded.runtime.latency import FULL
from cascaded.training.load import load_run
from tests.tiny_runs import tiny_run  # noqa: F401


def cascaded(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["cascaded", "latency", *map(str, words)])
    cli.main()


@pytest.mark.parametrize(("method", "rules"), [("cascaded-td", 2), ("shallow-deep", 1)])
def test_timings_are_printed_and_written_and_shallow_deep_runs_serially(
    tiny_run,  # noqa: F811
    tmp_path,
    monkeypatch,
    capsys,
    method,
    rules,
):
    folder = shutil.copytree(tiny_run(method), tmp_path / "0")
    cascaded(monkeypatch, folder, "--thresholds", 0.3, "--batch-sizes", 8, "--max-images", 20, "--device", "cpu")
    out = capsys.readouterr().out
    assert f"wrote {folder / 'latency.json'}" in out
    assert "latency of predictions" in out
    written = json.loads((folder / "latency.json").read_text())
    assert (written["weights"], written["items"], written["threads"]) == (load_run(folder).weights, 20, 1)
    assert [each["rule"] for each in written["timings"]] == [FULL, "serial", "cascaded"][: 1 + rules]


def test_a_maximum_above_the_number_of_images_takes_all(tiny_run, tmp_path, monkeypatch, capsys):  # noqa: F811
    folder = shutil.copytree(tiny_run("shallow-deep"), tmp_path / "0")
    cascaded(monkeypatch, folder, "--thresholds", 0.0, "--batch-sizes", 400, "--max-images", 1000, "--device", "cpu")
    assert json.loads((folder / "latency.json").read_text())["items"] == 359
