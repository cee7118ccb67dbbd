"""`cascaded serve` on the command line: what it prints works as it is pasted, and signals stop it after its answers."""

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys

import pytest

import cascaded
from cascaded.cli import main as cli
from tests.exports import inputs_of, tiny_net
from tests.forked import killed_in_time
from tests.served import TIMEOUT, send

for package in ("onnx", "onnxruntime", "fastapi", "uvicorn", "python_multipart"):
    pytest.importorskip(package, reason="the server needs the extra `serve`")

RUN = "import sys; from cascaded.cli.main import main; main(); print('torch' in sys.modules)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    net, place = tiny_net("resnet"), tmp_path_factory.mktemp("a server") / "tiny"
    cascaded.export(net, place, inputs=inputs_of(net))
    return place


def test_it_prints_its_address_and_a_request_and_stops_at_a_signal(folder):
    words = [sys.executable, "-c", RUN, "serve", str(folder), "--port", "0"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process as server, killed_in_time(server):
        first, example = server.stdout.readline(), server.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+", first).group()
        assert "(4 steps)" in first
        assert pasted(example.removeprefix("try: "), address)["prediction"] in "abcde"
        server.send_signal(signal.SIGTERM)
        out, error = server.communicate(timeout=TIMEOUT)
    assert (server.returncode, out.split(), error) == (0, ["stopped", "False"], "")


def pasted(command, address):
    """The answer to a printed request: by curl itself where it is installed."""
    words = shlex.split(command)
    assert words[:2] == ["curl", "--data-binary"]
    if shutil.which("curl"):
        done = subprocess.run([*words, "--silent"], capture_output=True, timeout=TIMEOUT, check=True)
        return json.loads(done.stdout)
    with open(words[2].removeprefix("@"), "rb") as file:
        return send(address, words[3].removeprefix(address), file.read()).json


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "folder is missing: give FOLDER"),
        (["nowhere"], "nowhere has no config.json and is not an exported network"),
        (["FOLDER", "--port", "70000"], "--port is 70000: give a number from 0 to 65535"),
        (["FOLDER", "--host", "no such host"], "the server cannot listen at no such host"),
        (["FOLDER", "--max-requests", "0"], "--max-requests is 0: give at least 1"),
        (["FOLDER", "--max-megabytes", "0"], "--max-megabytes is 0.0: give a number from 0.001 to 1000"),
        (["FOLDER", "--schedule", "fast"], "--schedule"),
    ],
)
def test_bad_input_ends_in_one_sentence_and_exit_code_2(words, message, folder, monkeypatch, capsys):
    error = refused([str(folder) if word == "FOLDER" else word for word in words], monkeypatch, capsys)
    assert message in error


@pytest.mark.parametrize("package", ["fastapi", "uvicorn", "starlette.requests"])
def test_a_missing_package_is_named_with_its_extra(package, folder, monkeypatch, capsys):
    for module in ("server", "requests"):
        monkeypatch.delitem(sys.modules, f"cascaded.runtime.{module}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    error = refused([str(folder)], monkeypatch, capsys)
    assert "serving needs FastAPI and uvicorn" in error
    assert "pip install 'cascaded[serve]'" in error


def refused(words, monkeypatch, capsys):
    """The sentence in which a command ends."""
    monkeypatch.setattr(sys, "argv", ["cascaded", "serve", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    error = capsys.readouterr().err
    assert (ended.value.code, error.count("\n")) == (2, 1)
    return error
