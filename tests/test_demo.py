"""The demo: from nothing to a page, however often it is stopped on the way."""

import io
import json
import os
import signal
import subprocess
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest

from cascaded.cli.demo import accuracy_table, demo
from cascaded.demo.plan import FULL, QUICK, keep
from cascaded.errors import InputError
from cascaded.paper.stages import record_all
from cascaded.report.look import STYLE
from cascaded.results.answers import read_results
from cascaded.shell import program
from cascaded.training.config import ExecutionConfig
from cascaded.training.loop import train
from tests import browser as in_browser
from tests.browser import DESK, PHONE, check_fits, check_keys, check_plays, check_quiet, visited
from tests.forked import wait_until
from tests.shared_folder import shared_folder

browser = in_browser.browser
NAMES = ["cascaded-td-lam0", "cascaded-td-lam1", "serial-td-multihead", "cascaded-ce"]


def test_four_models_are_trained_with_every_seed_and_the_slowest_come_first():
    jobs = FULL.jobs((0, 1), Path("runs"))
    assert sorted(job.folder for job in jobs) == sorted(Path("runs") / name / seed for name in NAMES for seed in "01")
    assert [job.model for job in jobs][:4] == ["cascaded-td"] * 4


def test_networks_that_delay_nothing_are_shown_nothing_in_fine_time():
    by_name = {job.name: FULL.shown(job) for job in FULL.jobs((0,), Path("runs"))}
    kernels = {name: {each.showing.kernel for each in shown} for name, shown in by_name.items()}
    assert kernels.pop("serial-td-multihead") == {"osd"}
    assert list(kernels.values()) == [{"osd", "ews:0.9"}] * 3
    assert all(each.showing.check() is None for shown in by_name.values() for each in shown)


def test_a_folder_holds_one_demo_and_says_which(tmp_path):
    keep(FULL, tmp_path)
    keep(replace(FULL, epochs=9), tmp_path)  # nothing was trained yet
    assert json.loads((tmp_path / "demo.json").read_text())["epochs"] == 9
    run = tmp_path / "runs" / "cascaded-ce" / "0"
    run.mkdir(parents=True)
    (run / "config.json").touch()
    keep(replace(FULL, epochs=9), tmp_path)
    told = r"holds another demo \(epochs 9 -> 4, limit None -> 64\): ask for that one, or choose another --out"
    with pytest.raises(InputError, match=told):
        keep(replace(FULL, limit=64), tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "epochs is 0: give at least 1"),
        ({"limit": 0}, "--limit is 0: give at least 1"),
        ({"jobs": 0}, "--jobs is 0: give at least 1"),
        ({"seeds": ()}, "--seeds is empty: give at least one"),
        ({"seeds": (1, 1)}, "--seeds names the same one twice"),
        ({"seeds": (-1,)}, "--seeds has -1: give numbers of 0 or more"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_written(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        demo(out=tmp_path / "demo", **options)
    assert not (tmp_path / "demo").exists()


WORKING = """
import pathlib, sys, time
from cascaded.errors import InputError
from cascaded.training.method import parse_lam
from cascaded.training.workers import workers

if __name__ == "__main__":
    refused, awake = map(pathlib.Path, sys.argv[1:])
    with workers(1, 2) as pool:
        try:
            pool.do("refusing", parse_lam, [("half",)])
        except InputError as error:
            refused.write_text(str(error))
        pool.do("waking", pathlib.Path.touch, [(awake,)])
        pool.do("sleeping", time.sleep, [(3600,)])
"""


def ended(group):
    """Whether no process of a group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def test_what_a_worker_refuses_is_said_by_the_one_who_started_it_and_both_end_together(tmp_path):
    program, refused, awake = (tmp_path / name for name in ("working.py", "refused", "awake"))
    program.write_text(WORKING)
    with subprocess.Popen([sys.executable, str(program), str(refused), str(awake)], start_new_session=True) as going:
        wait_until(awake.exists, going.pid)
        assert refused.read_text().startswith("--lam is 'half': give a number")
        going.send_signal(signal.SIGKILL)
    wait_until(lambda: ended(going.pid))
    assert going.returncode == -signal.SIGKILL


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory):
    """A demo in short, and what it said; without what takes longest and is tested elsewhere.

    Its networks are trained here, its workers have torch already and a thread each, and fonts go into PDF files as they
    are.
    """
    out, said = tmp_path_factory.mktemp("rehearsed") / "demo", io.StringIO()
    with pytest.MonkeyPatch.context() as patched, redirect_stdout(said):
        patched.setenv("CASCADED_CACHE", str(shared_folder(tmp_path_factory) / "cache"))
        patched.setattr("cascaded.training.workers.get_context", lambda _: get_context("fork"))
        patched.setattr("cascaded.training.workers.cores", lambda: 1)
        patched.setitem(STYLE, "pdf.fonttype", 3)
        patched.setattr("cascaded.report.files.DPI", 40)
        for job in QUICK.jobs((0,), out / "runs"):
            train(job.config, job.folder, ExecutionConfig("cpu"))
        keep(QUICK, out)
        demo(out=out, seeds=(0,), quick=True, jobs=2)
    return out, said.getvalue()


def test_the_page_of_a_demo_works_in_a_browser(rehearsed, browser):
    file = rehearsed[0] / "report" / "index.html"
    for width in (PHONE, DESK):
        with visited(browser, file, width) as visit:
            check_fits(visit)
            check_plays(visit)
            check_keys(visit)
            check_quiet(visit, file)


def test_a_quick_demo_ends_with_a_page_and_goes_on_with_what_is_missing(rehearsed):
    out, told = rehearsed
    assert all(f"{stage} of 4: " in told for stage in range(1, 5))
    page = out / "report" / "index.html"
    assert f"the page is {page.as_uri()}" in told
    assert f"\n      {program()} train --data FOLDER --out runs/mine\n" in told
    assert "CascadedTD(0)" in page.read_text()
    assert (out / "runs" / "comparison.json").exists()
    runs = [job.folder for job in QUICK.jobs((0,), out / "runs")]
    assert list(accuracy_table(runs).columns[0].cells) == ["CascadedTD(0)", "Shallow-Deep"]
    for run in runs:
        answered = read_results(run / "results.json")
        assert {"speed_accuracy", "learned_stopper", "persistent_noise"} <= set(answered["analyses"])
    with pytest.raises(InputError, match=r"holds another demo \(epochs 1 -> 2\)"):
        demo(out=out, seeds=(0,), quick=True, epochs=2)

    before = {file: file.stat().st_mtime_ns for file in out.rglob("traces/*.safetensors")}
    lost = next(iter(before))
    lost.unlink()
    for job in QUICK.jobs((0,), out / "runs"):
        record_all(job.folder, QUICK.shown(job))
    after = {file: file.stat().st_mtime_ns for file in out.rglob("traces/*.safetensors")}
    assert {file for file in before if before[file] != after[file]} == {lost}
