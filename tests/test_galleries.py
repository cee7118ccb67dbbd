"""Galleries: the fastest and the slowest images, and no others."""

import numpy as np
import pytest

from cascaded.analysis.latency import by_latency, extremes, selection_latency
from cascaded.data import load
from cascaded.results.analyzed import find_analyzed
from cascaded.results.galleries import IMAGES, gallery_file, read_galleries, read_gallery, thumbnails
from cascaded.results.gallery_images import write_galleries
from cascaded.results.tasks import Settings
from tests.made_traces import made_run, made_trace
from tests.refused import refused


def run_with(tmp_path, images, split="test"):
    trace = made_trace(items=30, indices=images.indices[:30].numpy(), split=split, images=images.fingerprint())
    return find_analyzed([made_run(tmp_path / "0", {"t": trace})])[0], trace


@pytest.mark.parametrize("split", ["test", "validation"])
def test_a_gallery_has_the_fastest_and_the_slowest_images_of_its_trace(tmp_path, split):
    images = load("digits", "train" if split == "validation" else split)
    run, trace = run_with(tmp_path, images, split)
    assert write_galleries(run, Settings()) == [gallery_file(run.folder, "t")]
    (gallery,) = read_galleries(run.folder)
    latency = selection_latency(trace)
    fastest, slowest, never = extremes(latency, by_latency(trace, latency), IMAGES).values()
    ends = np.concatenate([fastest, slowest, never])
    assert gallery.row.tolist() == [0] * len(fastest) + [1] * len(slowest) + [2] * len(never)
    assert len(never) == np.isinf(gallery.steps).sum() == 3
    assert np.array_equal(gallery.images, images.images[:30].numpy()[ends])
    assert np.array_equal(gallery.steps, latency.steps[ends])
    assert np.array_equal(gallery.labels, trace.labels[ends])
    assert (gallery.keys["method"], gallery.keys["split"], gallery.classes[3]) == ("cascaded-td", split, "3")
    assert gallery_file(run.folder, "t").with_suffix(".png").exists()


def test_a_gallery_is_written_again_only_where_something_has_changed(tmp_path, monkeypatch):
    run, _ = run_with(tmp_path, load("digits", "test"))
    write_galleries(run, Settings())
    monkeypatch.setattr("cascaded.results.gallery_images.write_gallery", lambda *_: 1 / 0)
    write_galleries(run, Settings())
    with pytest.raises(ZeroDivisionError):
        write_galleries(run, Settings(unsettled_fraction=0.5))


def test_images_that_are_not_those_of_the_trace_are_refused(tmp_path):
    run = find_analyzed([made_run(tmp_path / "0", {"t": made_trace(images="0" * 64)})])[0]
    refused(r"t is of images 000000000000, digits has .*: bring them back", write_galleries, run, Settings())


def test_large_images_are_kept_as_thumbnails():
    images = (np.arange(2 * 3 * 224 * 224).reshape(2, 3, 224, 224) % 251).astype(np.uint8)
    made = thumbnails(images)
    assert made.shape == (2, 3, 56, 56)
    assert made[1, 2, 3, 4] == round(images[1, 2, 12:16, 16:20].mean())
    assert np.array_equal(thumbnails(made), made)


def test_galleries_that_are_not_there_or_damaged_are_left_out(tmp_path):
    assert read_galleries(tmp_path) == []
    file = gallery_file(tmp_path, "odd")
    file.parent.mkdir(parents=True)
    file.write_bytes(b"odd")
    assert read_gallery(file) is None
    assert read_galleries(tmp_path) == []
