"""The explorer's data: what is packed into the page is what was recorded."""

import base64
import io
import zlib
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from cascaded.analysis.outputs import softmax
from cascaded.report.explorer import packed
from tests.made_report import made_explorer

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
