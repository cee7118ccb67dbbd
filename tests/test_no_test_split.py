"""A folder of images without a test split: from training to results on its validation split, without any --split."""

import io
import shlex
from contextlib import redirect_stderr, redirect_stdout

import pytest

from cascaded.cli.main import run
from cascaded.errors import InputError
from cascaded.results.analyzed import find_analyzed
from cascaded.results.registry import has_test_split, missing_recordings
from cascaded.results.table import load
from cascaded.traces.select import select_images
from cascaded.training.load import load_run
from tests.pictures import image_folder
from tests.tiny_runs import tiny_run as tiny_run

TRAIN = shlex.split(
    "--width 4 --epochs 1 --batch-size 8 --val-fraction 0.5 --image-size 8 --classes bee ant --threads 1"
)
IMAGES = 12


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """The outputs of all commands, by name, and the folder they were typed in."""
    place = tmp_path_factory.mktemp("my photos")
    image_folder(place / "data", ["ant", "bee", "cat"], each=IMAGES, gray=True)
    runs, printed = str(place / "runs"), {}
    commands = {
        "train": ["--data", str(place / "data"), "--out", runs, *TRAIN],
        "record": [runs, "--threads", "1"],
        "analyze": [runs, "--epochs", "1"],
    }
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("CASCADED_CACHE", str(place / "cache"))
        for command, words in commands.items():
            printed[command] = _printed(command, words)
        yield place, printed


def _printed(command, words):
    with redirect_stdout(io.StringIO()) as text, redirect_stderr(text):
        run([command, *words])
    return text.getvalue()


def test_the_validation_split_is_recorded_and_analyzed_and_one_line_names_it(path):
    place, printed = path
    assert f"{place / 'data'} has no test split: its {IMAGES} validation images were recorded" in printed["record"]
    assert f"of the validation split, {place / 'data'} has no test split" in printed["analyze"]
    (analyzed,) = find_analyzed([place / "runs"])
    assert not has_test_split(analyzed.runs[0], analyzed.traces)
    df = load(place / "runs", "speed_accuracy")
    assert (set(df.split), set(df.n_items)) == ({"validation"}, {IMAGES})


def test_nothing_that_is_called_missing_is_the_test_split(path):
    place, printed = path
    for text in printed.values():
        assert "--split test" not in text
    (analyzed,) = find_analyzed([place / "runs"])
    reason = f"it trains on one split and tests on another, and {place / 'data'} has the validation split only"
    for name in ("learned_stopper", "out_of_distribution"):
        assert missing_recordings(analyzed.runs[0], name) == reason
        assert f"not measured: {name}" in printed["analyze"]
    assert reason in printed["analyze"]


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
    image_folder(tmp_path / "val", ["validation/ant", "validation/bee"], gray=True)
    images, items = select_images(net, str(tmp_path / "val"))
    assert (images.split, len(items)) == ("validation", 6)
    image_folder(tmp_path / "train", ["ant", "bee"], gray=True)
    with pytest.raises(InputError, match="has no split 'test'"):
        select_images(net, str(tmp_path / "train"))


def test_data_with_a_test_split_is_shown_by_it(tiny_run):
    images, _ = select_images(load_run(tiny_run()))
    assert images.split == "test"
    assert has_test_split(tiny_run(), [])
