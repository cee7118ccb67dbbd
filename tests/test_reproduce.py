"""Experiments from nothing to a table and figures, on tiny data; and the claims that all of them are about."""

import io
import os
import shutil
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from cascaded.cli import main as cli
from cascaded.cli.reproduce import reproduce as command
from cascaded.cli.tables import estimates_table
from cascaded.errors import InputError
from cascaded.paper import estimate, published
from cascaded.paper.estimate import seconds_left
from cascaded.paper.experiments import EXPERIMENTS, cascades
from cascaded.paper.published import claims_of, read_claims, read_estimates, write_claims
from cascaded.paper.queue import only_queue, plan, run_queue
from cascaded.paper.reproduce import Reproduction, results_of, table_of, write_results
from cascaded.paper.scales import SCALES, SMOKE, Stage
from cascaded.paper.statements import STATEMENTS
from cascaded.results.names import display_name
from cascaded.results.table import load
from cascaded.shell import program
from tests.queues import draw_little, fork
from tests.tiny_data import tiny_data

ROOT = Path(__file__).parent.parent
MAIN = cascades("cifar10", lams=(0.0, 1.0))
NOISY = cascades("cifar10", noise="occlusion")
TINY = replace(SMOKE, stages=(Stage(MAIN), Stage(NOISY)))
NAMES = ("table-lambda", "deadline", "prototypicality", "noise-persistent", "ood", "run-time")


def run(works):
    """The queue of some experiments, to its end."""
    out = works[0].out
    with only_queue(out):
        ended = run_queue(plan(works, keep="traces"), out, "cascaded reproduce")
    assert (ended.failed, ended.paused) == ({}, False)
    return [write_results(work) for work in works]


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Some experiments."""
    root = tmp_path_factory.mktemp("reproduced")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("CASCADED_DATA", str(tiny_data(root / "data")))
        patched.setenv("CASCADED_CACHE", str(root / "cache"))
        patched.setitem(SCALES, "smoke", TINY)
        fork(patched)
        draw_little(patched)
        run([Reproduction(EXPERIMENTS[name], TINY, root / "out") for name in NAMES])
        yield root / "out"


def printed(*words, **options):
    with redirect_stdout(io.StringIO()) as text:
        command(words, scale="smoke", **options)
    return text.getvalue()


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_has_its_table_and_its_figures(out, name):
    experiment = EXPERIMENTS[name]
    table = read_estimates(out / "results" / f"{name}.csv")
    assert set(table.metric) == set(experiment.metrics)
    assert set(table.method) <= {"cascaded-td", "cascaded-ce"}
    figures = {file.stem for file in (out / "results" / "figures").glob(f"{name}-*.svg")}
    wanted = {f"{name}-{each.__name__.replace('_', '-')}" for each in experiment.figures}
    assert figures == wanted | ({f"{name}-beside-paper"} if experiment.beside_paper else set())


def test_the_papers_numbers_stand_beside_ours(out):
    table = read_estimates(out / "results" / "table-lambda.csv")
    named = [display_name(method, lam) for method, lam in zip(table["method"], table["lam"], strict=True)]
    found = dict(zip(named, table["paper"], strict=True))
    assert found == {"CascadedTD(0)": 0.9122, "CascadedTD(1)": 0.8875, "CascadedCE": 0.9191}
    noise = read_estimates(out / "results" / "noise-persistent.csv")
    assert sorted(noise["paper"]) == [0.8273, 0.8626, 0.8976]
    rho = read_estimates(out / "results" / "prototypicality.csv").query("measure == 'centrality' and split == 'test'")
    assert rho["paper"].isna().all()  # the paper has it of validation images


def test_an_experiment_contains_what_it_has_recorded_only(out):
    """Whatever other experiments have recorded of the same networks."""
    assert set(load(out / "runs").time.dropna()) == {"coarse", "fine"}
    assert set(read_estimates(out / "results" / "table-lambda.csv").schedule) == {"cascaded"}
    assert "serial" in set(read_estimates(out / "results" / "deadline.csv").schedule)


def test_cross_validated_networks_replace_the_validation_split(out):
    single = EXPERIMENTS["prototypicality"].networks[0]
    experiment = replace(EXPERIMENTS["prototypicality"], networks=(single, replace(single, folds=3)))
    work = Reproduction(experiment, replace(TINY, stages=(*TINY.stages, Stage(experiment.networks[1:]))), out)
    run([work])
    rows = results_of(work)
    images = rows.groupby("split").n_items.unique().map(list).to_dict()
    assert images == {"test": [30], "validation": [120]}  # all training images
    assert {run.rpartition("/")[2] for run in rows[rows.split == "validation"].run} == {"folds-0"}


def test_finished_work_is_skipped(out):
    def stamps():
        files = [*out.glob("runs/*/*/*/traces/*"), *out.glob("runs/*/*/*/checkpoints/*/*")]
        return {file: file.stat().st_mtime_ns for file in files}

    before = stamps()
    text = printed("deadline", out=out, keep="traces")
    assert "2 of 2 networks done" in text
    assert f"next: {program()} reproduce claims --scale smoke --out {out.as_posix()}" in text
    assert len(before) > 20
    assert stamps() == before


def test_trained_networks_alone_are_measured(out, tmp_path):
    for name in ("cascaded-td-lam0", "cascaded-ce"):
        source, copy = (place / "runs" / "cifar10" / name for place in (out, tmp_path))
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("done.json", "results"))
    with pytest.raises(InputError, match=r"no network of taxonomy is part of scale smoke: choose another --scale"):
        printed("taxonomy", out=tmp_path)
    with pytest.raises(InputError, match=r"no network of noise-persistent is trained in .*: leave out --no-train"):
        printed("noise-persistent", "run-time", out=tmp_path, no_train=True)
    printed("run-time", out=tmp_path, no_train=True)
    assert set(read_estimates(tmp_path / "results" / "run-time.csv").paper) == {1.48, 1.81}


def test_the_claims_are_printed_and_written(out, tmp_path, monkeypatch):
    evaluate, found = published.evaluate, []

    def once(df):  # it takes seconds
        found.extend([] if found else [evaluate(df)])
        return found[0]

    monkeypatch.setattr(published, "evaluate", once)
    text = printed("claims", out=out)
    claims = read_claims(out / "results" / "claims.csv")
    assert list(dict.fromkeys(claims.claim)) == list(STATEMENTS)
    assert {"C1", "C3", "C5", "C6"} <= set(claims[claims.effect.notna()].claim)
    assert all(claim in text for claim in STATEMENTS)
    again = read_claims(write_claims(claims_of(out / "runs", "smoke"), tmp_path / "claims.csv"))
    pd.testing.assert_frame_equal(again, claims)
    (command_,) = claims[claims.claim == "C4"].command
    assert command_ == "cascaded reproduce taxonomy --scale smoke"  # a file that can be moved has no path
    assert f"reproduce taxonomy --scale smoke --out {out.as_posix()}\n" in text
    (tmp_path / "claims.csv").write_text("claim,effect\nC1,1\n")
    with pytest.raises(InputError, match=r"is not a table of claims .*: .* reproduce claims writes it"):
        read_claims(tmp_path / "claims.csv")


def test_stored_rows_give_the_same_table_and_figures(out, tmp_path):
    printed("deadline", source=out / "runs", out=tmp_path)
    tables = [folder / "results" / "deadline.csv" for folder in (out, tmp_path)]
    assert tables[0].read_bytes() == tables[1].read_bytes()
    figures = {file.name for file in (out / "results" / "figures").glob("deadline-*")}
    assert {file.name for file in (tmp_path / "results" / "figures").iterdir()} == figures
    assert not (tmp_path / "runs").exists()


def test_stored_rows_say_what_is_not_measured(out, tmp_path, monkeypatch):
    stored = tmp_path / "stored"
    results = Path("cifar10", "cascaded-ce", "0", "results")
    (stored / results).mkdir(parents=True)
    shutil.copy(out / "runs" / results / "speed_accuracy.parquet", stored / results)
    monkeypatch.chdir(tmp_path)
    text = printed("deadline", "noise-persistent", "claims", source=stored)
    assert "not measured: deadline, 1 of 2 networks; to measure: " in text
    assert f"noise-persistent, 2 of 2 networks; to measure: {program()} reproduce noise-persistent --scale" in text
    tables = {file.name for file in (tmp_path / "out" / "stored" / "results").glob("*.csv")}
    assert tables == {"deadline.csv", "claims.csv"}
    for more, message in (
        ({"source": tmp_path / "none"}, "none contains no results: give a folder of runs"),
        ({"source": stored, "no_train": True}, "--from prints stored results, and --no-train is about trainings"),
    ):
        with pytest.raises(InputError, match=message):
            printed("deadline", **more)


def test_runs_of_another_configuration_are_refused(out, monkeypatch):
    other = replace(TINY, recipe=replace(TINY.recipe, epochs=2))
    monkeypatch.setitem(SCALES, "smoke", other)
    with pytest.raises(InputError, match="epochs 1 -> 2"):
        printed("table-lambda", out=out)


def test_the_list_has_what_is_done_and_the_time_that_is_left(out, monkeypatch):
    monkeypatch.setattr(estimate, "seconds_per_image", lambda *_: 10.0)
    text = printed(list_names=True, out=out)
    assert all(name in text for name in EXPERIMENTS)
    assert "3 of 3" in text
    left = Reproduction(EXPERIMENTS["noise-persistent"], TINY, out / "elsewhere")
    monkeypatch.setattr(estimate, "cores", lambda: 1)
    assert seconds_left(left) == 4 * 64 * 10  # two networks with noise, and the two that they start from
    assert seconds_left(replace(left, out=out)) == 0


def test_the_time_of_a_training_step_is_measured():
    assert 0 < estimate.seconds_per_image(replace(TINY.recipe, method="cascaded-ce", data="cifar10")) < 60


def test_the_commands_are_printed_and_nothing_is_done(tmp_path, monkeypatch):
    monkeypatch.setitem(SCALES, "smoke", TINY)
    text = printed("table-lambda", out=tmp_path / "out", commands=True)
    assert f"{program()} train --data cifar10 " in text
    assert text.splitlines()[-1].endswith("cifar10 --only speed_accuracy --epochs 5")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        ((), {}, "no experiment is given: add one, as in .* reproduce table-lambda; --list shows all"),
        (("table-lamda",), {}, "there is no experiment 'table-lamda': did you mean table-lambda?"),
        (("ood",), {"num_workers": 0}, "num_workers is 0: give at least 1"),
        (("claims",), {}, "nothing is reproduced in .*: .* reproduce table-lambda --scale smoke --out .* computes"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, names, options, message):
    with pytest.raises(InputError, match=message):
        printed(*names, out=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_way_is_left_alone(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(InputError, match="which is a file: give a folder"):
        printed("ood", out=tmp_path / "out")
    assert (tmp_path / "out").read_text() == "mine"


def test_a_fresh_clone_shows_its_results(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cli.run(["reproduce", "claims"])
    text = capsys.readouterr().out
    assert all(claim in text for claim in STATEMENTS)
    assert "these results come with the repository" in text
    monkeypatch.setattr(published, "PUBLISHED", tmp_path)
    with pytest.raises(InputError, match="nothing is reproduced in"):
        command(("claims",))
    assert os.listdir(tmp_path) == []


def test_the_page_of_results_is_made_from_the_committed_tables(tmp_path, monkeypatch):
    from scripts import results as script

    claims = read_claims(ROOT / "results" / "laptop" / "claims.csv")
    page = (ROOT / "docs" / "results.md").read_text()
    captions = script.draw_figures(tmp_path)
    assert script.results_page(claims, captions) == page
    assert {file.name for file in tmp_path.iterdir()} == {file.name for file in (ROOT / "docs/results").glob("*.svg")}
    assert len(page.split()) < 2000


@pytest.mark.parametrize("name", ["alpha", "human", "deadline"])
def test_no_two_rows_of_a_printed_table_have_the_same_words(name):
    work = Reproduction(EXPERIMENTS[name], SCALES["laptop"], Path("out"), source=ROOT / "results" / "laptop-0.2")
    printed = estimates_table(table_of(results_of(work), work.experiment), name)
    *words, _, intervals, _, over = ([str(cell) for cell in column.cells] for column in printed.columns)
    rows = list(zip(*words, strict=True))
    assert len(rows) == len(set(rows)) > 4
    assert [each == "-" for each in intervals] == [each == "-" for each in over]
