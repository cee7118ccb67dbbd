"""Progress: a bar on a terminal, a line now and then elsewhere, nothing where another process speaks."""

import os
import pty
import subprocess
import sys

import pytest

from cascaded import progress as module
from cascaded.progress import minutes, progress, readable

PROGRAM = """
from cascaded.progress import progress
with progress("counting", 3) as display:
    for k in range(3):
        display.advance(1, f"counted {k + 1}")
    display.log("a line that stays")
"""


def test_elsewhere_a_line_now_and_then(capsys, monkeypatch):
    monkeypatch.setattr(module, "EVERY", 0.0)
    with progress("counting", 4, done=1) as display:
        display.advance()
        display.advance(2, "nearly")
        display.log("a line")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("counting: 2/4, ")
    assert lines[1] == "nearly: 4/4, 0 s left"
    assert lines[2] == "a line"


def test_lines_are_not_more_frequent_than_that(capsys):
    with progress("counting", 100) as display:
        for _ in range(100):
            display.advance()
    assert capsys.readouterr().err == ""


def test_quiet_is_quiet(capsys, monkeypatch):
    monkeypatch.setattr(module, "EVERY", 0.0)
    with progress("counting", 2, quiet=True) as display:
        display.advance()
        display.log("a line")
    assert capsys.readouterr().err == ""
    assert display.done == 1


def test_on_a_terminal_a_bar():
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    subprocess.run([sys.executable, "-c", PROGRAM], stderr=follower, check=True, env=environment, timeout=300)
    os.close(follower)
    output = b""
    try:
        while block := os.read(leader, 4096):
            output += block
    except OSError:  # the end of a terminal
        pass
    os.close(leader)
    assert "counted 3" in output.decode()
    assert "3/3" in output.decode()
    assert "a line that stays" in output.decode()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (89, "89 s"), (90, "2 min"), (3600, "60 min"), (12000, "3 h 20 min")]
)
def test_durations_in_words(seconds, text):
    assert minutes(seconds) == text


def test_what_a_terminal_would_obey_or_cannot_show_is_replaced():
    assert readable("a\x1b[31m\tb\n\ud800 é") == "a\ufffd[31m\ufffdb\ufffd\ufffd é"
