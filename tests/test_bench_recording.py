"""Recording and analyses in the benchmark: the real functions, timed."""

from cascaded.bench.recording import time_analyses, time_recording


def test_all_images_are_evaluated_and_recorded():
    items = []
    measured = time_recording("resnet18", width=2, image_size=16, items=20, on_progress=items.append)
    assert sum(items) == 40
    assert measured["time_of_serial"] == measured["record"] / measured["serial"] > 0


def test_every_analysis_is_timed():
    seconds = time_analyses((3, 50, 4))
    assert set(seconds) == {"speed_accuracy", "selection_latency", "prototypicality", "taxonomic_compliance"}
    assert min(seconds.values()) > 0
