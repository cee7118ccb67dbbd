"""The benchmark: what is measured, and how implementations are compared."""

import dataclasses
import json

import pytest
import torch

from cascaded.bench import compare as module
from cascaded.bench.compare import IMPLEMENTATIONS, PIPELINE, Measurement, Setting, prepare, ratios
from cascaded.cascade import conv
from cascaded.cli.bench import bench

TINY = Setting(task="train", width=2, batch_size=4, image_size=16, threads=1)


def test_operations_are_those_of_the_design():
    """Ten passes and nine heads for the loop; 36 block updates and one stem for the cascade; eight for serial."""
    setting = dataclasses.replace(TINY, task="evaluate", width=16, batch_size=64)
    counted = {name: module.operations(setting, name) for name in IMPLEMENTATIONS}
    assert counted["loop"] / counted["serial"] == pytest.approx(10, rel=0.01)
    assert 4 < counted["cascade"] / counted["serial"] < 4.6
    assert counted["cascade"] == counted["plain convolutions"]


@pytest.mark.long
def test_peak_memory_is_measured_in_a_process_of_its_own():
    setting = dataclasses.replace(TINY, batch_size=32, width=4, image_size=32)
    assert 2**20 < module.peak_bytes(setting, "cascade") < module.peak_bytes(setting, "loop")


def test_plain_convolutions_are_plain(monkeypatch):
    monkeypatch.setattr(conv, "pixelwise", lambda *_: pytest.fail("small maps were computed pixel by pixel"))
    setting = dataclasses.replace(TINY, batch_size=4 * conv.ITEMS, image_size=32, task="evaluate")
    prepare(setting, "plain convolutions")()
    with pytest.raises(pytest.fail.Exception):
        prepare(setting, "cascade")()


def measurements():
    seconds = {"loop": [4.0, 4.2, 9.0], "serial": [0.5] * 3, "plain convolutions": [2.0] * 3, "cascade": [1.0] * 3}
    sizes = {"loop": 1000, "serial": 100, "plain convolutions": 400, "cascade": 400}
    return {name: Measurement(name, s, sizes[name] * 2**20, sizes[name] * 10**9) for name, s in seconds.items()}


def test_ratios_equal_those_computed_by_hand():
    ratio = ratios(measurements())["cascade"]
    assert ratio["speedup_over_loop"] == pytest.approx(4.2)
    assert ratio["time_of_serial"] == pytest.approx(2.0)
    assert ratio["memory_of_loop"] == pytest.approx(0.4)
    assert ratio["operations_of_loop"] == pytest.approx(0.4)


@pytest.mark.long
def test_bench_prints_and_writes_every_implementation(tmp_path, capsys):
    file = tmp_path / "new" / "bench.json"
    bench(width=(2,), batch_size=(4,), image_size=16, repeats=2, threads=1, memory=False, record=10, json=file)
    out = capsys.readouterr().out
    assert "faster than loop" in out
    assert "recording 10 images at width 2" in out
    assert f"wrote {file}" in out.replace("\n", "")
    written = json.loads(file.read_text())
    assert written["torch"] == torch.__version__
    assert [setting["task"] for setting in written["settings"]] == ["train", "evaluate"]
    for setting, others in zip(written["settings"], ([PIPELINE], []), strict=True):
        assert [each["implementation"] for each in setting["results"]] == [*IMPLEMENTATIONS, *others]
        assert all(len(each["seconds"]) == 2 and min(each["seconds"]) > 0 for each in setting["results"])
        assert all((each["operations"] > 0) == (each["implementation"] != PIPELINE) for each in setting["results"])
    assert [each["items"] for each in written["recording"]] == [10]
