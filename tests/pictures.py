"""Real image files for the tests of data: folders of PNGs, Parquet files, and a cache of each test's own."""

import io
import os
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from cascaded.data.catalogue import SOURCES
from cascaded.data.human import COUNTS, COUNTS_AT, CSCORES, CSCORES_AT
from cascaded.data.images import Images

REAL = os.environ.get("CASCADED_DATA")
CIFAR10, CIFAR10_TEST = (f"cifar10/{split}-00000-of-00001.parquet" for split in ("train", "test"))
CIFAR100_TEST, TINY_TEST = (f"{name}/test-00000-of-00001.parquet" for name in ("cifar100", "tinyimagenet"))
PUBLISHED = {CSCORES: CSCORES_AT, COUNTS: COUNTS_AT}


def needs_real(*files):
    """Skip a test without these published files below $CASCADED_DATA; docs/data.md, docs/analyses.md link to them."""
    missing = [file for file in files if not REAL or not Path(REAL, file).is_file()]
    hubs = {file: SOURCES[Path(file).parent.name].hub for file in missing if file not in PUBLISHED}
    listed = [f"{file} ({PUBLISHED.get(file) or f'huggingface.co/datasets/{hubs[file]}'})" for file in missing]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(listed)} in $CASCADED_DATA, which is {REAL}")


@pytest.fixture(autouse=True)
def own_places(monkeypatch, tmp_path):
    """No test reads or writes a cache outside its own folder, or finds data that happen to be there."""
    monkeypatch.setenv("CASCADED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.delenv("CASCADED_DATA", raising=False)


def picture(seed=0, size=(8, 8), gray=False):
    """Pixels that differ from seed to seed: height, width and, unless gray, three channels."""
    shape = (size[1], size[0]) if gray else (size[1], size[0], 3)
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def encoded(pixels, form="PNG", **options):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, form, **options)
    return file.getvalue()


def image_folder(root, names, each=3, **options):
    """A folder of PNGs: names such as "train/ant", `each` images in every one."""
    for place, name in enumerate(names):
        (root / name).mkdir(parents=True, exist_ok=True)
        for number in range(each):
            (root / name / f"{number}.png").write_bytes(encoded(picture(100 * place + number, **options)))
    return root


def parquet_file(file, images, labels=None, names=None, image="img", label="label"):
    """A Parquet file in the layout of the library `datasets`; with `names` the classes are declared."""
    from datasets import ClassLabel, Features, Value
    from datasets import Image as ImageFeature

    columns = {image: [{"bytes": each, "path": None} for each in images]}
    features = {image: ImageFeature()}
    if labels is not None:
        columns[label] = labels
        kind = "string" if isinstance(labels[0], str) else "int64"
        features[label] = ClassLabel(names=names) if names else Value(kind)
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns, schema=Features(features).arrow_schema), file)
    return file


class Evil:
    """What a malicious pickle holds: unpickling it creates a file."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch '{self.marker}'",)


def evil_pickle(marker):
    return pickle.dumps(Evil(marker))


def labeled(labels, classes=None, pixels=None):
    """Images of one pixel with these labels."""
    labels = torch.as_tensor(labels, dtype=torch.int64)
    classes = tuple(f"class {number}" for number in range(int(labels.max()) + 1)) if classes is None else classes
    pixels = torch.arange(len(labels)).remainder(256).to(torch.uint8).view(-1, 1, 1, 1) if pixels is None else pixels
    return Images("made", "train", pixels, labels, classes, torch.arange(len(labels)))
