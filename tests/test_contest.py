import dataclasses
import json

import pytest
import torch

from cascaded.bench import compare as contest
from cascaded.bench.compare import CONTENDERS, Measurement, Setting, prepare
from cascaded.bench.report import document, ratios, save, table
from cascaded.cascade import conv

TINY = Setting(task="train", width=2, batch=4, size=16, threads=1)


def test_every_run_of_every_contender_is_told():
    told = []
    measured = contest.contest(dataclasses.replace(TINY, task="evaluate"), 1, memory=False, told=lambda: told.append(1))
    assert list(measured) == list(CONTENDERS)
    assert len(told) == len(CONTENDERS) * 2  # the first one warms up


def test_operations_are_those_of_the_design():
    """Ten passes and nine heads for the loop; 36 block updates and one stem for the cascade; eight for serial."""
    setting = dataclasses.replace(TINY, task="evaluate", width=16, batch=64)
    counted = {name: contest.operations(setting, name) for name in CONTENDERS}
    assert counted["loop"] / counted["serial"] == pytest.approx(10, rel=0.01)
    assert 4 < counted["cascade"] / counted["serial"] < 4.6
    assert counted["cascade"] == counted["plain convolutions"]


def test_peak_memory_is_measured_in_a_process_of_its_own():
    setting = dataclasses.replace(TINY, batch=32, width=4, size=32)
    assert 2**20 < contest.peak_bytes(setting, "cascade") < contest.peak_bytes(setting, "loop")


@pytest.mark.parametrize("contender", CONTENDERS)
def test_a_run_leaves_the_library_as_it_was(contender):
    before = conv.PIXELS
    prepare(TINY, contender)()
    assert conv.PIXELS == before > 0


def test_plain_convolutions_are_plain(monkeypatch):
    monkeypatch.setattr(conv, "pixelwise", lambda *_: pytest.fail("small maps were computed pixel by pixel"))
    setting = dataclasses.replace(TINY, batch=4 * conv.ITEMS, size=32, task="evaluate")
    prepare(setting, "plain convolutions")()
    with pytest.raises(pytest.fail.Exception):
        prepare(setting, "cascade")()


# --- the report


def measurements():
    seconds = {
        "loop": [4.0, 4.2, 9.0],
        "serial": [0.5, 0.5, 0.5],
        "plain convolutions": [2.0] * 3,
        "cascade": [1.0] * 3,
    }
    sizes = {"loop": 1000, "serial": 100, "plain convolutions": 400, "cascade": 400}
    return {name: Measurement(name, s, sizes[name] * 2**20, sizes[name] * 10**9) for name, s in seconds.items()}


def test_ratios_by_hand():
    ratio = ratios(measurements())["cascade"]
    assert ratio["faster_than_loop"] == pytest.approx(4.2)
    assert ratio["times_serial"] == pytest.approx(2.0)
    assert ratio["memory_of_loop"] == pytest.approx(0.4)
    assert ratio["operations_of_loop"] == pytest.approx(0.4)


def test_the_table_has_a_row_a_contender_and_does_without_memory():
    measured = measurements()
    for each in measured.values():
        each.peak_bytes = None
    assert table({TINY: measured}).row_count == len(CONTENDERS)


def test_the_document_is_json_and_says_where_it_comes_from(tmp_path):
    file = tmp_path / "bench.json"
    save({TINY: measurements()}, file)
    read = json.loads(file.read_text())
    assert read == json.loads(json.dumps(document({TINY: measurements()})))
    assert read["torch"] == torch.__version__
    assert read["settings"][0]["width"] == TINY.width
    assert [each["contender"] for each in read["settings"][0]["contenders"]] == list(CONTENDERS)
    assert list(tmp_path.rglob("*")) == [file]
