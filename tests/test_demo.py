"""The demo: from nothing to a page, however often it is interrupted."""

import io
from contextlib import redirect_stdout

import pytest

from cascaded.cli.demo import demo
from cascaded.figures import files
from cascaded.paper.experiments import SHIPPED
from cascaded.results.table import load
from cascaded.shell import program
from tests import browser as in_browser
from tests.browser import DESK, PHONE, check_fits, check_keys, check_plays, check_quiet, visited
from tests.queues import draw_little, fork
from tests.shared_folder import shared_folder

browser = in_browser.browser


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A quick demo, and what it printed; with forked processes, few draws, and figures on the page alone."""
    out = tmp_path_factory.mktemp("demo") / "demo"
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("CASCADED_CACHE", str(shared_folder(tmp_path_factory) / "cache"))
        patched.setattr(files, "WRITTEN", ("csv",))
        fork(patched)
        draw_little(patched)
        with redirect_stdout(io.StringIO()) as text:
            demo(out=out, quick=True, num_workers=1)
        yield out, text.getvalue()


def test_the_demo_ends_with_a_table_a_page_and_a_next_command(made):
    out, text = made
    stages = [
        text.index(each) for each in ("1 of 3: evaluating", "cifar10-sample", "2 of 3: training", "digits ", "3 of 3: ")
    ]
    assert stages == sorted(stages)
    page = out / "report" / "index.html"
    assert f"open the page: {page.as_uri()}" in text
    assert f"{program()} train --data FOLDER --out runs/mine" in text
    for name in ("CascadedTD(0)", "CascadedTD(1)", "CascadedCE", "Shallow-Deep"):
        assert name in text
        assert name in page.read_text()
    lines = [line.split() for line in text.splitlines() if line.split()[:1] == ["digits"]]
    assert len(lines) == 1
    assert len(lines[0]) == 2 + 9


def test_the_demo_measures_what_the_page_shows(made):
    df = load(made[0] / "runs")
    assert set(df.data) == {"cifar10-sample", "digits"}
    assert {run.split("/")[-2] for run in df.run} == {*SHIPPED, "cascaded-td-lam0"}
    of_td0 = df[df.run.str.contains("cifar10-td0")]
    assert {
        *("speed_accuracy", "selection_latency", "prototypicality", "persistent_noise", "transient_noise"),
        "out_of_distribution",
    } <= set(of_td0.analysis)
    assert set(of_td0.ood_data.dropna()) == {"digits", "mean"}


def test_the_page_works_in_a_browser(made, browser):
    file = made[0] / "report" / "index.html"
    for width in (PHONE, DESK):
        with visited(browser, file, width) as visit:
            check_fits(visit)
            check_plays(visit)
            check_keys(visit)
            check_quiet(visit, file)


def test_the_demo_resumes_with_what_is_missing(made, monkeypatch):
    """Its page, which is drawn again, is compared in the tests of reports, and its claims in those of claims."""
    out, _ = made
    monkeypatch.setattr("cascaded.paper.claims.evaluate", lambda df: df.head(0))
    monkeypatch.setattr("cascaded.report.write.write_report", lambda *_: out / "report" / "index.html")
    before = {file: file.stat().st_mtime_ns for file in out.rglob("traces/*.safetensors")}
    lost = next(file for file in before if "cifar10-ce" in str(file) and "ews" not in file.name)
    lost.unlink()
    with redirect_stdout(io.StringIO()):
        demo(out=out, quick=True, num_workers=1)
    after = {file: file.stat().st_mtime_ns for file in out.rglob("traces/*.safetensors")}
    assert {file for file in before if before[file] != after[file]} == {lost}
