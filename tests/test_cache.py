"""What is decoded once is kept whole, mapped, and made again when it is damaged or its source changes."""

import os
import signal
import time
from functools import partial

import pytest
import torch

from cascaded.data import build, load
from cascaded.errors import InputError
from tests.forked import PATIENCE, code_of, forked, wait_until
from tests.pictures import encoded, image_folder, own_places, picture  # noqa: F401


@pytest.fixture
def folder(tmp_path):
    return image_folder(tmp_path / "insects", ["train/ant", "train/bee"], each=4)


def kept(tmp_path):
    return sorted((tmp_path / "cache").glob("*.safetensors"))


def same(one, other):
    assert (one.name, one.split, one.classes) == (other.name, other.split, other.classes)
    return all(torch.equal(getattr(one, name), getattr(other, name)) for name in ("images", "labels", "indices"))


def test_images_are_decoded_once(folder, tmp_path, monkeypatch):
    first = load(folder)
    monkeypatch.setattr("cascaded.data.build.decode", None)  # would fail
    assert same(load(folder), first)
    assert [file.name.startswith("insects-train-") for file in kept(tmp_path)] == [True]


def test_each_request_has_a_file_of_its_own(folder, tmp_path):
    for options in ({}, {"image_size": 4}, {"classes": ["bee"]}, {"classes": ["bee", "ant"]}, {}):
        load(folder, **options)
    assert len(kept(tmp_path)) == 4


def test_a_changed_source_is_decoded_again(folder):
    first = load(folder)
    (folder / "train" / "ant" / "0.png").write_bytes(encoded(picture(999)))
    second = load(folder)
    assert not torch.equal(first.images[0], second.images[0])
    assert torch.equal(first.images[1:], second.images[1:])
    (folder / "train" / "bee" / "0.png").unlink()
    assert len(load(folder)) == 7


@pytest.mark.parametrize(
    "damage", [lambda good: good[:-1], lambda good: good[:100], lambda good: b"", lambda good: b"x" * 50]
)
def test_a_damaged_file_is_noticed_and_made_again(damage, folder, tmp_path):
    first = load(folder)
    pixels = first.images.clone()
    (file,) = kept(tmp_path)
    good = file.read_bytes()
    file.unlink()  # what is mapped stays as it is
    file.write_bytes(damage(good))
    with pytest.warns(UserWarning, match="is damaged: the images are decoded again"):
        again = load(folder)
    assert torch.equal(again.images, pixels)
    assert same(load(folder), again)


def test_a_file_that_is_something_else_is_made_again(folder, tmp_path):
    from safetensors.torch import save_file

    first = load(folder)
    (file,) = kept(tmp_path)
    save_file({"images": torch.zeros(2)}, file)
    with pytest.warns(UserWarning, match="is damaged"):
        assert len(load(folder)) == len(first)


def test_killed_while_decoding_leaves_nothing_behind(folder, tmp_path, monkeypatch):
    decode, seen, half = build.decode, [], tmp_path / "half"

    def slow(*given):
        seen.append(1)
        if len(seen) == 5:
            half.touch()
            time.sleep(PATIENCE)
        return decode(*given)

    with monkeypatch.context() as patched:
        patched.setattr(build, "decode", slow)
        patched.setattr(build, "BATCH", 2)
        child = forked(lambda: load(folder))
    wait_until(half.exists, child)
    os.kill(child, signal.SIGKILL)
    assert code_of(child) == -signal.SIGKILL
    assert [file.suffix for file in (tmp_path / "cache").iterdir()] == [".lock"]  # which the system has let go of
    assert len(load(folder)) == 8


def test_a_full_disk_is_said(folder, monkeypatch):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here: a full disk cannot be had")
    full = partial(open, "/dev/full", "wb")
    monkeypatch.setattr("cascaded.data.build.tempfile.TemporaryFile", lambda dir: full())
    with pytest.raises(InputError, match=r"cannot be written .*free some space or set CASCADED_CACHE"):
        load(folder)


def test_a_cache_that_cannot_be_written_is_said(folder, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(InputError, match="cannot be written"):
        load(folder, cache=tmp_path / "file")
