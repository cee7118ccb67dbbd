"""`cascaded bench --serve`: every request is counted once, and all settings are measured."""

import json
from pathlib import Path

import pytest

from cascaded.bench import serve as load
from cascaded.bench.serve import LoadSetting, Reply, send_all, serving, summarize
from cascaded.cli import bench as command
from cascaded.errors import InputError
from tests.served import TIMEOUT

for package in ("onnx", "onnxruntime", "fastapi", "uvicorn", "python_multipart"):
    pytest.importorskip(package, reason="the server needs the extra `serve`")

from cascaded.runtime.server import bind  # noqa: E402, it needs the packages above

SETTING = LoadSetting(2, "threshold=1", 32, 16)


def test_requests_are_answered_refused_or_lost():
    replies = [Reply(200, 10.0, 3), Reply(200, 30.0, 5, late=True), Reply(429, 1.0), Reply(0, 1.0), Reply(500, 1.0)]
    result = summarize(SETTING, replies, seconds=4.0, cpu=0.1)
    assert (result.sent, result.answered, result.refused, result.lost) == (5, 2, 1, 2)
    assert (result.throughput, result.p50, result.p99) == (0.5, 20.0, pytest.approx(29.8))
    assert (result.late, result.step, result.cpu) == (0.5, 4.0, 50.0)


def test_a_setting_without_answers_has_no_times():
    result = summarize(SETTING, [Reply(429, 1.0)] * 3, seconds=1.0, cpu=0.0)
    assert (result.answered, result.refused, result.throughput) == (0, 3, 0.0)
    assert result.p99 != result.p99


def test_a_server_that_is_gone_loses_all_requests():
    with bind("127.0.0.1", 0) as listening:
        address = "http://{}:{}".format(*listening.getsockname())
    replies = send_all(address, "threshold=1", [b"image"], clients=2, requests=5)
    assert [reply.status for reply in replies] == [0] * 5


def test_a_server_that_does_not_start_says_why():
    with pytest.raises(InputError, match="nowhere has no config"), serving(Path("nowhere")):
        pass


@pytest.mark.timeout(4 * TIMEOUT)
def test_all_settings_are_measured_printed_and_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(load, "BATCHES", (32,))
    monkeypatch.setattr(command, "REQUESTS", 12)
    file = tmp_path / "load.json"
    command.bench(width=(2,), image_size=16, repeats=1, serve=True, json=file)
    assert "requests over loopback" in capsys.readouterr().out
    written = json.loads(file.read_text())["serve"]
    settings = [(each["setting"]["limit"], each["setting"]["clients"]) for each in written]
    assert settings == [(limit, clients) for limit in load.LIMITS for clients in load.CLIENTS]
    assert {(each["sent"], each["answered"] + each["refused"], each["lost"]) for each in written} == {(12, 12, 0)}
    assert min(each["p50"] for each in written) > 0


def test_it_is_one_of_three():
    with pytest.raises(InputError, match="--runtime and --serve measure different things"):
        command.bench(runtime=True, serve=True)
