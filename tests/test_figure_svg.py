"""Figures as files and inside a page: the same every time, nothing in them can run, colors that all can tell apart."""

import csv
import io
import re
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from cascaded import figures
from cascaded.errors import InputError
from cascaded.figures.style import GRID, INK, METHODS, MUTED, PALETTE, PAPER, color, mix, text_color
from cascaded.results.names import NAMES
from tests.made_table import made_table

pytestmark = pytest.mark.usefixtures("every_kind")

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
        *("svg", "g", "path", "text", "defs", "use", "clipPath", "rect")
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


WHITE, DARK = "#ffffff", "#15181d"
MIXED = [mix(*METHODS[method], share) for method in METHODS for share in (0.25, 0.5, 0.9)]

# Machado and others 2009: what is left of colors without red or green cones
BLIND = {
    "nobody": np.eye(3),
    "protanopia": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "deuteranopia": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
}


def linear(hex_color):
    parts = np.array([int(hex_color[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    light, dark = sorted((float(linear(each) @ [0.2126, 0.7152, 0.0722]) for each in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def oklab(light):
    cones = [[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]
    axes = [[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]
    return 100 * np.array(axes) @ np.cbrt(np.array(cones) @ np.clip(light, 0, 1))


def test_every_color_stands_out_on_white_and_on_a_dark_page():
    for each in (*PALETTE, *MIXED):
        assert contrast(each, WHITE) >= 3, each
        assert contrast(each, DARK) >= 3, each


def test_words_in_any_color_can_be_read_on_white():
    for each in (*PALETTE, *MIXED, INK, MUTED):
        assert contrast(text_color(each), WHITE) >= 4.5, each


@pytest.mark.parametrize("sight", BLIND)
def test_the_first_seven_colors_are_distinct_whatever_one_sees(sight):
    seen = [oklab(BLIND[sight] @ linear(each)) for each in PALETTE[:7]]
    assert min(np.linalg.norm(one - other) for one, other in combinations(seen, 2)) > 9


def test_every_method_has_a_color_and_the_best_known_ones_the_first_seven():
    assert set(METHODS) == set(NAMES)
    known = [("cascaded-td", 0.0), ("cascaded-td", 1.0), ("cascaded-ce", None), ("serial-td-multihead", 1.0)]
    known += [("serial-ce", None), ("serial-td", 0.0), ("cascaded-td-multihead", 0.0)]
    assert [color(*each) for each in known] == list(PALETTE[:7])
    assert color("cascaded-ce", None, "serial") == color("serial-ce", None, "serial")
    assert color("cascaded-td", 0.5) not in PALETTE
