"""The page as text, everything in one file; `cascaded report` writes the same every time, and touches nothing else."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from cascaded.cli.main import run
from cascaded.figures.style import color
from cascaded.files import read_json
from cascaded.report.page import Report, effect, render, write_page
from cascaded.report.sections import DRAW, SECTIONS, draw
from cascaded.report.write import read_table
from tests.made_report import NETWORKS, ODD, made_claims, made_explorer, made_report
from tests.made_table import made_table
from tests.made_traces import made_run, made_runs

pytestmark = pytest.mark.usefixtures("every_kind")


class Read(HTMLParser):
    """A page as a browser takes it: its tags with their attributes, and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.data, self.within = [], [], "", ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.within = dict(attrs).get("id", tag) if tag == "script" else tag

    def handle_endtag(self, tag):
        self.within = ""

    def handle_data(self, data):
        if self.within == "explorer-data":
            self.data += data
        elif self.within not in ("script", "style"):
            self.text.append(data)

    def all(self, attribute):
        return [attributes[attribute] for _, attributes in self.tags if attribute in attributes]


@pytest.fixture(scope="module")
def report():
    return replace(made_report(), explorers=(made_explorer(items=6),))


@pytest.fixture(scope="module")
def text(report):
    return render(report)


@pytest.fixture(scope="module")
def read(text):
    return Read(text)


def test_the_same_report_makes_the_same_bytes(report, text, tmp_path):
    file = write_page(report, tmp_path / "new" / "folder")
    assert file == tmp_path / "new" / "folder" / "index.html"
    assert file.read_bytes() == text.encode()
    assert [each.name for each in file.parent.iterdir()] == ["index.html"]


def test_the_page_loads_nothing(read, text):
    (policy,) = [attributes["content"] for tag, attributes in read.tags if "http-equiv" in attributes]
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-")
    assert read.all("src") == []
    assert not [link for link in read.all("href") if not re.match(r"#|data:,$|figures/[\w-]+\.\w+$", link)]
    assert "@import" not in text
    assert "url(" not in text.split("</style>")[0]


def test_odd_names_end_no_tag_and_no_script(read, text):
    for name in ODD:
        assert any(name in part for part in read.text)
    assert "img" not in {tag for tag, _ in read.tags}
    assert text.count("<script") == text.count("</script>") == 6  # five of its own, and the data
    data = json.loads(read.data)
    assert [model["model"] for model in data["sets"][0]["models"]] == list(NETWORKS)
    assert list(data["colors"]) == list(NETWORKS)
    assert data["colors"]["CascadedTD(0)"] == color("cascaded-td", 0.0)


def test_names_that_are_not_text_do_not_stop_the_page(tmp_path):
    file = write_page(Report("caf\udce9"), tmp_path)
    assert "<h1>caf?</h1>" in file.read_text(encoding="utf-8")


def test_every_link_within_the_page_has_its_place(read):
    places = read.all("id")
    assert len(places) == len(set(places))
    within = [link[1:] for link in read.all("href") if link.startswith("#")]
    assert {"main", "runs", "claims", "speed", "noise", "taxonomy"} == set(within) <= set(places)
    named = {word for label in read.all("aria-labelledby") for word in label.split()}
    assert named <= set(places)


def test_every_figure_has_its_caption_its_numbers_and_its_files(report, read):
    figures = [report.first, *(figure for section in report.sections for figure in section.figures)]
    assert [tag for tag, _ in read.tags].count("figure") == len(figures)
    for figure in figures:
        assert set(read.all("href")) >= {f"figures/{file}" for file in figure.files.values()}
        assert any(figure.caption in part for part in read.text)
        assert {cell for row in figure.table for cell in row} <= set(read.text)


def test_the_finding_and_its_figure_come_first_and_the_claims_last(report, text):
    finding = report.findings[0].replace(" %", "\N{NO-BREAK SPACE}%")
    marks = (finding, "Accuracy per step.", "explorer-box", 'id="speed"', 'id="runs"', 'id="claims"')
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)


def test_what_is_missing_is_named_with_the_command_that_fills_it(report, read):
    for section in report.sections:
        for item in section.missing:
            assert any(item.what in part for part in read.text)
            assert item.command in read.text
    assert made_claims()[-1]["command"] in read.text


def test_effects_have_their_intervals_and_units(text):
    assert effect(0.0004, -0.00006, 0.9, "")["interval"] == "\N{MINUS SIGN}6e\N{MINUS SIGN}05 to 0.90"
    first, second, small, absent = (row["effect"] for row in made_claims())
    assert (first["value"], first["interval"]) == ("+12.3 points", "8.1 to 16.5")
    assert (second["value"], second["interval"]) == ("+4.2 points", "\N{MINUS SIGN}0.3 to 8.9")
    assert (small["value"], small["interval"]) == (
        "\N{MINUS SIGN}0.024 rho",
        "\N{MINUS SIGN}0.050 to \N{MINUS SIGN}0.001",
    )
    assert absent is None
    assert first["at"] == pytest.approx(12.34 / 16.5)
    assert (first["high"], small["low"]) == (1, -1)
    for each in (first, second, small):
        assert each["value"] in text
        assert each["interval"] in text


def test_a_bare_report_is_a_page_too():
    read = Read(render(Report("Nothing yet")))
    assert [link for link in read.all("href") if link != "data:,"] == ["#main"]
    assert [tag for tag, _ in read.tags].count("section") == 1


KINDS = ("csv", "pdf", "png", "svg")
METHODS = (("cascaded-td", 0.0), ("cascaded-ce", None))


def write_report(*words):
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
    write_report(place / "runs", "-o", place / "report")
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
    text = Read((place / "report" / "index.html").read_text()).text
    assert f"{100 * expected[-1]:.1f} %" in text
    assert {"step", "mean cost (steps)"} <= {*text}  # not x
    assert {"x", "nan", "protocol_version"} & {*text} == set()


def test_a_caption_explains_the_values_that_its_figure_tells_apart(tmp_path, patch):
    table = made_table("prototypicality", "out_of_distribution", methods=METHODS, seeds=(0,))
    captions = {
        spec.key: figure.caption
        for section in SECTIONS
        for spec, figure in zip(section.figures, draw(section.figures, table, tmp_path), strict=False)
    }
    assert "Centrality: how close an image's features are to the weights of its class;" in captions["prototypicality"]
    assert "msp: on the maximum softmax probability; entropy:" in captions["ood"]
    others = sorted(set(table["ood_data"].dropna()) - {"mean"})
    assert f"Out-of-distribution images: {', '.join(others)}." in captions["ood"]
    one = draw(SECTIONS[2].figures, table[table["measure"] == "centrality"], tmp_path)[0]
    assert "Centrality" not in one.caption


def test_a_claim_of_another_range_names_it(place):
    measured = [part for part in Read((place / "report" / "index.html").read_text()).text if "claimed: " in part]
    assert any(part.endswith("claimed: above -1 points") for part in measured)  # C8, a claim of no loss


def test_every_figure_has_a_function_and_the_page_has_at_most_a_dozen():
    figures = [figure for section in SECTIONS for figure in section.figures]
    keys = {each.key for figure in figures for each in (figure, *figure.more)}
    assert keys | {"accuracy-per-step"} == set(DRAW)
    assert len(figures) + len(("accuracy-per-step", "gallery", "schedules")) <= 14  # taxonomy, people: if recorded


@pytest.fixture(scope="module")
def replaced(place):
    """The same report again, of a process without torch, files of somebody else beside it, and then another report."""
    out = place / "again"
    words = ["report", str(place / "runs"), "-o", str(out)]
    code = "import sys; from cascaded.cli.main import run; from cascaded.figures import files; files.DPI = 40; "
    code += f"run({words!r}); sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
    first = content(out)
    mine = [out / "notes.txt", out / "figures" / "mine.svg", out / "figures" / "deep" / "a.png"]
    mine[-1].parent.mkdir()
    for file in mine:
        file.write_text("mine")
    drawn = out / "figures" / ".drawn.json"
    drawn.write_text(json.dumps([*read_json(drawn), "../notes.txt", "deep/a.png", "gone.svg"]))
    (out / "figures" / "gone.svg").write_text("of an earlier report")
    bare = made_run(place / "my runs" / "0", data="digits").parent
    write_report(bare, "--out", out)
    return out, first, mine, bare


def test_the_same_runs_make_the_same_bytes_without_torch(place, replaced):
    assert replaced[1] == content(place / "report")


def test_figures_of_an_earlier_report_are_removed_and_other_files_stay(replaced):
    out, first, mine, _ = replaced
    assert all(file.read_text() == "mine" for file in mine)
    left = {name for name in content(out) if name.startswith("figures/")} - {"figures/mine.svg", "figures/deep/a.png"}
    assert left == {"figures/.drawn.json"}
    assert len([name for name in first if name.endswith(".csv")]) > 1


def test_for_a_run_with_nothing_recorded_the_page_has_the_commands(replaced):
    out, _, _, bare = replaced
    page = Read((out / "index.html").read_text()).text
    assert f"cascaded record '{bare}' --activations 40" in page
    noise = f"cascaded record '{bare}' --noise occlusion && cascaded analyze '{bare}' --only persistent_noise"
    assert noise in page
    assert page.count("not measured") >= 7  # every claim


def test_validation_images_are_left_out_where_there_are_others(tmp_path, table):
    both = pd.concat([table, table.assign(split="validation", value=0.5)], ignore_index=True)
    only = table.assign(split="validation", data="folder")
    read = read_table([made_runs(tmp_path, pd.concat([both, only.assign(run=only["run"] + "x")]))])
    assert set(zip(read["data"], read["split"], strict=True)) == {("cifar10", "test"), ("folder", "validation")}
    assert len(read) == 2 * len(table)
