"""Folders of images: splits, classes, and files that do not belong there."""

import pytest
import torch
from PIL import Image

from cascaded.data import load
from cascaded.data.folder import IMAGES
from cascaded.errors import InputError
from tests.pictures import encoded, evil_pickle, image_folder, own_places, picture  # noqa: F401


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


def test_folders_that_are_classes_are_a_training_set(tmp_path):
    images = load(image_folder(tmp_path / "vehicles", ["car", "train", "bus"]))
    assert images.classes == ("bus", "car", "train")
    assert len(images) == 9


def test_a_class_that_one_split_lacks_keeps_its_number(tmp_path):
    root = image_folder(tmp_path / "set", ["train/a", "train/b", "train/c", "test/c"])
    assert load(root, "test").labels.tolist() == [2, 2, 2]


@pytest.mark.parametrize("name", ["validation", "valid", "val"])
def test_validation_has_three_usual_names(name, tmp_path):
    root = image_folder(tmp_path / "set", [f"{name}/a", "train/a"])
    assert all(len(load(root, split)) == 3 for split in ("validation", "valid", "val"))


def test_images_without_folders_have_no_labels(tmp_path):
    images = load(image_folder(tmp_path, ["loose"]) / "loose")
    assert images.classes == ()
    assert images.labels.tolist() == [-1, -1, -1]


def test_pillow_reads_all_image_suffixes():
    assert set(IMAGES) <= set(Image.registered_extensions())


def test_hidden_and_other_files_are_ignored(tmp_path):
    root = image_folder(tmp_path / "set", ["a", "b"])
    (root / "a" / "._0.png").write_bytes(b"what other systems leave behind")
    (root / "a" / "notes.txt").write_text("two of these are blurred")
    assert len(load(root)) == 6


@pytest.mark.parametrize("name", ["a/data.npy", "a/model.pt", "b/cache.PKL", "more.pickle", "a/9.png"])
def test_a_pickle_in_a_folder_is_refused_and_does_not_run(name, tmp_path):
    root = image_folder(tmp_path / "set", ["a", "b"])
    (root / name).write_bytes(evil_pickle(tmp_path / "marker"))
    with pytest.raises(
        InputError,
        match=r"loading one can run any program|9\.png cannot be read \(not an image\)",
    ):
        load(root)
    assert not (tmp_path / "marker").exists()


def test_the_problems_of_a_folder_are_named(tmp_path):
    root = image_folder(tmp_path / "set", ["train/a", "train/b"])
    with pytest.raises(InputError, match="has no split 'test', there are train"):
        load(root, "test")
    with pytest.raises(InputError, match="is a folder of images and has no column 'kind': leave --label-column out"):
        load(root, label_column="kind")
    (root / "train" / "c").mkdir()
    with pytest.raises(InputError, match="has 1 problem: class 'c' has no images: add some"):
        load(root)
    (root / "train" / "loose.png").write_bytes(encoded(picture()))
    with pytest.raises(InputError, match=r"has 2 problems:\n(.*\n)*.*loose\.png is beside the class folders \(a, "):
        load(root)
    (tmp_path / "nothing").mkdir()
    with pytest.raises(InputError, match="nothing contains no images"):
        load(tmp_path / "nothing")
