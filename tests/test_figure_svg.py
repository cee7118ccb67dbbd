"""Figures as files and inside a page: the same every time, readable by programs, and nothing in them can run."""

import csv
import io
import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from cascaded import figures
from cascaded.errors import InputError
from cascaded.figures.style import GRID, INK, MUTED, PAPER
from tests.made_table import made_table

ODD = ["</svg><script>alert(1)</script>", r"$\alpha$ 5$", "漢字 \U0001f600", "=1+1"]


@pytest.fixture(scope="module")
def table():
    return made_table("speed_accuracy", "persistent_noise", seeds=(0, 1))


@pytest.fixture(scope="module")
def odd(table):
    """A figure whose panels have names that markup, TeX or a spreadsheet would read as something else."""
    return figures.accuracy_per_step(
        pd.concat([table.assign(data=name) for name in ODD])[lambda df: df.time == "coarse"]
    )


@pytest.fixture(scope="module")
def pages(odd, table):
    return {
        "odd": figures.inline(odd, "odd", 'A "title" </svg><script>'),
        "dots": figures.inline(figures.persistent_noise(table), "dots"),
    }


def test_a_figure_is_four_files_that_are_what_they_are_called(odd, tmp_path):
    files = figures.save(odd, tmp_path / "deep" / "odd.1")
    starts = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG", "csv": b"protocol_version,data,split,"}
    assert {kind: file.name for kind, file in files.items()} == {kind: f"odd.1.{kind}" for kind in starts}
    for kind, file in files.items():
        assert file.read_bytes().startswith(starts[kind])
    with pytest.raises(InputError, match="cannot be saved as gif: give some of svg, pdf, png, csv"):
        figures.save(odd, tmp_path / "odd", kinds=("gif",))


def test_the_same_figure_is_the_same_files(table, tmp_path):
    first, second = (figures.save(figures.persistent_noise(table), tmp_path / place) for place in "ab")
    assert [file.read_bytes() for file in first.values()] == [file.read_bytes() for file in second.values()]


def test_the_csv_has_the_numbers_of_the_figure_with_all_their_digits(odd, tmp_path):
    file = figures.save(odd, tmp_path / "odd", kinds=("csv",))["csv"]
    rows = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"))))
    assert [float(row["value"]) for row in rows] == odd.data["value"].tolist()
    assert not {"color", "draws", "noise"} & set(rows[0])  # no drawing details, no draws, no empty columns
    assert {row["data"] for row in rows} == {*ODD[:3], "'=1+1"}  # a formula gets a quote in front


def test_names_are_words_in_a_page_and_never_markup(pages):
    svg = pages["odd"]
    root = ElementTree.fromstring(svg)
    assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {
        *("svg", "g", "path", "text", "defs", "use", "clipPath", "rect"),
    }
    words = [element.text for element in root.iter() if element.text]
    assert any(ODD[1] in word for word in words)
    assert "</svg><script>alert(1)</" in "".join(words)
    assert "<script" not in svg
    assert svg.count("</svg>") == 1
    assert not re.search(r"\son\w+=|javascript:", svg)


def test_a_figure_in_a_page_has_the_pages_colors_and_a_description(pages):
    svg = pages["odd"]
    root = ElementTree.fromstring(svg)
    assert root.get("role") == "img"
    assert root.get("aria-label") == 'A "title" </svg><script>'
    assert root.get("viewBox", "").startswith("0 0 345.6 ")
    assert root.get("width") is None
    for each in pages.values():
        assert not re.search(f"{INK}|{MUTED}|{GRID}|{PAPER}|#fff|font-family|<!--", each)
        assert all(f"var(--{name})" in each for name in ("ink", "muted", "grid"))


def test_words_in_color_keep_their_contrast_on_a_dark_page(table):
    svg = figures.inline(figures.accuracy_per_step(table[table.time == "coarse"]), "labels")
    assert svg.count("color-mix(in srgb,") == 5  # one per method


def test_two_figures_on_a_page_share_no_id(pages):
    ids = []
    for key, svg in pages.items():
        own = set(re.findall(r'\sid="([^"]+)"', svg))
        used = set(re.findall(r'(?:url\(|href=")#([\w.-]+)', svg))
        assert used == own
        assert all(name.startswith(f"{key}-") for name in own)
        ids.append(own)
    assert all(ids)
    assert not ids[0] & ids[1]


def test_images_in_a_page_are_not_smoothed_and_come_with_it():
    pixels = np.arange(3 * 3 * 64, dtype=np.uint8).reshape(3, 3, 8, 8)
    svg = figures.inline(figures.gallery({"row": (pixels, ["a", "b", "c"])}), "gallery")
    images = [element for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("image")]
    assert len(images) == 3
    assert all("pixelated" in image.get("style", "") for image in images)
    assert all(image.get("href", "").startswith("data:image/png;base64,") for image in images)


def test_long_curves_stay_lean(table):
    assert len(figures.inline(figures.speed_accuracy(table), "speed")) < 150_000
