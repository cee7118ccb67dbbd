"""From recorded activations and galleries to the explorer and the figures of images."""

from dataclasses import replace

import numpy as np
import pytest

from cascaded.figures.style import color
from cascaded.report.explorer import explorer_color, explorers, find_activations, packed
from cascaded.report.galleries import gallery_figures
from cascaded.results.galleries import Gallery, gallery_file, write_gallery
from cascaded.traces.activations import Activations, save_activations
from cascaded.traces.config import Provenance, RecordingConfig
from tests.made_runs import CLASSES, made_run

CONFIG = RecordingConfig(data="digits", split="test", steps=5, schedule="cascaded")
SOURCE = Provenance(method="cascaded-td", lam=0.0, images="all", items="these", classes=CLASSES)


def made(seed=0, count=3, config=CONFIG, **source):
    items, rng = count, np.random.default_rng(seed)
    return Activations(
        config,
        replace(SOURCE, **source),
        rng.integers(0, 256, (items, 1, 8, 8)).astype(np.uint8),
        np.arange(items) % 4,
        np.arange(items),
        rng.normal(size=(5, items, 10)).astype(np.float32) * 3,
        rng.integers(0, 256, (5, items, 3, 8, 8)).astype(np.uint8),
        rng.random((5, items, 3)).astype(np.float32),
        rng.random((4, 2)).astype(np.float32),
        np.eye(4, 2, dtype=np.float32),
    )


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
        made(5, count=2, method="serial-ce", lam=None, items="others", config=serial),
    )
    found, _ = find_activations(runs_with(tmp_path, *recorded))
    assert names(found) == [
        ["CascadedTD(0)", "CascadedCE", "CascadedTD(1), ews:0.9", "Shallow-Deep"],
        ["SerialCE"],
    ]


def test_networks_with_other_classes_have_explorers_of_their_own(tmp_path):
    other = made(2, lam=1.0, classes=(*CLASSES[:-1], "other"))
    assert names(find_activations(runs_with(tmp_path, made(1), other))[0]) == [["CascadedTD(0)"], ["CascadedTD(1)"]]


def test_of_several_seeds_the_first_is_shown(tmp_path):
    found, _ = find_activations(runs_with(tmp_path, made(1), made(2)))
    (explorer,) = explorers(found)
    (own,) = explorer.values()
    assert (own.images == made(1).images).all()


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
