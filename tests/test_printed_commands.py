"""Every command that a command or a report prints works as it is pasted, for a folder of images without test images."""

import html
import io
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pytest
import torch
from PIL import Image

from cascaded.cli import main as cli
from cascaded.shell import program

FOLDER = "my images"
"""Relative, with a space: the commands quote it."""
TRAIN = (
    f"train --out runs/mine --data '{FOLDER}' --image-size 16 --width 2 --epochs 1 --batch-size 8 --val-fraction 0.3"
)
CHEAP = {"analyze": ["--epochs", "1", "--draws", "10"]}


def write_images(folder):
    """Two classes of 40 images each; no split but `train`."""
    random = np.random.default_rng(0)
    for name in ("a cat", "dog"):
        (folder / name).mkdir(parents=True)
        for number in range(40):
            pixels = random.integers(256, size=(4, 4, 3), dtype=np.uint8)
            Image.fromarray(pixels).resize((20, 18)).save(folder / name / f"{number}.png")


def printed_by(words):
    """Run a command in this process; what it prints to both streams."""
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(out), torch.enable_grad():
        cli.run(words)
    return out.getvalue()


def commands_in(text):
    """The commands that are printed in a text, from the program's name to the end of the line or to `&&`."""
    pattern = rf"(?<![\w/.-]){re.escape(program())} (?:{'|'.join(cli.COMMANDS)})\b[^\n]*"
    found = [each for line in re.findall(pattern, text) for each in line.rstrip(" .;").split(" && ")]
    return [shlex.split(each)[len(shlex.split(program())) :] for each in found]


def commands_on(page):
    """The commands of a report: each is an element of its own."""
    found = [html.unescape(each) for each in re.findall(r"<code[^>]*>([^<]*)</code>", page.read_text())]
    return [words for each in found for words in commands_in(each)]


def cheap(words):
    """The same command with less work: no network is trained for hours in a test."""
    if words[0] == "reproduce":
        return [*words, "--commands"]
    return [*words, "--dry-run"] if words[0] == "sweep" else [*words, *CHEAP.get(words[0], [])]


@pytest.mark.timeout(600)
def test_every_printed_command_works_as_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CASCADED_CACHE", str(tmp_path / "cache"))
    write_images(tmp_path / FOLDER)
    queue, done = [shlex.split(TRAIN)], {}
    while queue:
        words = queue.pop(0)
        if tuple(words) in done:
            continue
        text = done[tuple(words)] = printed_by(cheap(words))
        queue += [] if words[0] == "reproduce" else commands_in(text)  # it lists trainings of hours
        if words[0] == "report":
            queue += commands_on(next(tmp_path.rglob("index.html")))
    kinds = {words[0] for words in done}
    assert {"train", "record", "analyze", "report"} <= kinds
    assert sum(words[0] == "record" for words in done) >= 3
