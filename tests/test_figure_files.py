"""Figures on disk and in a page: the same every time, readable by programs, and nothing in them can run."""

import csv
import io
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from cascaded.errors import InputError
from cascaded.exhibits.kinds import Dot, Dots, Figure, Level, Lines, Pictures, Series, Squares, Thumb
from cascaded.report.files import write_figure
from cascaded.report.look import GRID, INK, MUTED, PAPER, colours

ODD = ["</svg><script>alert(1)</script>", r"$\alpha$ 5$", "漢字 \U0001f600", "=1+1", "a\x00\ud800\n b"]
COLOURS = colours(["CascadedCE", *ODD])


def odd_lines():
    y = (1 / 3, float("nan"), 0.2)
    lines = tuple(Series(model, (1.0, 2.0, 3.0), y, (0.01, 0.01, 0.01)) for model in ODD)
    return Lines("$x$ <b>", "y", lines, (Level("chance", 0.1),), spans=(("noisy", 1, 2),))


def odd_dots():
    return Dots("y", tuple(ODD), tuple(Dot(model, model, np.float64(0.1), way="deadline") for model in ODD))


def written(folder: Path, body, key="figure", title="A title"):
    return write_figure(Figure(key, title, "A caption", body), folder, COLOURS)


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    lines = written(folder, odd_lines(), "odd-1", 'A "title" </svg><script>')
    return folder, lines, written(folder, odd_dots(), "odd-2")


def table(file):
    return list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"))))


def test_a_figure_is_four_files_that_are_what_they_are_called(odd):
    folder, drawn, _ = odd
    assert drawn.files == {kind: f"odd-1.{kind}" for kind in ("svg", "pdf", "png", "csv")}
    starts = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG", "csv": b"model,way,seeds,"}
    for kind, name in drawn.files.items():
        assert (folder / name).read_bytes().startswith(starts[kind])
    assert len(list(folder.iterdir())) == 8


def test_the_same_figure_is_the_same_files(tmp_path):
    body = Lines("x", "y", (Series("CascadedCE", (1, 2), (0.1, 0.2)),), shares=False)
    first, second = (written(tmp_path / place, body) for place in "ab")
    assert first == second
    for name in first.files.values():
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_numbers_are_written_with_all_their_places(odd):
    folder, lines, dots = odd
    first, gap = table(folder / lines.files["csv"])[:2]
    assert float(first["y"]) == 1 / 3
    assert gap["y"] == "nan"
    assert {row["y"] for row in table(folder / dots.files["csv"])} == {"0.1"}


def test_a_name_that_a_spreadsheet_would_run_gets_a_quote_in_front(odd):
    folder, lines, _ = odd
    models = [row["model"] for row in table(folder / lines.files["csv"])]
    assert "'=1+1" in models
    assert models[0] == ODD[0]  # and no other is touched
    assert not [model for model in models if model.startswith(("=", "+", "-", "@"))]


def test_names_are_words_in_a_page_and_never_markup(odd):
    for drawn in odd[1:]:
        root = ElementTree.fromstring(drawn.svg)
        tags = {element.tag.rpartition("}")[2] for element in root.iter()}
        assert tags <= {"svg", "g", "path", "text", "defs", "use", "clipPath", "rect"}
        words = [element.text for element in root.iter() if element.text]
        assert r"$\alpha$ 5$" in words
        assert "漢字 \U0001f600" in words
        assert "</svg><script" in "".join(words)
        assert "<script" not in drawn.svg
        assert drawn.svg.count("</svg>") == 1
        assert not re.search(r"\son\w+=|javascript:", drawn.svg)


def test_a_drawing_in_a_page_has_the_pages_ink_and_says_what_it_is(odd):
    _, drawn, _ = odd
    root = ElementTree.fromstring(drawn.svg)
    assert root.get("role") == "img"
    assert root.get("aria-label") == drawn.title == 'A "title" </svg><script>'
    assert root.get("viewBox", "").startswith("0 0 345.6 ")
    assert root.get("width") is None
    assert drawn.svg.startswith("<svg ")
    assert not re.search(f"{INK}|{MUTED}|{GRID}|{PAPER}|#fff|font-family|<!--", drawn.svg)
    assert all(f"var(--{name})" in drawn.svg for name in ("ink", "muted", "grid"))


def test_two_drawings_on_a_page_share_no_name(odd):
    names = []
    for drawn in odd[1:]:
        own = set(re.findall(r'\sid="([^"]+)"', drawn.svg))
        used = set(re.findall(r'(?:url\(|href=")#([\w.-]+)', drawn.svg))
        assert used == own
        assert all(name.startswith(f"{drawn.key}-") for name in own)
        names.append(own)
    assert all(names)
    assert not names[0] & names[1]


def test_pictures_in_a_page_are_not_smoothed_and_come_with_it(tmp_path):
    thumbs = tuple(Thumb(np.full((8, 8, 3), shade, np.uint8)) for shade in (0, 100, 200))
    drawn = written(tmp_path, Pictures((("row", thumbs),)))
    images = [element for element in ElementTree.fromstring(drawn.svg).iter() if element.tag.endswith("image")]
    assert len(images) == 3
    assert all("pixelated" in image.get("style", "") for image in images)
    assert all(image.get("href", "").startswith("data:image/png;base64,") for image in images)


def test_eight_long_curves_stay_lean(tmp_path):
    x = np.linspace(1, 70, 200)
    noise = np.random.default_rng(0).normal(0, 0.01, (8, 200))
    curves = tuple(Series(f"m{i}", tuple(x), tuple(1 - 1 / x + noise[i]), tuple(np.full(200, 0.02))) for i in range(8))
    assert len(written(tmp_path, Lines("x", "y", curves)).svg) < 150_000


@pytest.mark.parametrize("key", ["", "../a", "a b", 'a"b', "a.b"])
def test_a_key_that_is_no_name_for_a_file_is_refused(tmp_path, key):
    with pytest.raises(InputError, match="letters, digits and dashes"):
        written(tmp_path / "figures", Squares(()), key)
    assert not (tmp_path / "figures").exists()
