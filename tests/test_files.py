"""Files are complete or do not exist."""

import errno
import os
import platform
import subprocess
import sys

import pytest

from cascaded.errors import InputError
from cascaded.files import check_writable, read_json, write_folder, write_json, write_whole
from tests.refused import refused


@pytest.mark.parametrize("fault", [OSError(errno.ENOSPC, "No space left on device"), RuntimeError("a bug")])
def test_what_was_there_survives_a_failure(tmp_path, fault):
    file = tmp_path / "run.json"
    write_json(file, "old")

    def half(part):
        part.write_text('"ne')
        raise fault

    with pytest.raises(InputError if isinstance(fault, OSError) else RuntimeError):
        write_whole(file, half)
    assert read_json(file) == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_place_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    refused(r"cannot be written .*: make room, or choose another folder", write_json, tmp_path / "file" / "below", {})


@pytest.mark.parametrize(
    ("number", "fix"),
    [(errno.EACCES, "make it writable"), (errno.EROFS, "make it writable"), (errno.ENOSPC, "make room")],
)
def test_the_fix_is_that_of_the_systems_error(number, fix, tmp_path):
    def fail(part):
        raise OSError(number, os.strerror(number))

    message = rf"cannot be written \({os.strerror(number)}\): {fix}, or choose another folder$"
    for write in (write_whole, write_folder):
        refused(message, write, tmp_path / "new", fail)


def test_what_a_killed_process_left_is_cleared_up(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(timeout=300)
    left = tmp_path / f".run.json.{platform.node()}.{gone.pid}.part"
    others = [tmp_path / f".run.json.{platform.node()}.{os.getppid()}.part", tmp_path / ".run.json.elsewhere.1.part"]
    for part in (left, *others):
        part.write_text("half")
    write_json(tmp_path / "run.json", {})
    assert not left.exists()
    assert all(part.exists() for part in others)


def test_reading_says_what_is_wrong(tmp_path):
    refused("cannot be read", read_json, tmp_path / "missing.json")
    (tmp_path / "bad.json").write_text("{")
    refused("is not JSON", read_json, tmp_path / "bad.json")


def test_files_can_be_read_by_whom_the_user_lets(tmp_path):
    def private(part):
        part.write_text("")
        part.chmod(0o600)

    (tmp_path / "usual").write_text("")
    write_whole(tmp_path / "ours", private)
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_writable_folder_is_left_as_it_was(tmp_path):
    check_writable(tmp_path / "new" / "runs")
    assert list((tmp_path / "new" / "runs").iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file/runs cannot be written \(.*\): make room, or choose another folder"):
        check_writable(tmp_path / "file" / "runs")
