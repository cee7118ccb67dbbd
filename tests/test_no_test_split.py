"""A folder of images without a test split: from training to the report on its validation split, without any --split."""

import html
import io
import json
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout

import pytest

from cascaded.cli.main import run
from cascaded.errors import InputError
from cascaded.report.look import STYLE
from cascaded.results.subjects import find_subjects
from cascaded.traces.select import select_images
from cascaded.training.load import load_run
from tests.pictures import image_folder
from tests.tiny_runs import tiny_run as tiny_run

TRAIN = shlex.split("--width 4 --epochs 1 --batch 8 --held-out 0.5 --size 8 --classes bee ant --threads 1")
IMAGES = 12


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """The outputs of all commands, by name, and the folder they were typed in."""
    place = tmp_path_factory.mktemp("my photos")
    image_folder(place / "data", ["ant", "bee", "cat"], each=IMAGES, grey=True)
    runs, report, printed = str(place / "runs"), str(place / "report"), {}
    commands = {
        "train": ["--data", str(place / "data"), "--out", runs, *TRAIN],
        "record": [runs, "--threads", "1"],
        "analyse": [runs, "--epochs", "1"],
        "report": [runs, "--out", report],
    }
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("CASCADED_CACHE", str(place / "cache"))
        patched.setitem(STYLE, "pdf.fonttype", 3)  # whole fonts: cutting them takes longer than drawing
        patched.setattr("cascaded.report.files.DPI", 40)
        for command, words in commands.items():
            printed[command] = _printed(command, words)
        yield place, printed


def _printed(command, words):
    with redirect_stdout(io.StringIO()) as text, redirect_stderr(text):
        run([command, *words])
    return text.getvalue()


def test_the_validation_split_is_recorded_and_analysed_and_one_line_says_so(path):
    place, printed = path
    assert f"{place / 'data'} has no test split: its {IMAGES} validation images were recorded" in printed["record"]
    assert f"{place / 'data'} has no test split: results are of the validation split" in printed["analyse"]
    (subject,) = find_subjects([place / "runs"])
    assert not subject.has_test
    assert {found.config.split for found in subject.traces} == {"validation"}
    answers = json.loads(subject.file.read_text())["analyses"]
    (speed,) = answers["speed_accuracy"].values()
    assert (speed["asked"]["split"], speed["asked"]["count"]) == ("validation", IMAGES)


def test_nothing_that_is_called_missing_is_the_test_split(path):
    place, printed = path
    page = html.unescape((place / "report" / "index.html").read_text())
    for text in (printed["record"], printed["analyse"], printed["report"], page):
        assert "--split test" not in text
    (subject,) = find_subjects([place / "runs"])
    missing = json.loads(subject.file.read_text())["missing"]
    way = f"it trains on one split and tests on another, and {place / 'data'} has the validation split alone"
    assert missing["learned_stopper"] == missing["out_of_distribution"] == way
    assert way in page


def test_the_report_shows_the_validation_split_in_figures_and_claims(path):
    place, _ = path
    page = html.unescape((place / "report" / "index.html").read_text())
    assert f"validation, 9 cycles, {IMAGES} images" in page
    assert "area, threshold above deadline" in page
    assert f"too few images for a verdict ({IMAGES}; at least 100)" in page


def test_the_sweep_that_the_report_suggests_is_of_the_same_images(path):
    place, _ = path
    page = html.unescape((place / "report" / "index.html").read_text())
    commands = [shlex.split(each) for each in re.findall(r"<code>(.+? sweep .+?)</code>", page)]
    own = [words for words in commands if str(place / "data") in words]
    assert own
    data = ["--data", str(place / "data"), "--size", "8", "--classes", "bee", "ant", "--methods"]
    for words in own:
        assert words[words.index("sweep") + 1 :][: len(data)] == data
        planned = _printed("sweep", [*words[words.index("sweep") + 1 :], "--dry-run"])
        assert "cascaded-ce" in planned


def test_a_test_split_that_is_asked_for_and_not_there_is_refused(path):
    place, _ = path
    with pytest.raises(InputError, match=r"has no split 'test', there are train.*validation is the part left out"):
        run(["record", str(place / "runs"), "--split", "test"])


def test_early_exit_is_timed_on_the_validation_split(path):
    place, _ = path
    text = _printed("latency", [str(place / "runs"), "--thresholds", "0.9", "--batch-sizes", "4", "--threads", "1"])
    assert "has no test split: its validation images were used" in text


def test_a_run_with_neither_split_is_refused_with_both_ways_out(path):
    place, _ = path
    out = place / "none held out"
    none = [word if word != "0.5" else "0" for word in TRAIN]
    _printed("train", ["--data", str(place / "data"), "--out", str(out), *none])
    with pytest.raises(InputError, match=r"no test split and .* without a validation split: add test images, or train"):
        run(["record", str(out)])


def test_other_data_without_a_test_split_is_shown_by_its_validation_split(tiny_run, tmp_path):
    net = load_run(tiny_run())
    image_folder(tmp_path / "val", ["validation/ant", "validation/bee"], grey=True)
    images, items = select_images(net, str(tmp_path / "val"))
    assert (images.split, len(items)) == ("validation", 6)
    image_folder(tmp_path / "train", ["ant", "bee"], grey=True)
    with pytest.raises(InputError, match="has no split 'test'"):
        select_images(net, str(tmp_path / "train"))


def test_data_with_a_test_split_is_shown_by_it(tiny_run):
    images, _ = select_images(load_run(tiny_run()))
    assert images.split == "test"
    (subject,) = find_subjects([tiny_run()])
    assert subject.has_test
