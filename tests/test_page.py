"""The page as text: everything in one file, names as text, and what the explorer's script is given."""

import base64
import io
import json
import re
import zlib
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

from cascaded.errors import InputError
from cascaded.report.explorer import packed
from cascaded.report.page import effect, page, write_page
from cascaded.shell import typed
from tests.made_exhibitions import COLOURS, MODELS, ODD, made_claims, made_drawings, made_exhibition, made_explorer

EXPLORER = made_explorer(items=12, side=3)
SMALL = replace(EXPLORER, labels=tuple(range(3)) * 4, models=EXPLORER.models[:2])


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
def show():
    return replace(made_exhibition(), explorers=(made_explorer(items=6),))


@pytest.fixture(scope="module")
def text(show):
    return page(show, made_drawings(show), COLOURS)


@pytest.fixture(scope="module")
def read(text):
    return Read(text)


def unpacked(one, number):
    """What the script makes of a network, slowly: steps of answers, confidence, probabilities, nearness and maps."""
    model, items, kept = one["models"][number], len(one["labels"]), len(one["shown"][0])
    frames = np.frombuffer(zlib.decompress(base64.b64decode(model["frames"])), np.uint8).reshape(model["steps"], -1)
    frames = np.cumsum(frames, axis=0, dtype=np.uint8)
    ends = np.cumsum([2 * items, items, items * kept, items * model["stages"]])
    answers, confidence, probabilities, nearness, maps = np.split(frames, ends, axis=1)
    shape = (model["steps"], items, model["stages"], model["side"], model["side"])
    pairs = answers.reshape(model["steps"], items, 2).astype(int)
    probabilities = probabilities.reshape(-1, items, kept) / 255
    return pairs @ [1, 256], confidence / 255, probabilities, nearness.reshape(shape[:3]) / 255, maps.reshape(shape)


def test_the_same_exhibition_makes_the_same_bytes(show, text, tmp_path):
    file = write_page(show, made_drawings(show), COLOURS, tmp_path / "new" / "folder")
    assert file == tmp_path / "new" / "folder" / "index.html"
    assert file.read_bytes() == text.encode()
    assert [each.name for each in file.parent.iterdir()] == ["index.html"]


def test_the_page_may_ask_the_network_for_nothing(read, text):
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
    assert [model["model"] for model in data["sets"][0]["models"]] == list(MODELS)
    assert data["colours"] == COLOURS


def test_names_that_are_no_text_do_not_stop_the_page(show, tmp_path):
    show = replace(show, title="caf\udce9", explorers=())
    file = write_page(show, made_drawings(show), COLOURS, tmp_path)
    assert "<h1>caf?</h1>" in file.read_text(encoding="utf-8")


def test_every_link_within_the_page_has_its_place(read):
    places = read.all("id")
    assert len(places) == len(set(places))
    within = [link[1:] for link in read.all("href") if link.startswith("#")]
    assert {"main", "explorer", "runs", "claims", "speed", "noise", "taxonomy"} == set(within) <= set(places)
    named = {word for label in read.all("aria-labelledby") for word in label.split()}
    assert named <= set(places)


def test_every_figure_has_its_caption_and_its_files(show, read):
    figures = [figure for section in show.sections for figure in section.figures]
    assert [tag for tag, _ in read.tags].count("figure") == len(figures)
    for figure in figures:
        links = [link for link in read.all("href") if link.startswith(f"figures/{figure.key}.")]
        assert {link.rpartition(".")[2] for link in links} == {"svg", "pdf", "png", "csv"}
        assert any(figure.caption in part for part in read.text)


def test_what_is_missing_is_said_with_the_command_that_fills_it(show, read):
    for section in show.sections:
        for item in section.missing:
            assert any(item.what in part for part in read.text)
            assert typed(item.command) in read.text
    assert typed(made_claims()[-1].command) in read.text


def test_a_figure_that_was_not_drawn_is_named(show):
    drawn = made_drawings(show)
    del drawn["speed-1"]
    with pytest.raises(InputError, match="figure speed-1 is in the exhibition and not among the 3 drawn ones: draw it"):
        page(show, drawn, COLOURS)


def test_effects_are_told_with_their_intervals_and_units(text):
    first, second, small, absent = (effect(line) for line in made_claims())
    assert (first.value, first.interval) == ("+12.3 points", "8.1 to 16.5")
    assert (second.value, second.interval) == ("+4.2 points", "\N{MINUS SIGN}0.3 to 8.9")
    assert (small.value, small.interval) == ("\N{MINUS SIGN}0.024 rho", "\N{MINUS SIGN}0.050 to 0.001")
    assert absent is None
    assert first.at == pytest.approx(12.34 / 16.5)
    assert (first.high, small.low) == (1, -1)
    for told in (first, second, small):
        assert told.value in text
        assert told.interval in text


def test_an_effect_of_nothing_or_without_an_interval_is_told_too():
    line = made_claims()[0]
    assert effect(replace(line, effect=0.0, low=0.0, high=0.0)).value == "+0.0 points"
    assert effect(replace(line, low=None, high=None)).interval == ""
    assert effect(replace(line, low=float("nan"))).interval == ""
    assert effect(replace(line, effect=float("nan"))) is None


def test_verdicts_are_words_grouped_by_claim(read):
    words = [part.strip() for part in read.text]
    assert [word for word in words if word in ("yes", "no")] == ["yes", "no", "no"]
    assert [word for word in words if word in ("C1", "C2", "C5")] == ["C1", "C2", "C5"]


def test_a_bare_exhibition_is_a_page_too(show):
    bare = replace(show, summary=(), models=(), runs=(), sections=(), claims=(), explorers=(), made_with={})
    read = Read(page(bare, {}, {}))
    assert [link for link in read.all("href") if link != "data:,"] == ["#main", "#explorer"]
    assert [tag for tag, _ in read.tags].count("section") == 1


@pytest.mark.parametrize("classes", [10, 300])
def test_what_is_packed_is_what_was_watched(classes):
    explorer = made_explorer(classes=classes, items=7)
    (one,) = packed([explorer])["sets"]
    shown = np.array(one["shown"])
    assert shown.shape == (7, 10)
    assert all(label in row for label, row in zip(one["labels"], shown.tolist(), strict=True))
    for number, watched in enumerate(explorer.models):
        answers, confidence, probabilities, nearness, maps = unpacked(one, number)
        assert (answers == watched.probabilities.argmax(axis=-1)).all()
        assert np.abs(confidence - watched.probabilities.max(axis=-1)).max() < 0.002
        expected = watched.probabilities[:, np.arange(7)[:, None], shown]
        assert np.abs(probabilities - expected).max() < 0.002
        assert np.abs(nearness - watched.nearness).max() < 0.002
        assert (maps == watched.maps).all()


def test_all_images_are_in_one_picture():
    explorer = made_explorer(items=7)
    (one,) = packed([explorer])["sets"]
    sheet = np.array(Image.open(io.BytesIO(base64.b64decode(one["sprite"].partition(",")[2]))))
    height, width = one["size"]
    for item, image in enumerate(explorer.images):
        row, column = divmod(item, one["columns"])
        cell = sheet[row * height : (row + 1) * height, column * width : (column + 1) * width]
        assert (cell == image).all()


@pytest.mark.parametrize("most", [0, 9_000, 12_000, 16_000, 25_000, 60_000])
def test_what_takes_too_much_keeps_fewer_images_evenly_over_the_classes(most):
    told = packed([SMALL, SMALL], most)
    size = sum(len(one["sprite"]) + sum(len(model["frames"]) for model in one["models"]) for one in told["sets"])
    counts = [len(one["labels"]) for one in told["sets"]]
    assert min(counts) >= 4
    assert size <= most or counts == [4, 4]
    for one in told["sets"]:
        of_class = np.bincount(one["labels"], minlength=3)
        assert of_class.max() - of_class.min() <= 1
    note = f"To keep this page small it holds {sum(counts)} of the 24 images, evenly over the classes."
    assert told["note"] == (note if sum(counts) < 24 else "")


def test_explorers_without_images_or_networks_are_left_out():
    explorer = made_explorer(items=5)
    told = packed([replace(explorer, models=()), explorer])
    assert len(told["sets"]) == 1
    assert packed([]) == {"sets": [], "note": ""}
