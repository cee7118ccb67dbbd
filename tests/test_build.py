"""Rows and folders of images become one tensor: order, channels, classes, and one sentence per problem."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from cascaded.cli.data import data
from cascaded.data import load
from cascaded.data.folder import IMAGES
from cascaded.errors import InputError
from cascaded.shell import program
from tests.pictures import encoded, evil_pickle, image_folder, own_places, parquet_file, picture  # noqa: F401
from tests.refused import refused

PNGS = [encoded(picture(seed)) for seed in range(6)]


def test_order_survives_many_batches_and_threads(tmp_path, monkeypatch):
    monkeypatch.setattr("cascaded.data.build.cores", lambda: 4)
    monkeypatch.setattr("cascaded.data.build.BATCH", 7)
    many = [encoded(picture(seed, size=(3, 2))) for seed in range(100)]
    images = load(parquet_file(tmp_path / "many.parquet", many))
    expected = torch.stack([torch.from_numpy(picture(seed, size=(3, 2))).permute(2, 0, 1) for seed in range(100)])
    assert torch.equal(images.images, expected)


def test_gray_images_have_one_channel_and_mixed_ones_three(tmp_path):
    gray = [encoded(picture(seed, gray=True)) for seed in range(3)]
    alone = load(parquet_file(tmp_path / "gray.parquet", gray))
    assert alone.images.shape == (3, 1, 8, 8)
    assert torch.equal(alone.images[1, 0], torch.from_numpy(picture(1, gray=True)))
    mixed = load(parquet_file(tmp_path / "mixed.parquet", [*gray, *PNGS]))
    assert mixed.images.shape == (9, 3, 8, 8)
    assert torch.equal(mixed.images[:3], alone.images.expand(-1, 3, -1, -1))


def test_chosen_classes_are_numbered_anew_and_keep_their_rows(tmp_path):
    file = parquet_file(tmp_path / "mine.parquet", PNGS, [0, 1, 2, 0, 1, 2], ["x", "y", "z"])
    images = load(file, classes=["z", "x"])
    assert images.classes == ("z", "x")
    assert images.labels.tolist() == [1, 0, 1, 0]
    assert images.indices.tolist() == [0, 2, 3, 5]
    assert torch.equal(images.images, load(file).images[images.indices])


def test_a_label_without_a_class_is_named_by_load_and_by_check(tmp_path, capsys):
    file = parquet_file(tmp_path / "mine.parquet", PNGS[:3], [0, 1, 1], ["x", "y"])
    table = pq.read_table(file)
    pq.write_table(table.set_column(1, table.schema.field("label"), pa.array([0, 1, 7])), file)
    refused("row 2 has label 7, there are 2 classes", load, file)
    refused("has 1 problem, listed above", data, "check", str(file))
    assert "row 2 has label 7, there are 2 classes" in capsys.readouterr().out


def test_an_empty_class_is_named_where_it_matters(tmp_path):
    for split in ("train", "test"):
        parquet_file(tmp_path / "set" / f"{split}-0.parquet", PNGS[:2], [0, 2], ["x", "y", "z"])
    refused("class 'y' has no images: add some", load, tmp_path / "set")
    assert load(tmp_path / "set", "test").classes == ("x", "y", "z")  # nothing is learned from a test set
    refused("class 'y' has no images", load, tmp_path / "set", "test", classes=["x", "y"])


def test_an_empty_table_is_refused_by_load_and_by_check(tmp_path):
    file = parquet_file(tmp_path / "mine.parquet", [])
    refused("there are no images: add some, or use other data", load, file)
    refused("has 1 problem", data, "check", str(file))


def test_all_problems_are_listed_at_once_and_nothing_is_cached(tmp_path):
    images = [PNGS[0], b"broken", encoded(picture(size=(12, 10))), *PNGS[1:], *[b"broken"] * 4]
    file = parquet_file(tmp_path / "mine.parquet", images, [0, 0, 2, *[0] * 5, None, 0, 0, 0], ["x", "y", "z"])
    with pytest.raises(InputError) as refused:
        load(file)
    first, *listed, last = str(refused.value).split("\n  ")
    assert first == f"{file} train has 8 problems:"
    assert listed == [
        "images have 2 sizes, training needs one: use --image-size 8 (image_size=8 in Python)",
        "1 image has no label, the others have one: label all or none",
        "class 'y' has no images: add some, or use --classes without it",
        "row 1 cannot be read (not an image): replace or remove it",
        "row 8 cannot be read (not an image): replace or remove it",
    ]
    assert last == f"and 3 more: {program()} data check {file}"
    assert {each.suffix for each in (tmp_path / "cache").iterdir()} == {".lock"}
    assert load(parquet_file(tmp_path / "good.parquet", [*PNGS, images[2]]), image_size=8).images.shape == (7, 3, 8, 8)


# --- folders


@pytest.mark.parametrize(("first", "second"), [("train", "test"), ("Train", "Test")])
def test_folders_are_splits_and_classes(first, second, tmp_path):
    root = image_folder(tmp_path / "insects", [f"{first}/bee", f"{first}/ant", f"{second}/bee", f"{second}/ant"])
    train, test = load(root), load(root, "test")
    assert train.classes == test.classes == ("ant", "bee")
    assert train.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert train.indices.tolist() == list(range(6))
    ant = torch.from_numpy(picture(100)).permute(2, 0, 1)  # train/ant was made second
    assert torch.equal(train.images[0], ant)
    assert not torch.equal(test.images[0], ant)
    assert train.name == str(root)


@pytest.mark.parametrize(
    ("folders", "split", "classes", "labels"),
    [
        (["car", "train", "bus"], "train", ("bus", "car", "train"), [0, 0, 0, 1, 1, 1, 2, 2, 2]),  # no split in it
        (["train/a", "train/b", "train/c", "test/c"], "test", ("a", "b", "c"), [2, 2, 2]),
        (["val/a", "train/b"], "validation", ("a", "b"), [0, 0, 0]),
        (["validation/a", "train/b"], "valid", ("a", "b"), [0, 0, 0]),
        (["valid/a", "train/b"], "val", ("a", "b"), [0, 0, 0]),
        (["."], "train", (), [-1, -1, -1]),
    ],
)
def test_splits_and_classes_that_folders_may_have(folders, split, classes, labels, tmp_path):
    root = image_folder(tmp_path / "set", folders)
    (root / folders[0] / "._0.png").write_bytes(b"what other systems leave behind")
    (root / folders[0] / "notes.txt").write_text("two of these are blurred")
    assert set(IMAGES) <= set(Image.registered_extensions())
    images = load(root, split)
    assert images.classes == classes
    assert images.labels.tolist() == labels


@pytest.mark.parametrize("name", ["a/data.npy", "a/model.pt", "b/cache.PKL", "more.pickle", "a/9.png"])
def test_a_pickle_in_a_folder_is_refused_and_does_not_run(name, tmp_path):
    root = image_folder(tmp_path / "set", ["a", "b"])
    (root / name).write_bytes(evil_pickle(tmp_path / "marker"))
    refused(r"loading one can run any program|9\.png cannot be read \(not an image\)", load, root)
    assert not (tmp_path / "marker").exists()


def test_the_problems_of_a_folder_are_named(tmp_path):
    root = image_folder(tmp_path / "set", ["train/a", "train/b"])
    refused("has no split 'test', there are train", load, root, "test")
    refused("is a folder of images and has no column 'kind': leave --label-column out", load, root, label_column="kind")
    (root / "train" / "c").mkdir()
    refused("has 1 problem: class 'c' has no images: add some", load, root)
    (root / "train" / "loose.png").write_bytes(encoded(picture()))
    refused(r"has 2 problems:\n(.*\n)*.*loose\.png is beside the class folders \(a, ", load, root)
    (tmp_path / "nothing").mkdir()
    refused("nothing contains no images", load, tmp_path / "nothing")
