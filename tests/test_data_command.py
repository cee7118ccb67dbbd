"""`cascaded data` as a newcomer types it, right and wrong; the tables, the sheets and the check behind it."""

import re

import numpy as np
import pytest
from PIL import Image

from cascaded.data.command import data
from cascaded.errors import InputError
from tests.pictures import encoded, image_folder, own_places, parquet_file, picture  # noqa: F401


@pytest.fixture(autouse=True)
def empty_folder(own_places, tmp_path, monkeypatch):  # noqa: F811
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def test_list_says_where_each_would_come_from(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("CASCADED_DATA", str(tmp_path))
    parquet_file(tmp_path / "svhn" / "test-0.parquet", [encoded(picture())], [0], ["0"])
    parquet_file(tmp_path / "cifar10" / "test-0.parquet", [encoded(picture())], [0], ["x"])
    data("show", "cifar10", split="test")
    data("list")
    told = capsys.readouterr().out
    assert re.search(r"digits .* embedded", told)
    assert re.search(r"lsun-crop .* hub, detectors/lsun_c-ood", told)
    assert "$CASCADED_DATA/svhn (test)" in told
    assert "$CASCADED_DATA/cifar10 (test), cached (test)" in told
    assert "next: cascaded data show digits" in told


def test_show_counts_and_draws(capsys, tmp_path):
    data("show", "digits", split="test")
    told = capsys.readouterr().out
    assert "digits test: 359 grey images, 8 x 8 pixels" in told
    assert "10 classes of 35 to 37 images, median 36" in told
    assert re.search(r"mean 0\.\d{4}, standard deviation 0\.\d{4}", told)
    assert "wrote digits-test.png" in told
    assert "next: cascaded train --data digits" in told
    with Image.open("digits-test.png") as sheet:
        assert sheet.height > 10 * 8
        assert len(np.unique(np.asarray(sheet))) > 10


@pytest.mark.parametrize(("name", "count"), [("cluttered-digits", "718"), ("photographs", "720")])
def test_what_the_demo_uses_can_be_listed_shown_and_checked(capsys, name, count):
    data("list")
    data("show", name, split="test")
    data("check", name, split="test")
    told = capsys.readouterr().out
    assert re.search(rf"{name} .* embedded", told)
    assert f"{name} test: {count} grey images, 28 x 28 pixels" in told
    assert f"{name} test: {count} images\n  28 x 28 pixels: {count}" in told
    assert "no problems" in told


def test_what_comes_next_has_the_options_that_were_given(capsys):
    data("show", "digits", split="test", size=16, classes=("3", "4"))
    assert "next: cascaded train --data digits --size 16 --classes 3 4" in capsys.readouterr().out
    data("show", "photographs", split="test")
    assert "next: cascaded record RUN --data photographs" in capsys.readouterr().out


def test_show_draws_where_it_is_told(tmp_path):
    root = image_folder(tmp_path / "insects", ["ant", "bee"])
    for seed in (0, 0, 1):
        data("show", str(root), out=tmp_path / "new" / f"{seed}.png", seed=seed)
    assert (tmp_path / "new" / "0.png").read_bytes() != (tmp_path / "new" / "1.png").read_bytes()


def test_show_speaks_of_images_without_labels(capsys, tmp_path):
    data("show", str(image_folder(tmp_path, ["loose"]) / "loose"))
    assert "no labels" in capsys.readouterr().out


def test_noise_draws_a_row_for_each_noise(capsys):
    data("noise", "digits")
    assert "wrote digits-train-noise.png" in capsys.readouterr().out
    with Image.open("digits-train-noise.png") as sheet:
        assert sheet.height >= 7 * 64


def test_check_finds_nothing_wrong_where_nothing_is(capsys):
    data("check", "digits")
    told = capsys.readouterr().out
    assert "digits train: 1,438 images\n  8 x 8 pixels: 1,438\n10 classes of 139 to 146 images" in told
    assert "no problems\nnext: cascaded data show digits --split train\n" in told


def test_check_lists_everything_that_is_wrong(capsys, tmp_path):
    root = image_folder(tmp_path / "insects", ["train/ant", "train/bee"])
    (root / "train" / "ant" / "7.png").write_bytes(b"not an image")
    (root / "train" / "bee" / "8.png").write_bytes(encoded(picture(size=(64, 64)))[:200])
    (root / "train" / "bee" / "9.png").write_bytes(encoded(picture(size=(9, 7))))
    (root / "train" / "wasp").mkdir()
    with pytest.raises(InputError, match="has 4 problems, listed above"):
        data("check", str(root))
    told = capsys.readouterr().out
    assert "7.png: cannot be read (not an image)" in told
    assert "8.png: cannot be read (" in told
    assert "8 x 8 pixels: 6" in told
    assert "9 x 7 pixels: 1" in told
    assert "there are images of 2 sizes: load them with --size 7" in told
    assert "class 'wasp' has no images" in told


def test_check_lists_labels_without_a_class(capsys, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = parquet_file(tmp_path / "mine.parquet", [encoded(picture(seed)) for seed in range(3)], [0, 1, 1], ["x", "y"])
    table = pq.read_table(file)
    pq.write_table(table.set_column(1, table.schema.field("label"), pa.array([0, 1, 5])), file)
    with pytest.raises(InputError, match="has 1 problem, listed above"):
        data("check", str(file))
    assert "row 2: label 5, there are 2 classes" in capsys.readouterr().out


def test_check_says_when_there_is_nothing(tmp_path):
    with pytest.raises(InputError, match="has 1 problem"):
        data("check", str(parquet_file(tmp_path / "mine.parquet", [])))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (["show"], {}, "show needs a data set: say cascaded data show digits"),
        (["list", "digits"], {}, "list takes no name, 'digits' was given"),
        (["show", "digits"], {"out": "sheet.jpg"}, "it will be a PNG"),
        (["show", "digits"], {"out": "."}, "a folder: give the name of a file in it"),
        (["show", "digtis"], {}, "say digits?"),
    ],
)
def test_wrong_commands_end_in_a_sentence(arguments, options, message):
    from pathlib import Path

    with pytest.raises(InputError, match=re.escape(message)):
        data(*arguments, **{name: Path(value) for name, value in options.items()})
