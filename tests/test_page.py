"""The page as text: everything in one file, names as text."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from cascaded.figures.style import color
from cascaded.report.page import Report, render, write_page
from tests.made_report import NETWORKS, ODD, made_claims, made_explorer, made_report


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
    marks = (report.findings[0], "Accuracy per step.", "explorer-box", 'id="speed"', 'id="runs"', 'id="claims"')
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)


def test_what_is_missing_is_named_with_the_command_that_fills_it(report, read):
    for section in report.sections:
        for item in section.missing:
            assert any(item.what in part for part in read.text)
            assert item.command in read.text
    assert made_claims()[-1]["command"] in read.text


def test_effects_have_their_intervals_and_units(text):
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
