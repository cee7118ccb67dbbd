"""The server over HTTP: the same predictions as `Runner.predict`, and a status and a sentence for every bad request."""

import io
import re
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image

import cascaded
from cascaded.errors import InputError
from cascaded.runtime import Runner
from cascaded.runtime.images import UserImage
from cascaded.runtime.result import confidence
from tests.exports import SHAPE, inputs_of, tiny_net
from tests.forked import wait_until
from tests.served import TIMEOUT, Gate, form, png, running, send

for package in ("onnx", "onnxruntime", "fastapi", "uvicorn", "python_multipart"):
    pytest.importorskip(package, reason="the server needs the extra `serve`")

from cascaded.runtime.requests import Limits  # noqa: E402, they need the packages above
from cascaded.runtime.server import Service, bind  # noqa: E402

PIXELS = np.random.default_rng(0).integers(0, 256, (24, *SHAPE), dtype=np.uint8)
FILES = [png(each) for each in PIXELS]
LAST = 4
SMALL = Limits(requests=2, bytes=5000, pixels=400)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    net, place = tiny_net("resnet"), tmp_path_factory.mktemp("server") / "tiny"
    cascaded.export(net, place, inputs=inputs_of(net))
    return place


@pytest.fixture(scope="module")
def runner(folder):
    return Runner(folder)


@pytest.fixture(scope="module")
def address(folder):
    """A server with the default limits."""
    with running(Service(Runner(folder))) as address:
        yield address


@pytest.fixture(scope="module")
def small(folder):
    """A server with small limits."""
    with running(Service(Runner(folder), SMALL)) as address:
        yield address


def middle_threshold(runner):
    first = confidence(runner.step(PIXELS)[0])
    return float(np.sort(first)[len(first) // 2 :][:2].mean())


def as_runner(answer, runner, pixels, threshold):
    """Check that a prediction is that of the runner."""
    expected = runner.predict(pixels[None], threshold)
    assert answer["prediction"] == runner.classes[expected.predictions[0]]
    assert answer["step"] == expected.steps[0]
    assert answer["steps"] == LAST
    assert answer["deadline_met"] is None


def test_clients_at_the_same_time_get_the_predictions_of_the_runner(address, runner):
    limits = [middle_threshold(runner), 1.0, None] * 8

    def ask(file, limit):
        return send(address, "/predict" if limit is None else f"/predict?threshold={limit!r}", file)

    with ThreadPoolExecutor(12) as clients:
        answers = list(clients.map(ask, FILES, limits))
    assert {answer.status for answer in answers} == {200}
    for answer, pixels, limit in zip(answers, PIXELS, limits, strict=True):
        as_runner(answer.json, runner, pixels, limit)
    assert len({answer.json["step"] for answer in answers}) > 1


def test_an_image_is_resized_as_predict_does(address, runner):
    large = np.random.default_rng(1).integers(0, 256, (3, 31, 50), dtype=np.uint8)
    resized = UserImage(Path("a"), large.transpose(1, 2, 0)).resize(SHAPE).transpose(2, 0, 1)
    answer = send(address, "/predict", png(large)).json
    logits = runner.full_pass(resized[None])
    assert answer["prediction"] == runner.classes[logits[0].argmax()]
    assert answer["confidence"] == pytest.approx(float(confidence(logits)[0]), abs=1e-5)


def test_a_form_is_read_like_a_body(address, runner):
    body, kind = form(FILES[0], threshold="0.0")
    answer = send(address, "/predict", body, **{"Content-Type": kind}).json
    as_runner(answer, runner, PIXELS[0], 0.0)
    assert (answer["step"], answer["stopped_by"]) == (1, "threshold")


def test_a_stream_has_one_event_per_step(address, runner):
    answer = send(address, "/stream", FILES[0])
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert [name for name, _ in answer.events] == ["step"] * LAST
    state = None
    for number, (_, event) in enumerate(answer.events, start=1):
        logits, state = runner.step(None if state else PIXELS[:1], state)
        assert event["step"] == number
        assert event["prediction"] == runner.classes[logits[0].argmax()]
        assert event["confidence"] == pytest.approx(float(confidence(logits)[0]), abs=1e-5)
        assert event["stopped_by"] == ("last step" if number == LAST else None)
    times = [event["milliseconds"] for _, event in answer.events]
    assert times == sorted(times)


def test_a_stream_ends_at_the_threshold(address):
    ((_, event),) = send(address, "/stream?threshold=0", FILES[0]).events
    assert (event["step"], event["stopped_by"]) == (1, "threshold")


def test_a_deadline_that_cannot_be_met_gets_the_best_prediction_so_far(address, runner):
    answer = send(address, "/predict?deadline_ms=0.000001", FILES[0]).json
    assert (answer["step"], answer["stopped_by"], answer["deadline_met"]) == (1, "deadline", False)
    logits, _ = runner.step(PIXELS[:1])
    assert answer["prediction"] == runner.classes[logits[0].argmax()]


def test_a_long_deadline_is_met_at_the_last_step(address):
    answer = send(address, "/predict?deadline_ms=1e9", FILES[0]).json
    assert (answer["step"], answer["stopped_by"], answer["deadline_met"]) == (LAST, "last step", True)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("threshold=high", "threshold is 'high': give a number"),
        ("threshold=1.5", "threshold is 1.5: give a number from 0 to 1"),
        ("threshold=nan", "threshold is 'nan': give a finite number"),
        ("deadline_ms=inf", "deadline_ms is 'inf': give a finite number"),
        ("deadline_ms=-1", "deadline_ms is -1.0: give a positive number of milliseconds"),
        ("deadline_ms=", "deadline_ms is '': give a number"),
        ("threshold=0.5&deadline_ms=20", "several values of threshold and deadline_ms: give one"),
        ("threshold=0.5&threshold=0.6", "several values of threshold: give one"),
        ("treshold=0.5", "there is no parameter 'treshold': did you mean threshold?"),
    ],
)
def test_bad_parameters_are_refused(address, query, message):
    for path in ("/predict", "/stream"):
        answer = send(address, f"{path}?{query}", FILES[0])
        assert answer.status == 400
        assert message in answer.json["error"]


def _as(kind):
    """An image in a format that Pillow reads, and the server does not."""
    file = io.BytesIO()
    Image.new("RGB", (16, 16)).save(file, kind)
    return file.getvalue()


def test_bodies_that_are_not_an_image_are_refused(address):
    cut = FILES[0][:100]
    for body, status, message in (
        (b"", 400, "the request has no image"),
        (b"hello", 415, "cannot be read as an image (not an image)"),
        (cut, 415, "cannot be read as an image"),
        *((encoded, 415, "(not an image)") for encoded in (_as("ICO"), _as("EPS"), _as("TIFF"))),
    ):
        answer = send(address, "/predict", body)
        assert (answer.status, message in answer.json["error"]) == (status, True), answer.body


def test_damaged_forms_are_refused(address):
    kind = "multipart/form-data; boundary=limit"
    for body, message in (
        (b"no form", "the multipart body cannot be read"),
        (form(FILES[0], "picture")[0], "no file in the field `image`"),
        (form(FILES[0], size="3")[0], "there is no parameter 'size'"),
    ):
        answer = send(address, "/predict", body, **{"Content-Type": kind})
        assert answer.status == 400
        assert message in answer.json["error"]
    answer = send(address, "/predict?threshold=1", form(FILES[0], deadline_ms="9")[0], **{"Content-Type": kind})
    assert "several values of threshold and deadline_ms" in answer.json["error"]


def test_large_bodies_and_images_are_refused(small):
    large, wide = bytes(30_000), png(np.zeros((3, 2, 201), np.uint8))
    assert len(wide) < SMALL.bytes
    for answer in (
        send(small, "/predict", large),
        send(small, "/predict", iter([bytes(1000)] * 30)),
        send(small, "/predict", large, Expect="100-continue"),
        send(small, "/predict", form(large)[0], **{"Content-Type": form(large)[1]}),
    ):
        assert answer.status == 413
        assert "the body has more than 5,000 bytes" in answer.json["error"]
    answer = send(small, "/predict", wide)
    assert answer.status == 413
    assert "201 x 2 pixels, this server takes at most 400" in answer.json["error"]


def test_other_paths_and_methods_are_refused_with_those_that_exist(address):
    for path, method, status in (("/", "GET", 404), ("/predict", "GET", 405), ("/docs", "GET", 404)):
        answer = send(address, path, method=method)
        assert answer.status == status
        assert f"there is no GET {path}: use POST /predict, POST /stream" in answer.json["error"]


def test_requests_above_the_limit_are_refused_and_the_others_answered(folder, monkeypatch):
    runner = Runner(folder)
    gate = Gate(runner, monkeypatch)
    with running(Service(runner, SMALL)) as address, ThreadPoolExecutor(2) as clients:
        accepted = [clients.submit(send, address, "/predict?threshold=1", file) for file in FILES[:2]]
        wait_until_in_flight(address, 2)
        answer = send(address, "/predict", FILES[2])
        gate.opened.set()
        assert (answer.status, answer.headers["retry-after"]) == (429, "1")
        assert "2 requests are being answered" in answer.json["error"]
        assert [each.result(TIMEOUT).status for each in accepted] == [200, 200]
        assert send(address, "/predict", FILES[2]).status == 200
        assert value_of(address, 'cascaded_requests_total{endpoint="/predict",status="429"}') == 1


def value_of(address, name):
    """A value of the metrics."""
    found = re.findall(rf"^{re.escape(name)} (.*)$", send(address, "/metrics").body.decode(), flags=re.MULTILINE)
    return float(found[0]) if found else 0.0


def wait_until_in_flight(address, count):
    """Until the server has accepted this many requests."""
    wait_until(lambda: value_of(address, "cascaded_requests_in_flight") >= count, seconds=TIMEOUT)


def test_accepted_requests_are_answered_before_the_server_stops(folder, monkeypatch):
    runner = Runner(folder)
    gate = Gate(runner, monkeypatch)
    with ThreadPoolExecutor(3) as clients:
        with running(Service(runner)) as address:
            asked = [clients.submit(send, address, "/predict?threshold=1", file) for file in FILES[:2]]
            asked.append(clients.submit(send, address, "/stream", FILES[2]))
            wait_until_in_flight(address, 3)
            opener = Thread(target=lambda: (refuses_connections(address), gate.opened.set()))
            opener.start()  # it opens the gate after the server was stopped
        opener.join(TIMEOUT)
        answers = [each.result(TIMEOUT) for each in asked]
    assert [answer.status for answer in answers] == [200] * 3
    assert answers[0].json["step"] == LAST
    assert len(answers[2].events) == LAST


def refuses_connections(address):
    """Until nobody listens at an address."""
    where = urlsplit(address)

    def is_refused():
        try:
            socket.create_connection((where.hostname, where.port), timeout=TIMEOUT).close()
        except OSError:
            return True
        return False

    wait_until(is_refused, seconds=TIMEOUT)


def test_metrics_count_requests_predictions_and_batches(folder):
    with running(Service(Runner(folder))) as address:
        send(address, "/predict?threshold=1", FILES[0])
        send(address, "/stream?deadline_ms=0.000001", FILES[0])
        send(address, "/predict", b"hello")
        answer = send(address, "/metrics")
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        for name, value in (
            ('cascaded_requests_total{endpoint="/predict",status="200"}', 1),
            ('cascaded_requests_total{endpoint="/predict",status="415"}', 1),
            ('cascaded_requests_total{endpoint="/stream",status="200"}', 1),
            (f'cascaded_predictions_total{{step="{LAST}"}}', 1),
            ('cascaded_predictions_total{step="1"}', 1),
            ("cascaded_deadline_misses_total", 1),
            ("cascaded_requests_in_flight", 0),
            ("cascaded_prediction_seconds_count", 2),
            ("cascaded_batch_size_count", LAST + 1),
            ("cascaded_batch_size_sum", LAST + 1),
            ('cascaded_batch_size_bucket{le="1"}', LAST + 1),
            ('cascaded_batch_size_bucket{le="+Inf"}', LAST + 1),
        ):
            assert value_of(address, name) == value, name
    for line in answer.body.decode().splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) \w+ .+|\w+(\{\w+=\"[^\"]*\"(,\w+=\"[^\"]*\")*\})? [\d.e+-]+", line), line


def test_a_client_that_leaves_a_stream_is_forgotten(folder, monkeypatch):
    runner = Runner(folder)
    gate = Gate(runner, monkeypatch)
    with running(Service(runner)) as address:
        where = urlsplit(address)
        with socket.create_connection((where.hostname, where.port), timeout=TIMEOUT) as client:
            head = f"POST /stream HTTP/1.1\r\nHost: x\r\nContent-Length: {len(FILES[0])}\r\n\r\n"
            client.sendall(head.encode() + FILES[0])
            assert gate.reached.wait(TIMEOUT)
        gate.opened.set()
        wait_until(lambda: not value_of(address, "cascaded_requests_in_flight"), seconds=TIMEOUT)
        assert send(address, "/predict?threshold=1", FILES[1]).status == 200


def test_an_error_of_the_network_is_a_server_error(folder, monkeypatch):
    runner = Runner(folder)

    def fail(*_):
        raise InputError("a file is damaged: export again")

    monkeypatch.setattr(runner, "step", fail)
    with running(Service(runner)) as address:
        answer = send(address, "/predict?threshold=1", FILES[0])
        assert (answer.status, answer.json["error"]) == (500, "a file is damaged: export again")
        assert send(address, "/stream", FILES[0]).events == [("error", {"error": "a file is damaged: export again"})]
        assert send(address, "/predict", FILES[0]).status == 200  # one full pass


def test_health_describes_the_network(address):
    health = send(address, "/health").json
    assert health["status"] == "ok"
    assert (health["input"], health["classes"], health["steps"]) == (list(SHAPE), list("abcde"), LAST)


def test_a_port_in_use_is_refused():
    with bind("127.0.0.1", 0) as taken, pytest.raises(InputError, match="give another --host or --port"):
        bind("127.0.0.1", taken.getsockname()[1])


def test_the_server_does_not_import_torch():
    code = "import sys, cascaded.runtime.server; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=TIMEOUT, check=True)
    assert done.stdout.strip() == "False"
