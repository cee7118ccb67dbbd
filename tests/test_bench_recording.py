"""Recording in the benchmark: the real function, timed."""

from cascaded.bench.recording import time_recording


def test_all_images_are_evaluated_and_recorded():
    items = []
    measured = time_recording("resnet18", width=2, image_size=16, items=20, on_progress=items.append)
    assert sum(items) == 40
    assert measured["time_of_serial"] == measured["record"] / measured["serial"] > 0
