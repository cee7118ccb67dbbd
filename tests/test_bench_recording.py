"""Recording and analyses in the benchmark: the real ones, timed."""

from cascaded.bench.recording import analyses, recording


def test_all_images_are_evaluated_and_recorded():
    told = []
    measured = recording("resnet18", width=2, size=16, items=20, told=told.append)
    assert sum(told) == 40
    assert measured["times_serial"] == measured["record"] / measured["serial"] > 0


def test_analyses_are_timed_one_by_one():
    seconds = analyses((3, 50, 4))
    assert set(seconds) == {"speed_accuracy", "selection_latency", "prototypicality", "taxonomic_compliance"}
    assert min(seconds.values()) > 0
