"""`cascaded bench --runtime`: what is timed, and how variants are compared."""

import json

import pytest

from cascaded.bench.runtime import (
    COMPARED,
    COMPARED_TRANSFORMER,
    RuntimeSetting,
    RuntimeTimes,
    median_ratio,
    time_runtime,
)
from cascaded.cli.bench import bench
from cascaded.files import from_json

pytest.importorskip("onnx", reason="exporting needs the extra `export`")
pytest.importorskip("onnxruntime", reason="running exported networks needs the extra `export`")


def test_a_ratio_is_the_median_over_rounds_not_a_ratio_of_medians():
    assert median_ratio([1.0, 10.0, 3.0], [1.0, 2.0, 1.0]) == 3.0


def test_every_variant_runs_once_per_round():
    times = time_runtime(RuntimeSetting(2, 3, 1, image_size=16), rounds=4)
    assert times.rounds == 4
    check(times, COMPARED)


def check(times, compared):
    """Every variant and every ratio was measured."""
    assert times.ratios.keys() == times.cpu_ratios.keys() == compared.keys()
    assert {name for pair in compared.values() for name in pair} == times.milliseconds.keys()
    assert min([*times.ratios.values(), *times.cpu_ratios.values(), *times.milliseconds.values()]) > 0


@pytest.mark.long
def test_all_settings_are_printed_and_written(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("cascaded.cli.bench.ROUNDS", 1)
    file = tmp_path / "bench.json"
    bench(width=(2,), batch_size=(2,), image_size=16, repeats=1, threads=1, runtime=True, json=file)
    out = capsys.readouterr().out
    assert "ratios of times" in out
    written = json.loads(file.read_text())
    results = [from_json(each, RuntimeTimes) for each in written["runtime"]]
    settings = [(each.setting.arch, each.setting.batch_size, each.setting.threads) for each in results]
    assert settings == [("resnet18", 2, 1), ("vit", 2, 1)]
    for times in results:
        check(times, COMPARED if times.setting.arch == "resnet18" else COMPARED_TRANSFORMER)
    assert written["onnxruntime"]
