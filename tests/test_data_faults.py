"""A cache on a full disk, in a read-only folder or without a home: one sentence, and nothing half-written."""

import os
import pwd
import resource
from pathlib import Path

import pytest

from cascaded.data import load
from cascaded.errors import InputError
from tests.forked import code_of, forked
from tests.pictures import image_folder, own_places  # noqa: F401

SIDE, EACH = 64, 4
PIXELS = 2 * EACH * 3 * SIDE**2  # bytes of all images below
WAY_OUT = "free some space or set CASCADED_CACHE to another folder"


@pytest.fixture
def folder(tmp_path):
    return image_folder(tmp_path / "insects", ["train/ant", "train/bee"], each=EACH, size=(SIDE, SIDE))


def error_of(work, tmp_path):
    """The message of the `InputError` that some work in a process of its own ends in."""
    message = tmp_path / "message"

    def noted():
        try:
            work()
        except InputError as error:
            message.write_text(str(error))

    assert code_of(forked(noted)) == 0
    return message.read_text() if message.exists() else None


@pytest.mark.parametrize("room", [PIXELS // 2, PIXELS + 10], ids=["while decoding", "while storing"])
def test_a_full_disk_is_one_sentence_and_leaves_nothing_half_written(room, folder, tmp_path):
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))  # writing beyond fails, as on a full disk
        load(folder)

    told = error_of(limited, tmp_path)
    assert told is not None
    assert told.startswith(f"{tmp_path / 'cache'} cannot be written (")
    assert told.endswith(f"): {WAY_OUT}")
    assert "\n" not in told
    assert [file.suffix for file in (tmp_path / "cache").iterdir()] == [".lock"]
    assert len(load(folder)) == 2 * EACH  # with room, the same request succeeds


def test_a_cache_below_a_file_is_one_sentence(folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("CASCADED_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(InputError, match=rf"^{tmp_path}/file/cache cannot be written \(Not a directory\): {WAY_OUT}$"):
        load(folder)


@pytest.mark.skipif(os.geteuid() == 0, reason="the root user may write to read-only folders: run as another user")
def test_a_read_only_cache_is_one_sentence_and_what_it_holds_is_used(folder, tmp_path):
    there = load(folder)
    (tmp_path / "cache").chmod(0o500)
    try:
        assert len(load(folder)) == len(there)
        with pytest.raises(InputError, match=rf"cache cannot be written \(Permission denied\): {WAY_OUT}$"):
            load(folder, image_size=8)
    finally:
        (tmp_path / "cache").chmod(0o700)


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="there is no /proc, a folder that takes no files")
def test_a_cache_where_the_system_takes_no_files_is_one_sentence(folder, monkeypatch):
    monkeypatch.setenv("CASCADED_CACHE", "/proc/cascaded")
    with pytest.raises(InputError, match=rf"^/proc/cascaded cannot be written \(.*\): {WAY_OUT}$"):
        load(folder)


def test_without_a_home_the_cache_has_to_be_named(folder, tmp_path, monkeypatch):
    def unknown(_):
        raise KeyError

    monkeypatch.delenv("CASCADED_CACHE")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with pytest.raises(InputError, match="no home folder for decoded images: set CASCADED_CACHE to a folder"):
        load(folder)
    assert len(load(folder, cache=tmp_path / "cache")) == 2 * EACH
