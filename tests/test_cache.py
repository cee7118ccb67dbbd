"""Decoded images are cached atomically and decoded again if the cache is damaged or the source changes."""

import os
import pwd
import signal
import time
from pathlib import Path

import pytest
import safetensors.torch
import torch

from cascaded.data import build, load
from tests.forked import PATIENCE, code_of, forked, limit_files, wait_until
from tests.pictures import encoded, image_folder, own_places, picture  # noqa: F401
from tests.refused import refused

PIXELS = 2 * 4 * 3 * 64**2  # bytes of all images below
FIX = "free some space or set CASCADED_CACHE to another folder"


@pytest.fixture
def folder(tmp_path):
    return image_folder(tmp_path / "insects", ["train/ant", "train/bee"], each=4, size=(64, 64))


def cached_files(tmp_path):
    return sorted((tmp_path / "cache").glob("*.safetensors"))


def same(one, other):
    assert (one.name, one.split, one.classes) == (other.name, other.split, other.classes)
    return all(torch.equal(getattr(one, name), getattr(other, name)) for name in ("images", "labels", "indices"))


def test_images_are_decoded_once(folder, tmp_path, monkeypatch):
    first = load(folder)
    with monkeypatch.context() as patched:
        patched.setattr("cascaded.data.build.decode", None)  # would fail
        assert same(load(folder), first)
    assert [file.name.startswith("insects-train-") for file in cached_files(tmp_path)] == [True]

    for options in ({"image_size": 4}, {"classes": ["bee"]}, {"classes": ["bee", "ant"]}, {}):
        load(folder, **options)
    assert len(cached_files(tmp_path)) == 4  # one for each request


def test_a_changed_source_is_decoded_again(folder):
    first = load(folder)
    (folder / "train" / "ant" / "0.png").write_bytes(encoded(picture(999, size=(64, 64))))
    second = load(folder)
    assert not torch.equal(first.images[0], second.images[0])
    assert torch.equal(first.images[1:], second.images[1:])
    (folder / "train" / "bee" / "0.png").unlink()
    assert len(load(folder)) == 7


@pytest.mark.parametrize(
    "damage",
    [
        lambda good: good[:-1],
        lambda good: good[:100],
        lambda good: b"",
        lambda good: b"x" * 50,
        lambda good: safetensors.torch.save({"images": torch.zeros(2)}),  # something else
    ],
)
def test_a_damaged_file_is_noticed_and_made_again(damage, folder, tmp_path):
    first = load(folder)
    pixels = first.images.clone()
    (file,) = cached_files(tmp_path)
    good = file.read_bytes()
    file.unlink()  # what is mapped stays as it is
    file.write_bytes(damage(good))
    with pytest.warns(UserWarning, match="is damaged: the images are decoded again"):
        again = load(folder)
    assert torch.equal(again.images, pixels)
    assert same(load(folder), again)


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


@pytest.mark.parametrize("room", [PIXELS // 2, PIXELS + 10], ids=["while decoding", "while storing"])
def test_a_full_disk_is_one_sentence_and_leaves_nothing_half_written(room, folder, tmp_path):
    def limited():
        limit_files(room)
        refused(rf"^{tmp_path}/cache cannot be written \(.*\): {FIX}$", load, folder)

    assert code_of(forked(limited)) == 0
    assert [file.suffix for file in (tmp_path / "cache").iterdir()] == [".lock"]
    assert len(load(folder)) == 8  # with room, the same request succeeds


@pytest.mark.parametrize("place", ["file/cache", "/proc/cascaded"])  # below a file, and where no folder can be made
def test_a_cache_that_cannot_be_a_folder_is_one_sentence(place, folder, tmp_path, monkeypatch):
    if not Path("/proc/self").is_dir():
        pytest.skip("there is no /proc, a folder that takes no files")
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("CASCADED_CACHE", str(tmp_path / place))
    refused(rf"^{tmp_path / place} cannot be written \(.*\): {FIX}$", load, folder)


@pytest.mark.skipif(os.geteuid() == 0, reason="the root user may write to read-only folders: run as another user")
def test_a_read_only_cache_is_one_sentence_and_what_it_holds_is_used(folder, tmp_path):
    there = load(folder)
    (tmp_path / "cache").chmod(0o500)
    try:
        assert len(load(folder)) == len(there)
        refused(rf"cache cannot be written \(Permission denied\): {FIX}$", load, folder, image_size=8)
    finally:
        (tmp_path / "cache").chmod(0o700)


def test_without_a_home_the_cache_has_to_be_named(folder, tmp_path, monkeypatch):
    def unknown(_):
        raise KeyError

    monkeypatch.delenv("CASCADED_CACHE")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    refused("no home folder for decoded images: set CASCADED_CACHE to a folder", load, folder)
    assert len(load(folder, cache=tmp_path / "cache")) == 8
