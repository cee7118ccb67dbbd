"""The wheel: complete, small, and enough for the demo in an environment of its own. It needs the package index."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MOST_BYTES = 30 * 2**20
pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a clone: the folder of a developer has files that are not part of the package."""
    place = tmp_path_factory.mktemp("wheel")
    subprocess.run(["git", "clone", "--quiet", ROOT, place / "clone"], check=True, timeout=60)
    words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", place, place / "clone"]
    subprocess.run(words, check=True, timeout=300)
    (file,) = place.glob("*.whl")
    return file


def test_it_has_every_file_of_the_package_and_is_small(wheel):
    words = ["git", "ls-files", "cascaded"]
    tracked = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("cascaded/")}
    assert packed == set(tracked)
    assert wheel.stat().st_size < MOST_BYTES


def test_the_demo_works_in_an_environment_of_its_own(wheel, tmp_path):
    home = {"HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CASCADED", "VIRTUAL"))}

    def run(*words, timeout):
        done = subprocess.run(words, cwd=tmp_path, env=kept | home, capture_output=True, text=True, timeout=timeout)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(sys.executable, "-m", "venv", "env", timeout=120)
    constraints = ROOT / "constraints.txt"
    run("env/bin/python", "-m", "pip", "install", "--quiet", "--constraint", constraints, wheel, timeout=1200)
    printed = run("env/bin/cascaded", "demo", "--quick", timeout=300)
    page = tmp_path / "out" / "demo" / "report" / "index.html"
    assert f"open the page: {page.as_uri()}" in printed
    assert "CascadedTD(0)" in page.read_text()
