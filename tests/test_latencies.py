"""The table of reaction times per image."""

import shutil
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from cascaded.analysis.latency import selection_latency
from cascaded.cli.main import run
from cascaded.results.table import load
from cascaded.traces.store import find_traces
from tests.made_traces import made_run, made_trace, noisy_trace


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """A shipped network, recorded on a few photographs as people were shown them."""
    folder = tmp_path_factory.mktemp("networks") / "cifar10-td1"
    shutil.copytree(str(files("cascaded") / "hub" / "networks" / folder.name), folder)
    run(["record", str(folder), "--human", "--data", "cifar10-sample", "--max-images", "30"])
    return folder


def test_every_image_has_its_latency_in_steps_and_in_milliseconds_of_people(network, tmp_path):
    file = tmp_path / "latency.csv"
    run(["analyze", str(network), "--only", "human", "--draws", "2", "--latencies", str(file)])
    table = pd.read_csv(file)
    assert len(table) == 30 * 8
    rows = load(network, "human").query("manipulation == 'noise+blur+color' and rule == 'deadline' and unit == 'steps'")
    a, b = (rows.loc[rows.metric == name, "value"].iloc[0] for name in ("mapping_offset", "mapping_scale"))
    clean = table[table["noise"].isna()]
    (trace,) = [each.load() for each in find_traces(network) if each.config.noise is None]
    expected = selection_latency(trace)
    assert clean["image"].tolist() == trace.indices.tolist()
    settled = np.isfinite(expected.steps)
    assert clean["latency_steps"][settled].tolist() == expected.steps[settled].tolist()
    assert clean["latency_steps"].isna().tolist() == (~settled).tolist()
    assert clean["latency_ms"].to_numpy() == pytest.approx(a + b * clean["latency_steps"].to_numpy(), nan_ok=True)
    assert set(clean["model"]) == {"CascadedTD(1)"}
    assert clean["prediction"].isin(trace.provenance.classes).all()


def test_images_in_a_folder_are_named_by_their_files(network, tmp_path):
    folder, random = tmp_path / "my images", np.random.default_rng(0)
    for name in ("easy/one.png", "easy/two.png", "hard/three.png"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 255, (40, 40, 3), np.uint8)).save(folder / name)
    copy = shutil.copytree(network, tmp_path / "cifar10-td1")
    run(["record", str(copy), "--data", str(folder), "--split", "train"])
    run(["analyze", str(copy), "--only", "human", "--draws", "2", "--latencies", str(tmp_path / "latency.csv")])
    table = pd.read_csv(tmp_path / "latency.csv")
    own = table[table["data"] == str(folder)]
    assert own["image"].tolist() == ["easy/one.png", "easy/two.png", "hard/three.png"]
    assert own["category"].isna().all()  # their classes are not those of the network
    assert own["latency_ms"].notna().sum() == own["latency_steps"].notna().sum()


def test_without_a_line_there_are_steps_and_with_changing_noise_nothing(tmp_path):
    made_run(tmp_path / "0", {"a": made_trace(), "b": noisy_trace()}, method="cascaded-td", lam=0.0)
    run(["analyze", str(tmp_path), "--only", "speed_accuracy", "--latencies", str(tmp_path / "latency.csv")])
    table = pd.read_csv(tmp_path / "latency.csv")
    assert len(table) == 40
    assert table["latency_ms"].isna().all()
    assert table["latency_steps"].notna().any()
