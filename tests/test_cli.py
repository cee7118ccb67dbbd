"""The command line as a newcomer types it, right and wrong."""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from cascaded.cli import main as cli
from cascaded.cli import usage
from cascaded.cli.main import COMMANDS
from tests.pictures import encoded, picture
from tests.tiny_runs import tiny_run  # noqa: F401


@pytest.fixture(scope="module")
def place(tiny_run, tmp_path_factory):  # noqa: F811
    """A folder with an image, an empty folder, a run, and a page that is not ours."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "photo.png").write_bytes(encoded(picture(size=(40, 30))))
    for name in ("empty", "mine"):
        (folder / name).mkdir()
    (folder / "mine" / "index.html").write_text("mine")
    shutil.copytree(tiny_run(), folder / "run" / "0")
    return folder


def started(*arguments, **options):
    """The command line in a process of its own, as a shell starts it."""
    command = [sys.executable, "-m", "cascaded", *arguments]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, timeout=300, **options)


# --- help

HELPING = """
import io, json, sys
from contextlib import redirect_stdout
from cascaded.cli.main import main

output = {}
for words in json.loads(sys.argv[1]):
    sys.argv, code = ["cascaded", *words], 0
    with redirect_stdout(io.StringIO()) as printed:
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    output[" ".join(words)] = code, printed.getvalue(), "torch" in sys.modules
print(json.dumps(output))
"""
HELP = [["--version"], ["--help"], *([name, "--help"] for name in COMMANDS)]


def help_texts(columns):
    """Exit code, output and whether torch was imported, for every way to get help; all in one process."""
    command, env = [sys.executable, "-c", HELPING, json.dumps(HELP)], {**os.environ, "COLUMNS": str(columns)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, env=env)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def helped():
    """All help texts in a terminal of 80 columns."""
    return help_texts(80)


@pytest.fixture(scope="module")
def helped_wide():
    """All help texts in a terminal with room for every paragraph on one line."""
    return help_texts(4_000)


def test_help_lists_every_command_with_an_example_and_does_not_import_torch(helped):
    assert {(code, torch) for code, _, torch in helped.values()} == {(0, False)}
    assert all(f"\n  {name} " in helped["--help"][1] for name in COMMANDS)
    assert "Example:" in helped["--help"][1]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_has_an_example_and_what_happens_by_default(name, helped):
    text = " ".join(helped[f"{name} --help"][1].replace("│", " ").split())
    assert f"Example: cascaded {name}" in text
    assert "(default: " in text
    assert not [each for each in ("(default: None)", "(default: )", "{None}") if each in text]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_the_terminal_and_an_example_is_on_one_line(name, helped):
    lines = helped[f"{name} --help"][1].splitlines()
    assert [line for line in lines if len(line) > 80 and not line.startswith(("Example:", "usage:"))] == []
    assert [line for line in lines if line.count("Example:") > 1] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_no_line_of_a_help_text_ends_before_the_terminal_does(name, helped_wide):
    text = helped_wide[f"{name} --help"][1].replace("\u2502", " ")
    about, _, options = text.partition("options")
    assert re.findall(r"^\S.*\n\S.*", about, flags=re.MULTILINE) == []
    lines = [line.rstrip() for line in options.splitlines()]
    pairs = [(before, line) for before, line in itertools.pairwise(lines) if re.match(r" {9,}\S", line)]
    assert [line for before, line in pairs if re.search(r"\S {2,}\S", before) or re.match(r" {9,}\S", before)] == []


# --- wrong command lines

HELPS = "leave it out, or see cascaded"
WRONG = [
    ("", "no command given: give one of demo"),
    ("bnech", "there is no command 'bnech': did you mean bench?"),
    ("xyz", "there is no command 'xyz': see cascaded --help"),
    ("clock runs", "the command clock is called latency: see cascaded --help"),
    ("crossval", "the command crossval is called sweep --folds 10: see cascaded --help"),
    # words that fit no option
    ("predict x --threshold abc", "--threshold is 'abc': give a number; see cascaded predict --help"),
    ("predict x --threshold=abc", "--threshold is 'abc': give a number; see cascaded predict --help"),
    ("predict x --threshold 0.5 --threshold abc", "--threshold is 'abc': give a number; see cascaded predict --help"),
    ("predict x --threshold", "--threshold has no value: give a number; see cascaded predict --help"),
    ("predict x --threshold 0.9 0.8", f"unexpected argument '0.8': {HELPS} predict --help"),
    ("predict x --thresholdd=0.1", "there is no option --thresholdd of cascaded predict: did you mean --threshold?"),
    ("predict x --no-figre", "there is no option --no-figre of cascaded predict: did you mean --no-figure?"),
    ("predict x --figure=yes", f"unexpected argument 'yes': {HELPS} predict --help"),
    ("predict x -s 3", "there is no option -s of cascaded predict: see cascaded predict --help"),
    ("train foo", f"unexpected argument 'foo': {HELPS} train --help"),
    ("train --epochs 1.5", "--epochs is '1.5': give a whole number; see cascaded train --help"),
    ("train --data", "--data has no value: give a word; see cascaded train --help"),
    ("train --out", "--out has no value: give a path; see cascaded train --help"),
    ("train --val_frac x", "there is no option --val-frac of cascaded train: did you mean --val-fraction?"),
    ("train --thr 3", "there is no option --thr of cascaded train: did you mean --threads?"),
    ("train --rate 0.1", "--rate is called --lr"),
    ("train --model cascaded-td", "--model is called --method"),
    ("sweep --models cascaded-td --jobs 1", "--models is called --methods"),
    ("analyze run --out comparison", "--out is called --csv"),
    ("bench --width wide 3", "--width is 'wide 3': give whole numbers; see cascaded bench --help"),
    ("latency run --thresholds 0.5 x", "--thresholds is '0.5 x': give numbers; see cascaded latency --help"),
    ("data shoe", "action is 'shoe': give one of list, show, check, noise"),
    ("data --shwo", "there is no option --shwo of cascaded data: see cascaded data --help"),
    ("data", "action is missing: give one of list, show, check, noise"),
    # values that a command refuses
    ("bench --width 0", "--width is 0: give at least 1"),
    ("bench --batch-size", "--batch-size is 0: give at least 1"),
    ("bench --record -1", "--record is -1: give at least 0"),
    ("bench --json .", "--json is ., a folder: give the name of a file in it"),
    ("bench --json /proc/nowhere/bench.json", "/proc/nowhere cannot be written"),
    ("bench --image-size 1 --batch-size 1", "give a batch size of at least 2"),
    ("bench --arch alexnet", "--arch is 'alexnet': give one of resnet18"),
    ("train --data cifar11", "there is no data set 'cifar11': did you mean cifar10?"),
    ("train --data no/such/folder", "there is no file or folder no/such/folder"),
    ("train --method cascaded-ce --lam 0", "cascaded-ce is trained on the last step only"),
    ("train --lam half", "--lam is 'half': give a number, 0.5, or several over the epochs, 1:0"),
    ("train --lam 1:0:2", "lam is 2.0: give a number from 0 to 1"),
    ("train --fold 11/10", "--fold is '11/10': give its number and how many there are, from 1/10 to 10/10"),
    ("train --method td", "cascaded-td"),
    ("train --threads 0", "threads is 0: give at least 1"),
    ("train --device toaster", "give auto, cpu, cuda"),
    ("train --label-column foo", "has no column 'foo'"),
    ("train --noise fog", "fog"),
    ("train --out /proc/nowhere", "cannot be written"),
    ("sweep --num-workers 0", "num_workers is 0: give at least 1"),
    ("sweep --seeds", "--seeds is empty: give at least one"),
    ("sweep --methods cascaded-td --lam 7", "lam is 7.0"),
    ("data show", "show needs a data set: try cascaded data show digits"),
    ("data list digits", "list needs no name, 'digits' was given"),
    ("data show digits --out sheet.jpg", "give a name that ends in .png"),
    ("data show digits --out .", "a folder: give the name of a file in it"),
    ("predict", "no image is given: add one, as in cascaded predict photo.jpg"),
    ("predict gone.png", "there is no file or folder gone.png"),
    ("predict empty", "empty contains no images"),
    ("predict /dev/null", "/dev/null is neither a file nor a folder"),
    ("predict photo.png --threshold 1.5", "--threshold is 1.5: give a number from 0 to 1"),
    ("predict photo.png --threshold nan", "--threshold is nan: give a number from 0 to 1"),
    ("predict photo.png --top 0", "--top is 0: give at least 1"),
    ("predict photo.png --out photo.png", "--out is photo.png, which is a file"),
    (f"predict photo.png --out {'x' * 300}", "File name too long"),
    ("predict photo.png --model nonsense", "there is no network 'nonsense'"),
    ("predict photo.png --kernel fast", "there is no kernel 'fast'"),
    ("models --save out", "--save is out, but no network is given: give one"),
    ("models cifar10-td0 --save run", "--save is run, which exists: give a new folder"),
    *((each, "no run is given: add one, as in ") for each in ("record", "latency", "analyze", "report")),
    *(
        (f"{each} empty", "empty contains no run, no config.json is in or below it")
        for each in ("record", "latency", "report")
    ),
    ("record nowhere", "there is no folder nowhere: give the folder of a run, such as runs/td0/0"),
    ("record run --kernel ewz:0.9", "there is no kernel 'ewz:0.9': give osd (one-step delay), none, ews:0.9"),
    ("record run --kernel ews:much", "kernel is 'ews:much', 'much' is not a number: give osd"),
    ("record run --noise oclusion", "noise is 'oclusion', known are focus, perlin, occlusion, resolution, "),
    ("record run --split tset", "digits has no split 'tset', there are train, test: use one of them"),
    ("record run --data digist", "there is no data set 'digist': did you mean digits?"),
    ("record run --steps 0", "--steps is 0: give at least 1"),
    ("record run --device toaster", "--device is toaster: give auto, cpu, cuda, cuda:1 or mps"),
    ("analyze nowhere", "there is no folder nowhere"),
    ("analyze run", "no trace is recorded in run"),
    ("analyze run --only speed_acuracy", "there is no analysis 'speed_acuracy': did you mean speed_accuracy"),
    ("analyze run --unsettled-fraction 2", "--unsettled-fraction is 2.0: give 0 or more"),
    ("analyze run --seed -1", "--seed is -1: give 0 or more"),
    ("analyze run --draws 1", "--draws 1: give at least 1 and 2"),
    ("analyze run --claim-draws 100", "--claim-draws is 100 and --draws 200: give at least as many, or leave it out"),
    ("report nowhere", "nowhere does not exist: give the folder of a run, or one above it"),
    ("report run -o photo.png", "--out is photo.png, which is a file: give a folder"),
    ("report run -o mine", "was not made by cascaded report: choose another --out, or move it away"),
    ("demo --num-workers 0", "num_workers is 0: give at least 1"),
    ("demo --out photo.png", "which is a file: give a folder"),
    ("latency nowhere", "there is no folder nowhere: give the folder of a run"),
    ("latency run --thresholds 1.5", "--thresholds is 1.5: give a number from 0 to 1"),
    ("latency run --thresholds", "--thresholds is empty: give at least one"),
    ("latency run --batch-sizes 0", "--batch-sizes is 0: give at least 1"),
    ("latency run --max-images 0", "--max-images is 0: give at least 1"),
]
WRONG += [
    (f"{each} --xyzzy 3", f"no option --xyzzy of cascaded {each}: see cascaded {each} --help") for each in COMMANDS
]


@pytest.fixture
def refused(place, monkeypatch, capsys):
    """What a command line prints that ends with exit code 2; in this process, which has torch already."""

    def run(line):
        monkeypatch.chdir(place)
        monkeypatch.setattr(sys, "argv", ["cascaded", *line.split()])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        assert (ended.value.code, out) == (2, "")
        return err

    return run


@pytest.mark.parametrize(("line", "message"), WRONG, ids=[line[:60] for line, _ in WRONG])
def test_a_wrong_command_line_ends_in_one_sentence_and_exit_code_two(line, message, refused):
    error = refused(line)
    assert message in error
    assert error.startswith("cascaded: ")
    assert error.count("\n") == 1


def test_without_the_hook_of_tyro_an_error_is_printed_in_a_box(monkeypatch, refused):
    monkeypatch.delattr(usage.tyro_errors, "on_parse_error")
    assert "could not convert string to float" in refused("predict x --threshold abc")
    monkeypatch.setattr(usage, "tyro_errors", None)
    assert "could not convert string to float" in refused("predict x --threshold abc")


def test_a_wrong_command_line_shows_no_traceback():
    output = started("bench", "--width", "0")
    assert (output.returncode, output.stderr) == (2, "cascaded: --width is 0: give at least 1\n")


def test_a_closed_pipe_shows_no_traceback():
    reading, writing = os.pipe()
    os.close(reading)
    output = started("--help", stdout=writing, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    os.close(writing)
    assert (output.returncode, output.stderr) == (141, "")


@pytest.mark.parametrize(
    ("statement", "modules"),
    [
        ("import cascaded", {"torch", "huggingface_hub", "pandas"}),
        ("from cascaded.analysis import speed_accuracy, selection_latency, prototypicality", {"torch"}),
        ("import cascaded.traces.store, cascaded.traces.activations", {"torch"}),
        ("import cascaded.cli.published, cascaded.paper.scales", {"torch"}),
    ],
)
def test_imports_are_light(statement, modules):
    program = f"import sys\n{statement}\nsys.exit(bool({modules} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=300).returncode == 0
