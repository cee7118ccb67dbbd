"""`cascaded report`, as it is typed: one page about some runs, the same every time, and nothing else touched."""

import ast
import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import cascaded
from cascaded.cli.main import run
from cascaded.errors import InputError
from cascaded.files import read_json
from cascaded.report.look import STYLE
from cascaded.shell import program
from tests.made_materials import accuracies, made_asked, write_answers, write_comparison
from tests.made_traces import made_run

ASKED = made_asked("speed_accuracy", steps=3)
ODD = "<script>alert(1)</script> \"&'"
KINDS = ("csv", "pdf", "png", "svg")


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
        yield patched


@pytest.fixture(scope="module")
def shown(tmp_path_factory, patch):
    """Two models with two seeds each, and their report."""
    place = tmp_path_factory.mktemp("shown")
    patch.setitem(STYLE, "pdf.fonttype", 3)  # whole fonts: cutting them takes longer than drawing
    patch.setattr("cascaded.report.files.DPI", 40)
    for model, last in (("cascaded-td", 0.7), ("cascaded-ce", 0.8)):
        for seed in (0, 1):
            answer = accuracies([0.1, 0.4 + seed / 10, last], curves={})
            write_answers(place / "runs" / model / str(seed), [(ASKED, answer)], method=model, seed=seed)
    write_comparison(place / "runs")
    report(place / "runs", "-o", place / "report", "--title", f"About {ODD}")
    return place


def test_a_page_and_four_files_a_figure_are_written(shown):
    files = content(shown / "report")
    assert {name for name in files if "/" not in name} == {"index.html"}
    names = {name for name in files if name.startswith("figures/") and not name.endswith(".drawn.json")}
    keys = {Path(name).stem for name in names}
    assert names == {f"figures/{key}.{kind}" for key in keys for kind in KINDS}
    assert "accuracy-digits-test-6-cycles-40-images" in keys
    page = (shown / "report" / "index.html").read_text()
    assert all(f"figures/{key}.{kind}" in page for key in keys for kind in KINDS)


def test_the_numbers_beside_a_figure_are_those_of_the_results(shown):
    file = shown / "report" / "figures" / "accuracy-digits-test-6-cycles-40-images.csv"
    rows = [row for row in csv.DictReader(file.read_text().splitlines()) if row["model"] == "CascadedTD(0)"]
    expected = [0.1, 0.45, 0.7]  # means over two seeds
    assert [float(row["accuracy"]) for row in rows] == pytest.approx(expected)
    assert {row["seeds"] for row in rows} == {"2"}


@pytest.fixture(scope="module")
def replaced(shown):
    """A second report of the same runs, files of somebody else beside it, and then another report in its place."""
    out = shown / "again"
    report(shown / "runs", "-o", out, "--title", f"About {ODD}")
    first = content(out)
    mine = [out / "notes.txt", out / "figures" / "mine.svg", out / "figures" / "deep" / "a.png"]
    mine[-1].parent.mkdir()
    for file in mine:
        file.write_text("mine")
    drawn = out / "figures" / ".drawn.json"
    drawn.write_text(json.dumps([*read_json(drawn), "../notes.txt", "deep/a.png", "gone.svg"]))
    (out / "figures" / "gone.svg").write_text("of an earlier report")
    place = made_run(shown / "my runs" / "0").parent
    report(place, "--out", out)
    return out, first, mine, place


def test_the_same_runs_make_the_same_bytes(shown, replaced):
    assert replaced[1] == content(shown / "report")


def test_figures_of_an_earlier_report_go_and_other_files_stay(replaced):
    out, first, mine, _ = replaced
    assert all(file.read_text() == "mine" for file in mine)
    left = {name for name in content(out) if name.startswith("figures/")} - {"figures/mine.svg", "figures/deep/a.png"}
    assert left == {"figures/.drawn.json", *(f"figures/noises.{kind}" for kind in KINDS)}
    assert len([name for name in first if name.endswith(".csv")]) > 1


def test_of_a_run_with_nothing_recorded_the_page_says_which_commands_come_first(replaced):
    out, _, _, place = replaced
    page = Page(out / "index.html")
    for words in ("", " --states 40", " --kernel ews:0.9 --steps 70", " --noise occlusion"):
        assert f"{program()} record '{place}'{words}" in page.words
    assert not [word for word in page.words if word.startswith(f"{program()} analyse")]
    assert "C1, C2, C3, C4, C5, C6, C7: not measured" in page.text
    assert "not yet" in page.text


def test_where_the_page_is_is_said(tmp_path, capsys):
    report(made_run(tmp_path / "0"), "-o", tmp_path / "my report")
    said = capsys.readouterr().out
    assert f"wrote {tmp_path / 'my report' / 'index.html'}, and 1 figure in" in said
    assert (tmp_path / "my report" / "index.html").as_uri() in said


def test_odd_names_are_text_and_nothing_else(shown, tmp_path):
    asked = made_asked("speed_accuracy", data=ODD, steps=3, what=f"{ODD} test, 3 cycles, 40 images")
    names = (ODD.replace("/", ""), "猫 $x$", "long " * 40)
    more = {"refused": {"learned_stopper": {ODD: f"it was {ODD}"}}, "passed_over": {ODD: f"it is {ODD}"}}
    answer = accuracies([0.1, 0.2, 0.3], curves={})
    for number, name in enumerate(names):
        write_answers(tmp_path / "runs" / name / "0", [(asked, answer)], more, data=ODD, max_images=number + 1)
    write_comparison(tmp_path / "runs")
    report(tmp_path / "runs", "-o", tmp_path / "report")
    page = Page(tmp_path / "report" / "index.html")
    plain = Page(shown / "report" / "index.html")
    assert page.tags.count("script") == plain.tags.count("script")
    raw = (tmp_path / "report" / "index.html").read_text()
    assert "<script>alert" not in raw
    for name in names:
        assert f"CascadedTD(0) {name}".strip() in page.text
    assert f"it was {ODD}" in page.text
    assert f"it is {ODD}" in page.text
    assert f"About {ODD}" in plain.text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], r"no run is given: say which, as in .*cascaded report runs/td0/0 -o report"),
        (["nowhere"], "there is no folder nowhere: give the folder of a run"),
        (["{empty}"], "contains no run, no config.json is in or below it: train one with cascaded train"),
        (["{run}", "-o", "{file}"], "--out is .*file, which is a file: give a folder"),
        (["{run}", "{twin}"], "are one run, seed 0: give one of them"),
        (["{cut}"], "results.json is not JSON .*: it is damaged or something else"),
    ],
)
def test_the_wrong_words_are_refused_with_the_way_out(tmp_path, words, sentence):
    places = {"run": made_run(tmp_path / "0"), "twin": made_run(tmp_path / "twin" / "0"), "empty": tmp_path / "empty"}
    places |= {"file": tmp_path / "file", "cut": made_run(tmp_path / "cut" / "0")}
    places["empty"].mkdir()
    places["file"].write_text("mine")
    (places["cut"] / "results.json").write_text('{"format": 1, "ana')
    with pytest.raises(InputError, match=sentence) as caught:
        report(*(word.format(**places) for word in words))
    assert "\n" not in str(caught.value)
    assert places["file"].read_text() == "mine"


def test_the_report_draws_what_others_have_computed():
    known = {"errors", "files", "progress", "shell", "exhibits", "report"}
    for file in (Path(cascaded.__file__).parent / "report").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            own = {name.split(".")[1] for name in names if name.startswith("cascaded.")}
            assert own <= known, f"{file.name} imports {own - known}"
            assert not {"torch", "scipy", "sklearn"} & {name.split(".")[0] for name in names}, file.name
