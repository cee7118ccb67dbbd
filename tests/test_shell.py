"""Commands that we print work when they are pasted into the shell that started us."""

import os
import shlex
import subprocess
import sys

import pytest

from cascaded import __version__
from cascaded.shell import program, typed


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """An environment in `.venv` of the current folder that is not activated."""
    scripts = tmp_path / "a folder" / ".venv" / "bin"
    scripts.mkdir(parents=True)
    (scripts / "python").symlink_to(sys.executable)
    (scripts / "cascaded").write_text(f"#!{sys.executable}\nfrom cascaded.cli.main import main\nmain()\n")
    (scripts / "cascaded").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(scripts / "python"))
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.chdir(tmp_path / "a folder")
    return scripts


def version_of(words):
    ran = subprocess.run(f"{words} --version", shell=True, capture_output=True, text=True, timeout=120, check=True)
    return ran.stdout.split()


def test_an_environment_that_is_not_activated_is_named_by_its_path(installed, tmp_path_factory, monkeypatch):
    assert program() == ".venv/bin/cascaded"
    assert version_of(program()) == ["cascaded", __version__]
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert shlex.split(program()) == [str(installed / "cascaded")]
    assert version_of(program()) == ["cascaded", __version__]


def test_an_activated_environment_needs_the_name_alone(installed, monkeypatch):
    monkeypatch.setenv("PATH", f"{installed}{os.pathsep}{os.defpath}")
    assert program() == "cascaded"


def test_another_cascaded_on_the_path_is_not_taken_for_this_one(installed, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    (other / "cascaded").write_text("#!/bin/sh\necho another\n")
    (other / "cascaded").chmod(0o755)
    monkeypatch.setenv("PATH", f"{other}{os.pathsep}{os.defpath}")
    assert program() == ".venv/bin/cascaded"


def test_without_a_script_the_interpreter_is_named(installed, monkeypatch):
    (installed / "cascaded").unlink()
    assert program() == f"{shlex.quote(str(installed / 'python'))} -m cascaded"


def test_a_stored_command_is_printed_as_it_is_typed_here():
    text = "cascaded record 'my runs/cascaded' --noise focus; then cascaded analyse runs"
    mine = program()
    assert typed(text) == f"{mine} record 'my runs/cascaded' --noise focus; then {mine} analyse runs"
    assert typed("x/cascaded record y, a cascaded network") == "x/cascaded record y, a cascaded network"


def test_in_its_own_folder_the_script_is_named_so_that_the_shell_finds_it(installed, monkeypatch):
    monkeypatch.chdir(installed)
    assert program() == "./cascaded"
    assert version_of(program()) == ["cascaded", __version__]


def test_a_deleted_folder_and_an_unknown_interpreter_still_give_a_command(installed, tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert shlex.split(program()) == [str(installed / "cascaded")]
    monkeypatch.setattr(sys, "executable", "")
    assert program() == "python -m cascaded"
