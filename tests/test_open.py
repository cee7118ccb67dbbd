"""Parquet files and the hub; responses of the hub are made from Parquet files, so that tests need no network."""

import os
import re
import subprocess
import sys
from types import SimpleNamespace

import datasets
import huggingface_hub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from cascaded.data import SOURCES, load
from cascaded.data.columns import Columns
from cascaded.data.open import Hub, locate, stream_parquet
from cascaded.errors import InputError
from tests.pictures import encoded, evil_pickle, own_places, parquet_file, picture  # noqa: F401
from tests.refused import refused

PNGS = [encoded(picture(seed)) for seed in range(6)]


def test_rows_come_in_their_order_with_their_pixels(tmp_path):
    file = parquet_file(tmp_path / "mine.parquet", PNGS, [2, 0, 1, 1, 0, 2], ["x", "y", "z"])
    images = load(file)
    assert images.classes == ("x", "y", "z")
    assert images.labels.tolist() == [2, 0, 1, 1, 0, 2]
    assert all(torch.equal(images.images[row].permute(1, 2, 0), torch.from_numpy(picture(row))) for row in range(6))
    refused("has no split 'test', there are train", load, file, "test")  # one file is not both
    assert len(load(file.rename(tmp_path / "test-0-of-1.parquet"), "test")) == 6


def test_files_of_a_split_are_read_one_after_the_other_wherever_they_are(tmp_path):
    folder = tmp_path / "with [brackets] and * stars"
    for part in (0, 1):
        parquet_file(folder / f"train-{part}-of-2.parquet", PNGS[3 * part : 3 * part + 3], [0, 1, 2], ["x", "y", "z"])
    parquet_file(folder / "test-0-of-1.parquet", PNGS[:2], [0, 1], ["x", "y", "z"])
    assert load(folder).labels.tolist() == [0, 1, 2, 0, 1, 2]
    assert len(load(folder, "test")) == 2
    refused("has no split 'extra', there are test, train", load, folder, "extra")


def test_undeclared_labels_have_the_same_numbers_in_every_split(tmp_path):
    parquet_file(tmp_path / "set" / "train-0.parquet", PNGS[:3], ["wasp", "ant", "bee"])
    parquet_file(tmp_path / "set" / "test-0.parquet", PNGS[3:], ["wasp", "wasp", "bee"])
    assert load(tmp_path / "set").labels.tolist() == [2, 0, 1]
    assert load(tmp_path / "set", "test").labels.tolist() == [2, 2, 1]
    numbers = load(parquet_file(tmp_path / "numbers.parquet", PNGS[:3], [1, 0, 1]))
    assert numbers.classes == ("0", "1")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("cut.parquet", lambda good: good[:-10], r"cut\.parquet cannot be read \("),
        ("hollow.parquet", lambda good: b"PAR1 and nothing else PAR1", r"hollow\.parquet cannot be read \("),
        ("readme.txt", lambda good: b"no data", r"neither a folder nor a \.parquet file"),
    ],
)
def test_the_problem_of_a_file_is_named(name, change, message, tmp_path):
    (tmp_path / name).write_bytes(change(parquet_file(tmp_path / "mine.parquet", PNGS).read_bytes()))
    refused(message, load, tmp_path / name)


@pytest.mark.parametrize("name", ["data.parquet", "data.npy", "data.pt", "data.pkl"])
def test_a_pickle_is_refused_whatever_it_is_called_and_does_not_run(name, tmp_path):
    (tmp_path / name).write_bytes(evil_pickle(tmp_path / "marker"))
    refused(r"cannot be read|may contain a pickle", load, tmp_path / name)
    assert not (tmp_path / "marker").exists()


def test_a_row_that_only_names_a_file_is_not_followed(tmp_path):

    (tmp_path / "secret.png").write_bytes(PNGS[0])
    rows = pa.table({"img": [{"bytes": None, "path": str(tmp_path / "secret.png")}]})
    pq.write_table(rows, tmp_path / "mine.parquet")
    refused(r"row 0 cannot be read \(the row contains no bytes\)", load, tmp_path / "mine.parquet", image_column="img")


def test_local_files_are_read_without_a_connection(tmp_path, monkeypatch):
    tried = []
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_UPDATE_DOWNLOAD_COUNTS", True)
    monkeypatch.setattr("socket.getaddrinfo", lambda *address, **_: tried.append(address) or 1 / 0)
    images = load(parquet_file(tmp_path / "mine.parquet", PNGS))
    assert images.classes == ()
    assert images.labels.tolist() == [-1] * 6
    assert tried == []


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub with one data set of ten rows, row n is picture n; it can be switched off or have another version."""
    pictures = [encoded(picture(row)) for row in range(10)]
    file = parquet_file(tmp_path / "hub.parquet", pictures, list(range(10)), list("abcdefghij"))
    rows, local = stream_parquet([file]), datasets.load_dataset
    state = SimpleNamespace(version="1" * 40, up=True, opened=[])

    def dataset_info(self, name, timeout):
        if not state.up:
            raise huggingface_hub.errors.OfflineModeIsEnabled("offline mode is enabled")
        return SimpleNamespace(sha=state.version)

    def load_dataset(name, config=None, revision=None, streaming=True, **files):
        if name == "parquet":
            return local(name, streaming=streaming, **files)
        state.opened.append((name, config, revision, streaming))
        return datasets.IterableDatasetDict({"train": rows, "valid": rows, "extra": rows})

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", dataset_info)
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return state


def test_a_data_set_of_the_hub_is_streamed_at_the_version_that_the_key_names(hub, monkeypatch):
    seen, decode = [], sys.modules["cascaded.data.build"].decode
    monkeypatch.setattr("cascaded.data.build.decode", lambda *given: seen.append(1) or decode(*given))
    images = load("someone/letters:small", classes=["c", "a"])
    assert len(seen) == 2  # other rows are not decoded
    assert hub.opened == [("someone/letters", "small", "1" * 40, True)]
    assert images.labels.tolist() == [1, 0]
    assert images.indices.tolist() == [0, 2]
    refused("someone/letters has no split 'test', there are train, valid, extra", load, "someone/letters", "test")


def test_the_hub_is_read_once_for_each_version_and_its_cached_images_are_used_when_it_is_unreachable(hub):
    there = load("someone/letters")
    load("someone/letters")
    assert len(hub.opened) == 1
    hub.version = "2" * 40
    load("someone/letters")
    assert len(hub.opened) == 2
    hub.up = False
    assert torch.equal(load("someone/letters").images, there.images)
    with pytest.raises(InputError, match=r"someone/letters is on the hub, which cannot be reached \(offline mode\)"):
        load("someone/letters", image_size=4)


def test_validation_and_test_images_of_out_of_distribution_data_differ(hub):
    validation, test = (load("tinyimagenet-resize", split) for split in ("validation", "test"))
    assert validation.indices.tolist() == [0]  # every tenth: the hub has them sorted by class
    assert test.indices.tolist() == [*range(10)]
    for name, splits in (("tinyimagenet-crop", ["train", "valid"]), ("svhn", ["train", "test"])):
        assert [SOURCES[name].splits[split].split for split in ("validation", "test")] == splits
    assert SOURCES["svhn"].splits["validation"].rows == slice(None)  # all of them, as in the paper
    halves = [SOURCES["lsun-crop"].splits[split].rows for split in ("validation", "test")]
    assert [len(range(*half.indices(10_000))) for half in halves] == [5000, 5000]
    assert not set(range(*halves[0].indices(10_000))) & set(range(*halves[1].indices(10_000)))


def test_local_files_come_before_the_hub(hub, tmp_path, monkeypatch):
    monkeypatch.setenv("CASCADED_DATA", str(tmp_path / "data"))
    parquet_file(tmp_path / "data" / "cifar10" / "train-0-of-1.parquet", PNGS, [0, 1] * 3, ["x", "y"])
    assert load("cifar10").classes == ("x", "y")
    assert not hub.opened

    def rows(split):
        return [row.index for row in locate(SOURCES["tinyimagenet-crop"], split).open(Columns()).rows()]

    parquet_file(tmp_path / "data" / "tinyimagenet" / "validation-0.parquet", PNGS, [0, 1] * 3, ["x", "y"])
    assert isinstance(locate(SOURCES["tinyimagenet-crop"], "validation"), Hub)  # these are the hub's test images
    parquet_file(tmp_path / "data" / "tinyimagenet" / "train-0.parquet", PNGS, [0, 1] * 3, ["x", "y"])
    assert (rows("validation"), rows("test")) == ([0], list(range(6)))  # a copy of the hub's files counts as the hub's
    parquet_file(tmp_path / "data" / "tinyimagenet" / "test-0.parquet", PNGS, [0, 1] * 3, ["x", "y"])
    assert rows("validation") == rows("test") == list(range(6))  # a file for each


@pytest.mark.parametrize(
    "settings", [pytest.param({"HF_HUB_OFFLINE": "1"}, marks=pytest.mark.long), {"HF_ENDPOINT": "http://127.0.0.1:9"}]
)
def test_without_a_network_the_error_is_one_sentence_with_a_fix(settings, tmp_path):
    env = {**os.environ, "CASCADED_CACHE": str(tmp_path), "HF_HOME": str(tmp_path), **settings}
    command = [sys.executable, "-m", "cascaded", "data", "show", "cifar10"]
    output = subprocess.run(command, capture_output=True, text=True, check=False, env=env, timeout=300)
    way = r"connect, or put train-\*.parquet into \$CASCADED_DATA/cifar10/, or use --data digits\n"
    assert re.fullmatch(f"cascaded: uoft-cs/cifar10 is on the hub, which cannot be reached \\(.*: {way}", output.stderr)
