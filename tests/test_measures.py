"""What is known of images besides their labels."""

from dataclasses import replace

import numpy as np
import pytest

from cascaded.analysis import centrality, human_agreement
from cascaded.data.clutter import clutter
from cascaded.data.human import COUNTS, CSCORES, human_counts
from cascaded.errors import CascadedWarning
from cascaded.results.analyzed import find_analyzed
from cascaded.results.measures import typicality
from tests.made_traces import made_run, made_trace
from tests.pictures import REAL, needs_real


def found(tmp_path, trace, **spec):
    return find_analyzed([made_run(tmp_path / "0", {"t": trace}, **spec)])[0].traces[0]


def test_centrality_is_of_the_embeddings(tmp_path):
    trace = made_trace(embeddings=True)
    measures = typicality(found(tmp_path, trace))
    assert np.array_equal(measures["centrality"], centrality(trace))
    assert typicality(found(tmp_path / "without", made_trace())) == {}


def test_centrality_of_folds_is_computed_with_each_folds_own_head(tmp_path):
    traces = [made_trace(k, 4, embeddings=True, indices=np.arange(2 - k, 8, 2), split="validation") for k in (1, 2)]
    for number, trace in enumerate(traces, start=1):
        made_run(tmp_path / "m" / f"fold{number}of2" / "0", {"t": trace}, fold=(number, 2))
    measures = typicality(find_analyzed([tmp_path])[0].traces[0])
    expected = np.empty(8)
    for trace in traces:
        expected[trace.indices] = centrality(trace)
    assert np.array_equal(measures["centrality"], expected)


def test_judgements_that_are_not_there_are_left_out_with_a_warning(tmp_path, monkeypatch):
    monkeypatch.setenv("CASCADED_DATA", str(tmp_path))
    with pytest.warns(CascadedWarning, match=r"has no human agreement: .*cifar10h-counts.npy"):
        assert set(typicality(found(tmp_path, made_trace(data="cifar10", embeddings=True)))) == {"centrality"}
    with pytest.warns(CascadedWarning, match=r"has no C-score: .*cifar10-cscores-orig-order.npz"):
        assert typicality(found(tmp_path / "v", made_trace(data="cifar10", split="validation"))) == {}
    # the sample in the package comes without them: no warning
    sample = made_trace(data="cifar10-sample", embeddings=True)
    assert set(typicality(found(tmp_path / "sample", sample))) == {"centrality"}


def test_typical_are_the_digits_with_little_clutter(tmp_path):
    rows = np.array([700, 3, 41, 5])
    for split, source in (("test", "test"), ("validation", "train")):
        trace = made_trace(data="cluttered-digits", split=split, items=4, indices=rows)
        measures = typicality(found(tmp_path / split, trace))
        assert np.array_equal(measures["typicality"], -clutter(source, rows))


@needs_real(CSCORES, COUNTS)
@pytest.mark.parametrize("data", ["cifar10", "cifar10-sample"])
@pytest.mark.parametrize("split", ["test", "validation"])
def test_judgements_are_those_of_the_rows_and_of_no_other_order(tmp_path, monkeypatch, data, split):
    monkeypatch.setenv("CASCADED_DATA", REAL)
    rows = np.arange(40)[::-1] * 7 + 3
    name, labels, expected = "human agreement", human_counts(rows).argmax(axis=1), human_agreement(human_counts(rows))
    if (data, split) == ("cifar10", "validation"):  # all images of the sample are test images
        scores = np.load(f"{REAL}/cifar10-cscores-orig-order.npz", allow_pickle=False)
        name, labels, expected = "C-score", scores["labels"][rows].astype(np.int64), scores["scores"][rows]
    trace = replace(made_trace(data=data, split=split, classes=10, indices=rows), labels=labels)
    measures = typicality(found(tmp_path, trace))
    assert measures.keys() == {name}
    assert np.array_equal(measures[name], expected)
    if data == "cifar10":
        with pytest.warns(CascadedWarning, match="in their original order"):
            assert typicality(found(tmp_path / "other", replace(trace, labels=(labels + 3) % 10))) == {}
