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
from cascaded.results.table import load
from cascaded.shell import program
from tests.refused import refused

FOLDER = "my images"
"""Relative, with a space: the commands quote it."""
CHECK = f"data check '{FOLDER}'"
SMALL = "--image-size 16 --width 2 --epochs 1 --batch-size 8 --val-fraction 0.3"
TRAIN = f"train --data '{FOLDER}' --out runs/mine"
MODELS = "models runs/mine"
LATENCY = "latency runs/mine --thresholds 0.9 --batch-sizes 4 --max-images 8"
CHEAP = {"analyze": ["--epochs", "1", "--draws", "10"], "train": shlex.split(SMALL)}


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
    if words[0] == "sweep":
        return [*words, "--dry-run"]
    own = [f"{FOLDER}/dog/0.png" if word == "IMAGE..." else word for word in words]
    return [*own, *CHEAP.get(words[0], [])]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """The output of the commands of a first hour, and of every command that they or the commands after them print."""
    place, done = tmp_path_factory.mktemp("printed"), {}
    write_images(place / FOLDER)
    queue = [shlex.split(line) for line in (CHECK, TRAIN, MODELS, LATENCY)]
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(place)
        patched.setenv("CASCADED_CACHE", str(place / "cache"))
        while queue:
            words = queue.pop(0)
            if tuple(words) in done:
                continue
            text = done[tuple(words)] = printed_by(cheap(words))
            queue += [] if words[0] == "reproduce" else commands_in(text)  # it lists trainings of hours
            if words[0] == "report":
                queue += commands_on(next(place.rglob("index.html")))
        yield done


def test_every_printed_command_works_as_it_is(outputs):
    assert {"train", "record", "analyze", "report", "predict"} <= {words[0] for words in outputs}
    assert shlex.split(TRAIN) in commands_in(outputs[tuple(shlex.split(CHECK))])
    assert sum(words[0] == "record" for words in outputs) >= 3


def test_the_validation_split_is_used_throughout_and_is_named(outputs):
    text = " ".join(" ".join(text for words, text in outputs.items() if words[0] != "reproduce").split())
    assert "has no test split: its 24 validation images were recorded" in text
    assert f"of the validation split, {FOLDER} has no test split" in text
    assert "has no test split: its validation images were used" in text  # to time early exit
    assert f"it trains on one split and tests on another, and {FOLDER} has the validation split only" in text
    assert "--split test" not in text
    df = load("runs", "speed_accuracy")
    assert (set(df.split), set(df.n_items)) == ({"validation"}, {24})


@pytest.mark.usefixtures("outputs")
def test_a_split_that_is_not_there_is_refused_with_the_ways_out():
    message = "has no split 'test', there are train.*validation is the part left out"
    refused(message, printed_by, ["record", "runs", "--split", "test"])
    printed_by(shlex.split(f"train --data '{FOLDER}' --out none {SMALL.replace('0.3', '0')}"))
    message = "no test split and .* without a validation split: add test images, or train"
    refused(message, printed_by, ["record", "none"])
