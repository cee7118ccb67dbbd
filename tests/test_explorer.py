"""The explorer and the figures of images: what is packed into the page is what was recorded."""

import base64
import io
import zlib
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from cascaded.analysis.outputs import softmax
from cascaded.figures.style import color
from cascaded.report.explorer import explorer_color, explorers, find_activations, packed
from cascaded.report.galleries import gallery_figures
from cascaded.results.galleries import Gallery, gallery_file, write_gallery
from cascaded.traces.activations import save_activations
from cascaded.traces.config import Provenance, RecordingConfig
from tests.made_report import made_explorer, made_network
from tests.made_traces import made_run

EXPLORER = made_explorer(items=12, side=3)
SMALL = {name: replace(own, labels=np.arange(12) % 3) for name, own in list(EXPLORER.items())[:2]}


def unpacked(one, number):
    """What the script unpacks, slowly: per step the predictions, confidence, probabilities, convergence and maps."""
    model, items, kept = one["models"][number], len(one["labels"]), len(one["shown"][0])
    frames = np.frombuffer(zlib.decompress(base64.b64decode(model["frames"])), np.uint8).reshape(model["steps"], -1)
    frames = np.cumsum(frames, axis=0, dtype=np.uint8)
    ends = np.cumsum([2 * items, items, items * kept, items * model["stages"]])
    predictions, confidence, probabilities, convergence, maps = np.split(frames, ends, axis=1)
    shape = (model["steps"], items, model["stages"], model["side"], model["side"])
    pairs = predictions.reshape(model["steps"], items, 2).astype(int)
    probabilities = probabilities.reshape(-1, items, kept) / 255
    return pairs @ [1, 256], confidence / 255, probabilities, convergence.reshape(shape[:3]) / 255, maps.reshape(shape)


@pytest.mark.parametrize("classes", [10, 300])
def test_unpacked_bytes_are_the_recorded_values(classes):
    explorer = made_explorer(classes=classes, items=7)
    (one,) = packed([explorer])["sets"]
    shown = np.array(one["shown"])
    assert shown.shape == (7, 10)
    assert all(label in row for label, row in zip(one["labels"], shown.tolist(), strict=True))
    for number, own in enumerate(explorer.values()):
        expected = softmax(own.logits)
        predictions, confidence, probabilities, convergence, maps = unpacked(one, number)
        assert (predictions == expected.argmax(axis=-1)).all()
        assert np.abs(confidence - expected.max(axis=-1)).max() < 0.002
        assert np.abs(probabilities - expected[:, np.arange(7)[:, None], shown]).max() < 0.002
        assert np.abs(convergence - own.convergence).max() < 0.002
        assert (maps == own.maps).all()


def test_all_images_are_in_one_sprite():
    explorer = made_explorer(items=7)
    (one,) = packed([explorer])["sets"]
    sheet = np.array(Image.open(io.BytesIO(base64.b64decode(one["sprite"].partition(",")[2]))))
    height, width = one["size"]
    for item, image in enumerate(next(iter(explorer.values())).images):
        row, column = divmod(item, one["columns"])
        cell = sheet[row * height : (row + 1) * height, column * width : (column + 1) * width]
        assert (cell == image.transpose(1, 2, 0)).all()


@pytest.mark.parametrize("max_chars", [0, 9_000, 12_000, 16_000, 25_000, 60_000])
def test_explorers_that_are_too_large_keep_fewer_images_evenly_over_the_classes(max_chars):
    result = packed([SMALL, SMALL], max_chars)
    size = sum(len(one["sprite"]) + sum(len(model["frames"]) for model in one["models"]) for one in result["sets"])
    counts = [len(one["labels"]) for one in result["sets"]]
    assert min(counts) >= 4
    assert size <= max_chars or counts == [4, 4]
    for one in result["sets"]:
        of_class = np.bincount(one["labels"], minlength=3)
        assert of_class.max() - of_class.min() <= 1
    note = f"To keep this page small it contains {sum(counts)} of the 24 recorded images, evenly over the classes."
    assert result["note"] == (note if sum(counts) < 24 else "")


def test_explorers_without_networks_are_left_out():
    result = packed([{}, made_explorer(items=5)])
    assert len(result["sets"]) == 1
    assert packed([]) == {"sets": [], "note": ""}


CLASSES = tuple("0123456789")
CONFIG = RecordingConfig(data="digits", split="test", steps=5, schedule="cascaded")
SOURCE = Provenance(method="cascaded-td", lam=0.0, images="all", items="these", classes=CLASSES)


def made(seed=0, count=3, config=CONFIG, **source):
    images = np.random.default_rng(seed).integers(0, 256, (count, 1, 8, 8)).astype(np.uint8)
    return made_network(config, replace(SOURCE, **source), images, np.arange(count) % 4, seed, side=8)


def runs_with(folder, *recorded):
    """A run for each of some activations."""
    runs = [made_run(folder / f"run{number}" / "0") for number in range(len(recorded))]
    for run, each in zip(runs, recorded, strict=True):
        save_activations(each, run / "activations" / "a.safetensors")
    return runs


def names(found):
    return [list(explorer) for explorer in explorers(found)]


def test_an_explorer_has_what_was_recorded(tmp_path):
    own = made()
    found, notes = find_activations(runs_with(tmp_path, own))
    (explorer,) = explorers(found)
    (network,) = explorer.values()
    for name in ("images", "labels", "logits", "maps", "convergence"):
        assert np.array_equal(getattr(network, name), getattr(own, name))
    assert (list(explorer), explorer_color(network)) == (["CascadedTD(0)"], color("cascaded-td", 0.0))
    (one,) = packed([explorer])["sets"]
    assert (one["data"], one["classes"], one["labels"]) == ("digits test", list(CLASSES), [0, 1, 2])
    assert notes == []


def test_networks_with_the_same_images_share_an_explorer_and_the_first_two_differ_most(tmp_path):
    serial = replace(CONFIG, schedule="serial", kernel="none")
    recorded = (
        made(1, lam=1.0, config=replace(CONFIG, kernel="ews:0.9")),
        made(2, method="serial-td-multihead", lam=1.0, config=serial),
        made(3, method="cascaded-ce", lam=None),
        made(4),
        made(6),  # another seed: the first one is shown
        made(5, count=2, method="serial-ce", lam=None, items="others", config=serial),
    )
    found, _ = find_activations(runs_with(tmp_path, *recorded))
    assert names(found) == [["CascadedTD(0)", "CascadedCE", "CascadedTD(1), ews:0.9", "Shallow-Deep"], ["SerialCE"]]
    assert np.array_equal(explorers(found)[0]["CascadedTD(0)"].logits, recorded[3].logits)


def test_networks_with_other_classes_have_explorers_of_their_own(tmp_path):
    other = made(2, lam=1.0, classes=(*CLASSES[:-1], "other"))
    assert names(find_activations(runs_with(tmp_path, made(1), other))[0]) == [["CascadedTD(0)"], ["CascadedTD(1)"]]


@pytest.mark.parametrize("kind", ["damaged", "other weights", "out of distribution"])
def test_activations_that_cannot_be_used_are_left_out(tmp_path, kind, monkeypatch):
    (run,) = runs_with(tmp_path, made(weights="f" * 64, in_distribution=kind != "out of distribution"))
    if kind == "damaged":
        (run / "activations" / "a.safetensors").write_bytes(b"odd")
    if kind == "other weights":
        monkeypatch.setattr("cascaded.report.explorer.weights_digest", lambda folder: "e" * 64)
    found, notes = find_activations([run])
    assert found == []
    sentences = {"damaged": "cannot be read", "other weights": "has weights ffffffffffff, the last checkpoint has eeee"}
    assert [sentences[kind] in note for note in notes] == ([True] if kind in sentences else [])


def made_gallery(time="fine", lam=0.0, split="test", labels=(1, 2)):
    pixels = np.full((4, 3, 8, 8), 9, np.uint8)
    keys = {"method": "cascaded-td", "lam": lam, "schedule": "cascaded", "time": time, "split": split}
    row, steps = np.array([0, 0, 1, 2]), np.array([3, 4, 70, np.inf], np.float32)
    return Gallery(keys, "source", CLASSES, pixels, row, steps, np.array([*labels, *labels]))


def test_a_gallery_has_the_class_and_step_of_every_image_and_other_networks_are_folded_away(tmp_path):
    runs = [tmp_path / name for name in "abc"]
    write_gallery(gallery_file(runs[0], "coarse"), made_gallery("coarse", labels=(5, 5)))
    write_gallery(gallery_file(runs[0], "fine"), made_gallery())
    write_gallery(gallery_file(runs[1], "fine"), made_gallery(lam=1.0))
    (figure,) = gallery_figures(runs, tmp_path / "figures")
    assert figure.title == "Fastest and slowest images: CascadedTD(0)"
    assert [each.title for each in figure.more] == ["Fastest and slowest images: CascadedTD(1)"]
    captions = (tmp_path / "figures" / "gallery.csv").read_text()
    assert [f"{caption}" in captions for caption in ("1, 3", "2, 4", "1, 70", "2, never", "5, 3")] == [True] * 4 + [
        False
    ]
    assert gallery_figures([tmp_path / "c"], tmp_path / "figures") == []
