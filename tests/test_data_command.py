"""`cascaded data`: tables, sheets, checks, and errors in one sentence."""

import re
import shlex

import numpy as np
import pytest
from PIL import Image

from cascaded.cli.data import data
from cascaded.cli.main import run
from cascaded.data import load
from cascaded.errors import InputError
from cascaded.shell import program
from tests.pictures import encoded, image_folder, own_places, parquet_file, picture  # noqa: F401


@pytest.fixture(autouse=True)
def empty_folder(own_places, tmp_path, monkeypatch):  # noqa: F811
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def test_list_prints_where_each_is_loaded_from(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("CASCADED_DATA", str(tmp_path))
    parquet_file(tmp_path / "svhn" / "test-0.parquet", [encoded(picture())], [0], ["0"])
    parquet_file(tmp_path / "cifar10" / "test-0.parquet", [encoded(picture())], [0], ["x"])
    data("show", "cifar10", split="test")
    data("list")
    output = capsys.readouterr().out
    assert re.search(r"digits .* embedded", output)
    assert re.search(r"lsun-crop .* hub, detectors/lsun_c-ood", output)
    assert "$CASCADED_DATA/svhn (test)" in output
    assert "$CASCADED_DATA/cifar10 (test), cached (test)" in output
    assert f"next: {program()} data show digits\n" in output


def test_show_counts_and_draws(capsys, tmp_path):
    data("show", "digits", split="test")
    output = capsys.readouterr().out
    assert "digits test: 359 gray images, 8 x 8 pixels" in output
    assert "10 classes, 35 to 37 images (median 36) per class" in output
    assert re.search(r"mean 0\.\d{4}, standard deviation 0\.\d{4}", output)
    assert "wrote digits-test.png" in output
    assert f"next: {program()} train --data digits --out runs/mine\n" in output
    with Image.open("digits-test.png") as sheet:
        assert sheet.height > 10 * 8
        assert len(np.unique(np.asarray(sheet))) > 10


@pytest.mark.parametrize(("name", "count", "side"), [("digits", 359, 8), ("cluttered-digits", 718, 28)])
def test_check_of_good_data_finds_no_problems(capsys, name, count, side):
    data("check", name, split="test")
    output = capsys.readouterr().out
    assert f"{name} test: {count} images\nsize: {side} x {side} pixels\n" in output
    assert f"no problems\nnext: {program()} train --data {name} --out runs/mine\n" in output


def test_the_next_command_has_the_given_options(capsys):
    data("show", "digits", split="test", image_size=16, classes=("3", "4"))
    trains = f"next: {program()} train --data digits --image-size 16 --classes 3 4 --out runs/mine\n"
    assert trains in capsys.readouterr().out
    data("show", "photographs", split="test")
    output = capsys.readouterr().out
    assert "photographs test: 720 gray images, 28 x 28 pixels" in output
    assert "no labels" in output
    assert f"these images are for evaluation (--data photographs), see {program()} record --help\n" in output
    data("show", "cifar10-sample")  # labels, but no training images
    assert "for evaluation (--data cifar10-sample)" in capsys.readouterr().out


def test_show_writes_the_given_file(tmp_path):
    root = image_folder(tmp_path / "insects", ["ant", "bee"])
    for seed in (0, 0, 1):
        data("show", str(root), out=tmp_path / "new" / f"{seed}.png", seed=seed)
    assert (tmp_path / "new" / "0.png").read_bytes() != (tmp_path / "new" / "1.png").read_bytes()


def test_noise_draws_a_row_for_each_noise(capsys):
    data("noise", "digits")
    assert "wrote digits-train-noise.png" in capsys.readouterr().out
    with Image.open("digits-train-noise.png") as sheet:
        assert sheet.height >= 7 * 64


def test_check_lists_all_problems(capsys, tmp_path):
    root = image_folder(tmp_path / "insects", ["train/ant", "train/bee"])
    (root / "train" / "ant" / "7.png").write_bytes(b"not an image")
    (root / "train" / "bee" / "8.png").write_bytes(encoded(picture(size=(64, 64)))[:200])
    (root / "train" / "bee" / "9.png").write_bytes(encoded(picture(size=(9, 7))))
    (root / "train" / "wasp").mkdir()
    with pytest.raises(InputError, match="has 4 problems, listed above"):
        data("check", str(root))
    output = capsys.readouterr().out
    assert output.startswith(f"{root} train: 9 images, 4 problems:\n  images have 2 sizes")
    assert "7.png cannot be read (not an image)" in output
    assert "8.png cannot be read (" in output
    assert "class 'wasp' has no images" in output
    summary = "2 sizes in pixels: smallest 9 x 7, largest 8 x 8, most common 8 x 8 (6 images)"
    assert output.index(summary) > max(map(output.index, ("7.png", "8.png", "wasp")))  # problems come first


def test_check_lists_the_problems_of_all_splits_and_of_the_folders_at_once(capsys, tmp_path):
    root = image_folder(tmp_path / "insects", ["train/ant", "train/bee", "test/ant", "val/bee"])
    (root / "train" / "0.png").write_bytes(encoded(picture()))
    for name in ("train/bee/a.npy", "train/b.pt", "test/ant/7.png", "val/bee/8.png"):
        (root / name).write_bytes(b"not an image")
    with pytest.raises(InputError, match="insects has 5 problems, listed above: correct them"):
        data("check", str(root))
    output = capsys.readouterr().out
    for problem in (
        "train/bee/a.npy may contain a pickle",
        "train/b.pt may contain a pickle",
        "train/0.png is beside the class",
        "test/ant/7.png cannot be read",
        "val/bee/8.png cannot be read",
    ):
        assert str(root / problem) in output
    with pytest.raises(InputError, match="insects test has 1 problem, listed above: correct it"):
        data("check", str(root), split="test")


def test_many_sizes_are_one_line(capsys, tmp_path):
    root = image_folder(tmp_path / "insects", ["ant", "bee"], each=2, size=(90, 80))
    for side in range(70, 110):
        (root / "ant" / f"{side}.png").write_bytes(encoded(picture(size=(side, 100))))
    data("check", str(root), image_size=32)
    output = capsys.readouterr().out
    assert "41 sizes in pixels: smallest 70 x 100, largest 109 x 100, most common 90 x 80 (4 images)" in output
    assert output.count("pixels") == 1
    assert f"next: {program()} train --data {root} --image-size 32 --out runs/mine\n" in output


@pytest.mark.parametrize(
    ("sizes", "suggested"), [([(90, 70), (200, 300)], 64), ([(40, 70), (50, 48)], 40), ([(3, 9), (50, 48)], 8)]
)
def test_check_and_train_suggest_the_same_size_and_both_accept_it(sizes, suggested, capsys, tmp_path):
    root = image_folder(tmp_path / "insects", ["train/ant", "train/bee", "test/ant", "test/bee"], each=2)
    for number, size in enumerate(sizes):
        for file in root.glob(f"*/*/{number}.png"):
            file.write_bytes(encoded(picture(size=size)))
    with pytest.raises(InputError, match="insects has 2 problems"):  # one per split
        data("check", str(root))
    assert capsys.readouterr().out.count(f"--image-size {suggested} ") == 2
    with pytest.raises(InputError, match=f"images have 2 sizes, training needs one: use --image-size {suggested} "):
        load(root)  # as train does
    data("check", str(root), image_size=suggested)
    assert f"--image-size {suggested} --out" in capsys.readouterr().out
    assert load(root, image_size=suggested).images.shape[-2:] == (suggested, suggested)


def test_large_images_of_one_size_get_a_size_to_train_with(capsys, tmp_path):
    data("check", str(image_folder(tmp_path / "insects", ["ant", "bee"], each=1, size=(120, 90))))
    assert "--image-size 64 --out runs/mine\n" in capsys.readouterr().out


def test_splits_of_different_sizes_are_refused_by_check_as_by_train(tmp_path):
    root = image_folder(tmp_path / "insects", ["train/ant", "train/bee"])
    image_folder(root, ["test/ant", "test/bee"], size=(12, 12))
    with pytest.raises(InputError, match=r"the splits of .*insects have different sizes: use --image-size 8"):
        data("check", str(root))


@pytest.mark.parametrize("below", ["", "train"])
def test_a_folder_one_too_high_has_one_class_and_check_and_train_refuse_it(below, tmp_path):
    image_folder(tmp_path / "wrapped" / below / "insects", ["ant", "bee"], each=4)
    message = "wrapped has one class, 'insects', and training needs two: give the folder that contains one folder per"
    for command in (["data", "check"], ["train", "--data"]):
        with pytest.raises(InputError, match=message):
            run([*command, str(tmp_path / "wrapped")])
    assert load(tmp_path / "wrapped").classes == ("insects",)  # for evaluation


@pytest.mark.parametrize(("place", "wrong"), [("nope", "does not exist"), ("file", "is a file")])
@pytest.mark.parametrize("arguments", [("list",), ("show", "cifar10"), ("check", "svhn")])
def test_a_data_folder_that_is_not_there_is_refused(arguments, place, wrong, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("CASCADED_DATA", str(tmp_path / place))
    message = f"CASCADED_DATA is {tmp_path / place}, which {wrong}: set it to a folder of data sets, or unset it"
    with pytest.raises(InputError, match=re.escape(message)):
        data(*arguments)


def test_printed_commands_run_as_pasted(capsys, tmp_path):
    root = image_folder(tmp_path / "my insects", ["train/ant", "train/bee", "train/wasp"], each=8, size=(90, 70))
    for action in ("check", "show"):
        data(action, str(root), image_size=16, classes=("ant", "bee"))
    command, same = re.findall(rf"^next: {re.escape(program())} (.*)$", capsys.readouterr().out, re.MULTILINE)
    assert command == same
    run([*shlex.split(command), "--epochs", "1", "--width", "2", "--batch-size", "4"])
    assert (tmp_path / "here" / "runs" / "mine" / "0" / "config.json").is_file()
    data("show", "photographs")
    words = re.findall(rf"{re.escape(program())} (.*)$", capsys.readouterr().out, re.MULTILINE)
    with pytest.raises(SystemExit) as stopped:
        run(shlex.split(words[-1]))
    assert stopped.value.code == 0
