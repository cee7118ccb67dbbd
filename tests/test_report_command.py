"""`cascaded report`: one page about runs, the same every time, and nothing else touched."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from cascaded.cli.main import run
from cascaded.errors import InputError
from cascaded.files import read_json
from cascaded.report.sections import DRAW, SECTIONS
from cascaded.report.write import read_table
from tests.made_runs import made_run, made_runs
from tests.made_table import made_table

ODD = "<script>alert(1)</script> \"&'"
KINDS = ("csv", "pdf", "png", "svg")
METHODS = (("cascaded-td", 0.0), ("cascaded-ce", None))


class Page(HTMLParser):
    """The words of a page as they are read, and its tags."""

    def __init__(self, file):
        super().__init__()
        self.words, self.tags = [], []
        self.feed(file.read_text(encoding="utf-8"))
        self.text = re.sub(r"\s+", " ", " ".join(self.words))

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.words.append(data)


def report(*words):
    run(["report", *map(str, words)])


def content(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture(scope="module")
def patch():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("cascaded.figures.files.DPI", 40)
        yield patched


@pytest.fixture(scope="module")
def table():
    return made_table("speed_accuracy", "persistent_noise", methods=METHODS, seeds=(0, 1))


@pytest.fixture(scope="module")
def place(tmp_path_factory, patch, table):
    """Two networks with two seeds each, and their report."""
    place = tmp_path_factory.mktemp("report")
    made_runs(place / "runs", table)
    report(place / "runs", "-o", place / "report", "--title", f"About {ODD}")
    return place


def test_a_page_and_four_files_per_figure_are_written(place):
    files = content(place / "report")
    assert {name for name in files if "/" not in name} == {"index.html"}
    names = {name for name in files if name.startswith("figures/") and not name.endswith(".drawn.json")}
    keys = {Path(name).stem for name in names}
    speed = {"accuracy-per-step", "speed-accuracy", "speed-accuracy-operations", "stopping-rules"}
    assert keys == speed | {"persistent-noise", "noises"}
    assert names == {f"figures/{key}.{kind}" for key in keys for kind in KINDS}
    page = (place / "report" / "index.html").read_text()
    assert all(f"figures/{key}.{kind}" in page for key in keys for kind in KINDS)


def test_the_numbers_beside_a_figure_are_those_of_the_table(place, table):
    drawn = pd.read_csv(place / "report" / "figures" / "accuracy-per-step.csv")
    own = table[(table["metric"] == "accuracy_per_step") & (table["method"] == "cascaded-td")]
    own = own[(own["analysis"] == "speed_accuracy") & (own["time"] == "coarse")]
    expected = own.groupby("x")["value"].mean().tolist()
    assert drawn[drawn["name"] == "CascadedTD(0)"]["value"].tolist() == pytest.approx(expected)
    assert set(drawn["n_seeds"]) == {2}
    assert f"{100 * expected[-1]:.1f} %" in Page(place / "report" / "index.html").words


def test_every_figure_has_a_function_and_the_page_has_at_most_a_dozen():
    figures = [figure for section in SECTIONS for figure in section.figures]
    keys = {each.key for figure in figures for each in (figure, *figure.more)}
    assert keys | {"accuracy-per-step"} == set(DRAW)
    assert (
        len(figures) + len(("accuracy-per-step", "gallery", "schedules")) <= 14
    )  # taxonomy and people only where recorded


@pytest.fixture(scope="module")
def replaced(place):
    """The same report again, files of somebody else beside it, and then another report in its place."""
    out = place / "again"
    report(place / "runs", "-o", out, "--title", f"About {ODD}")
    first = content(out)
    mine = [out / "notes.txt", out / "figures" / "mine.svg", out / "figures" / "deep" / "a.png"]
    mine[-1].parent.mkdir()
    for file in mine:
        file.write_text("mine")
    drawn = out / "figures" / ".drawn.json"
    drawn.write_text(json.dumps([*read_json(drawn), "../notes.txt", "deep/a.png", "gone.svg"]))
    (out / "figures" / "gone.svg").write_text("of an earlier report")
    bare = made_run(place / "my runs" / "0", data="digits").parent
    report(bare, "--out", out)
    return out, first, mine, bare


def test_the_same_runs_make_the_same_bytes(place, replaced):
    assert replaced[1] == content(place / "report")


def test_figures_of_an_earlier_report_are_removed_and_other_files_stay(replaced):
    out, first, mine, _ = replaced
    assert all(file.read_text() == "mine" for file in mine)
    left = {name for name in content(out) if name.startswith("figures/")} - {"figures/mine.svg", "figures/deep/a.png"}
    assert left == {"figures/.drawn.json"}
    assert len([name for name in first if name.endswith(".csv")]) > 1


def test_for_a_run_with_nothing_recorded_the_page_has_the_commands(replaced):
    out, _, _, bare = replaced
    page = Page(out / "index.html")
    assert f"cascaded record '{bare}' --activations 40" in page.words
    noise = f"cascaded record '{bare}' --noise occlusion && cascaded analyze '{bare}' --only persistent_noise"
    assert noise in page.words
    assert page.text.count("not measured") >= 7  # every claim


@pytest.mark.usefixtures("patch")
def test_odd_names_are_text_and_nothing_else(place, tmp_path):
    rows = made_table("speed_accuracy", methods=METHODS[:1], seeds=(0,)).assign(data=ODD, run="猫 $x$/0")
    made_runs(tmp_path / "runs", rows)
    report(tmp_path / "runs", "-o", tmp_path / "report")
    page, plain = Page(tmp_path / "report" / "index.html"), Page(place / "report" / "index.html")
    assert page.tags.count("script") == plain.tags.count("script")
    assert "<script>alert" not in (tmp_path / "report" / "index.html").read_text()
    assert f"Anytime prediction on {Path(ODD).name}" in page.text
    assert "猫 $x$" in page.text
    assert f"About {ODD}" in plain.text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], r"no run is given: add one, as in .*cascaded report runs/td0/0 -o report"),
        (["nowhere"], "nowhere does not exist: give the folder of a run, or one above it"),
        (["{empty}"], "contains no run, no config.json is in or below it: train one with cascaded train"),
        (["{run}", "-o", "{file}"], "--out is .*file, which is a file: give a folder"),
        (["{run}", "-o", "{other}"], "was not made by cascaded report: choose another --out, or move it away"),
    ],
)
def test_wrong_arguments_are_refused_with_the_fix(tmp_path, words, sentence):
    places = {"run": made_run(tmp_path / "0"), "empty": tmp_path / "empty", "file": tmp_path / "file"}
    places["other"] = tmp_path / "other"
    for folder in ("empty", "other"):
        places[folder].mkdir()
    for file in (places["file"], places["other"] / "index.html"):
        file.write_text("mine")
    with pytest.raises(InputError, match=sentence) as caught:
        report(*(word.format(**places) for word in words))
    assert "\n" not in str(caught.value)
    assert places["file"].read_text() == (places["other"] / "index.html").read_text() == "mine"


def test_the_report_does_not_import_torch(place, tmp_path):
    words = ["report", str(place / "runs"), "-o", str(tmp_path / "out")]
    code = f"import sys; from cascaded.cli.main import run; run({words!r}); sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
    assert (tmp_path / "out" / "index.html").exists()


def test_validation_images_are_left_out_where_there_are_others(tmp_path, table):
    both = pd.concat([table, table.assign(split="validation", value=0.5)], ignore_index=True)
    only = table.assign(split="validation", data="folder")
    read = read_table([made_runs(tmp_path, pd.concat([both, only.assign(run=only["run"] + "x")]))])
    assert set(zip(read["data"], read["split"], strict=True)) == {("cifar10", "test"), ("folder", "validation")}
    assert len(read) == 2 * len(table)
