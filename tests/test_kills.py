"""Analysis and report, killed at drawn moments: nothing is half-written, and a second run gives the same result.

A child process kills itself at a drawn call of the functions through which files are written: halfway through a write,
before it is on the disk, or before it has its name. A drawn call is the same moment on every machine, unlike a drawn
time.
"""

import os
import random
import shutil
import signal
from pathlib import Path

import pytest

from cascaded.cli.main import run
from cascaded.figures.style import STYLE
from tests.forked import code_of, forked
from tests.made_traces import made_run, made_trace

FEW_AND_MANY = pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.long)])
"""More drawn moments with `make fuzz`."""
pytestmark = pytest.mark.usefixtures("every_kind")


def on_every_write(do):
    """The functions that write files, each preceded by `do(calls, half)`: the calls so far, and half of the write."""
    calls = 0

    def watched(place, name):
        call = getattr(place, name)

        def watching(*arguments, **options):
            nonlocal calls
            calls += 1
            do(calls, lambda: place is Path and call(arguments[0], arguments[1][: len(arguments[1]) // 2]))
            return call(*arguments, **options)

        return place, name, watching

    return [watched(*each) for each in ((os, "fsync"), (os, "replace"), (Path, "write_text"), (Path, "write_bytes"))]


def writes_of(words):
    """How many such calls a command makes."""
    seen = []
    with pytest.MonkeyPatch.context() as patched:
        for each in on_every_write(lambda calls, half: seen.append(calls)):
            patched.setattr(*each)
        run(words)
    return len(seen)


def run_killed(words, at):
    """Run a command in a child process that is killed in its `at`-th call, a write of text or bytes halfway through."""

    def kill(calls, half):
        if calls == at:
            half()
            os.kill(os.getpid(), signal.SIGKILL)

    def killed():
        for each in on_every_write(kill):
            setattr(*each)
        run(words)

    assert code_of(forked(killed)) == -signal.SIGKILL


def contents(place):
    """Every file below a folder that is not hidden."""
    files = {file.relative_to(place): file.read_bytes() for file in place.rglob("*") if file.is_file()}
    return {name: content for name, content in files.items() if not name.name.startswith(".")}


@pytest.fixture(autouse=True)
def _drawn_fast(monkeypatch):
    """Coarse PNG files, and whole fonts in PDF files: cutting them takes longer than drawing."""
    monkeypatch.setitem(STYLE, "pdf.fonttype", 3)
    monkeypatch.setattr("cascaded.figures.files.DPI", 40)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs with traces of two splits; nothing is analyzed."""
    place = tmp_path_factory.mktemp("kills") / "runs"
    for lam in (0.0, 1.0):
        traces = {f"t-{split}": made_trace(3, split=split, good=3 - lam) for split in ("test", "validation")}
        made_run(place / f"{lam:g}" / "0", traces, lam=lam)
    return place


@FEW_AND_MANY
def test_an_analysis_killed_at_drawn_moments_leaves_whole_files_and_ends_the_same(runs, tmp_path, kills):
    place = tmp_path / "runs"
    words = ["analyze", str(place), "--only", "learned_stopper", "speed_accuracy", "--epochs", "1", "--no-galleries"]
    shutil.copytree(runs, place)
    writes = writes_of(words)
    whole = contents(place)
    assert {name.name for name in whole} >= {"learned_stopper.parquet", "speed_accuracy.parquet"}
    assert [name for name in whole if name.parent.name == "stoppers"]
    for at in random.Random(0).sample(range(1, writes + 1), kills):
        shutil.rmtree(place)
        shutil.copytree(runs, place)
        run_killed(words, at)
        assert contents(place).items() <= whole.items(), at
        run(words)
        assert contents(place) == whole, at
        assert not list(place.rglob("*.part")), at


@FEW_AND_MANY
def test_a_report_killed_at_drawn_moments_leaves_the_old_page_or_the_new_one_and_ends_the_same(runs, tmp_path, kills):
    place, out = shutil.copytree(runs / "0", tmp_path / "runs"), tmp_path / "report"
    run(["analyze", str(place), "--only", "selection_latency", "--no-galleries"])
    words = ["report", str(place), "--out", str(out), "--title"]
    run([*words, "An older page"])
    older = shutil.copytree(out, tmp_path / "older")
    before = contents(out)
    writes = writes_of([*words, "A newer page"])
    whole = contents(out)
    page = next(name for name in whole if name.name == "index.html")
    assert before.pop(page) != whole[page]
    assert {name.suffix for name in before} == {".svg", ".pdf", ".png", ".csv"}
    # the last write is the list of figures: without it, the next report still removes nothing that it should not
    for at in (*random.Random(1).sample(range(1, writes), kills), writes):
        shutil.rmtree(out)
        shutil.copytree(older, out)
        run_killed([*words, "A newer page"], at)
        now = contents(out)
        assert now.pop(page) in (whole[page], (older / page).read_bytes()), at
        assert now == before, at  # the figures are the same in both
        run([*words, "A newer page"])
        assert contents(out) == whole, at
        assert not list(out.rglob("*.part")), at
