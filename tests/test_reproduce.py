"""Every item from nothing to its table and figures, on tiny data; and the claims that all of them speak to."""

import csv
import io
import json
import shlex
import shutil
from contextlib import nullcontext, redirect_stdout
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cascaded.cli import main as cli
from cascaded.cli.reproduce import reproduce
from cascaded.data.catalogue import SOURCES
from cascaded.errors import InputError
from cascaded.exhibits.claimed import CLAIMS
from cascaded.paper import ledger as ledger_module
from cascaded.paper.commands import commands_for
from cascaded.paper.estimate import seconds_left
from cascaded.paper.experiments import ITEMS
from cascaded.paper.ledger import ledger, read_ledger, told_effect
from cascaded.paper.listing import listing
from cascaded.paper.outcome import read_outcome, write_outcome
from cascaded.paper.page import results_page
from cascaded.paper.reproduce import Work
from cascaded.paper.scales import SCALES, Scale
from cascaded.paper.showings import shown_to
from cascaded.paper.stages import analyse_all, record_all
from cascaded.paper.tried import Trial, changes, keep_trial, read_trials
from cascaded.shell import program
from cascaded.training.config import ExecutionConfig
from cascaded.training.loop import train
from cascaded.training.runs import resolve_init
from tests.tiny_data import SIDE, tiny_data

SMALL = {"data_limit": 64, "epochs": 1, "width": 4, "seeds": (0,)}
NOISES = (None, "focus", "occlusion")
ROOT = Path(__file__).parent.parent
PROGRAM = ".*cascaded"  # as it is typed where the tests run


def small() -> Scale:
    return SCALES["laptop"].smaller(**SMALL)


class InProcess:
    """Takes the place of the worker processes, each of which would import torch anew."""

    def do(self, what, work, tasks):
        for task in tasks:
            work(*task)


def make_cheap(patched: pytest.MonkeyPatch) -> None:
    """Small images in place of large ones, two of six noises, few bootstrap draws, coarse pictures, no processes."""
    has = Scale.has
    patched.setattr(Scale, "has", lambda scale, network: has(scale, network) and network.noise in NOISES)
    patched.setitem(SOURCES, "terriers", replace(SOURCES["terriers"], size=SIDE))
    for module in ("questions", "registry", "learned", "comparison", "summary"):
        patched.setattr(f"cascaded.results.{module}.DRAWS", 10)
    patched.setattr("cascaded.report.files.DPI", 40)
    patched.setattr("cascaded.training.workers.workers", lambda *_: nullcontext(InProcess()))


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    """Everything reproduced once, stage by stage in this process: one for each network would take minutes."""
    root = tmp_path_factory.mktemp("reproduced")
    with pytest.MonkeyPatch.context() as patched, torch.enable_grad():
        make_cheap(patched)
        patched.setenv("CASCADED_DATA", str(tiny_data(root / "data")))
        patched.setenv("CASCADED_CACHE", str(root / "cache"))
        for item in ITEMS.values():
            work = Work(item, small(), root / "out")
            for job in [*work.first(), *work.asked()]:
                if (job.folder / "config.json").exists():  # trained for another item
                    continue
                config, start = resolve_init(job.config)
                train(config, job.folder, ExecutionConfig("cpu"), init_from=start, resume=True)
            for network in work.networks:
                for job in work.jobs(network):
                    record_all(job.folder, shown_to(network, item, work.scale))
                    analyse_all(job.folder, work.scale.learned, item.analyses or ["speed_accuracy"])
        told = io.StringIO()
        with redirect_stdout(told):
            reproduce(("all",), out=root / "out", jobs=1, **SMALL)
        (root / "out" / "told.txt").write_text(told.getvalue())
        yield root / "out"


@pytest.mark.parametrize("name", ITEMS)
def test_an_item_has_its_table_its_figures_and_the_runs_they_came_from(reproduced, name):
    outcome, item = read_outcome(reproduced / "results" / f"{name}.json"), ITEMS[name]
    assert {row.what for row in outcome.rows} >= {measure.told for measure in item.measures if measure.unit == "%"}
    assert {row.data for row in outcome.rows} == {each.data for each in Work(item, small(), reproduced).networks}
    for row in outcome.rows:
        assert row.runs or row.what == "a training step, times CascadedCE's"  # of networks made for it
        assert all((reproduced / "runs" / run / "config.json").exists() for run in row.runs)
    with (reproduced / "results" / f"{name}.csv").open() as file:
        assert [float(each["value"]) for each in csv.DictReader(file)] == [row.value for row in outcome.rows]
    for key, _, _ in outcome.figures:
        files = (reproduced / "results" / "figures").glob(f"{key}.*")
        assert {file.suffix for file in files} == {".svg", ".png", ".csv"}
    assert bool(outcome.figures) == bool(item.figures or item.drawn)
    assert outcome.title in (reproduced / "told.txt").read_text()


def test_no_two_items_write_the_same_figure(reproduced):
    keys = [key for name in ITEMS for key, _, _ in read_outcome(reproduced / "results" / f"{name}.json").figures]
    assert len(set(keys)) == len(keys)


def test_an_items_figures_are_of_what_it_has_shown(reproduced):
    """Whatever other items have shown the same networks before."""
    for name in ITEMS:
        keys = [key for key, _, _ in read_outcome(reproduced / "results" / f"{name}.json").figures]
        shows = set(ITEMS[name].shows)
        assert "fine" in shows or not [key for key in keys if "-ews-" in key], name
        assert shows & {"serial", "persistent", "transient"} or not [key for key in keys if "ce-serial" in key], name


def test_what_is_done_is_not_done_again(reproduced):
    def stamps():
        files = [*reproduced.glob("runs/*/*/*/traces/*"), *reproduced.glob("runs/*/*/*/checkpoints/*/*")]
        return {file: file.stat().st_mtime_ns for file in files}

    before = stamps()
    with redirect_stdout(io.StringIO()):
        reproduce(("deadline",), out=reproduced, jobs=1, **SMALL)
    assert len(before) > 100
    assert stamps() == before


def test_figures_that_an_item_no_longer_has_are_gone(reproduced, tmp_path):
    shutil.copytree(reproduced / "results", tmp_path / "results")
    file = tmp_path / "results" / "stopping.json"
    told, figures = json.loads(file.read_text()), tmp_path / "results" / "figures"
    others = {each.name for each in figures.iterdir() if not each.name.startswith("stopping-")}
    (figures / "stopping-old.svg").write_text("<svg/>")
    file.write_text(json.dumps({**told, "figures": [{"key": "stopping-old", "title": "", "caption": ""}]}))
    write_outcome(ITEMS["stopping"], small(), (), (), (), (), tmp_path / "results")
    assert not (figures / "stopping-old.svg").exists()
    assert {each.name for each in figures.iterdir()} >= others


def test_an_item_that_cannot_be_reproduced_does_not_stop_the_others(reproduced, tmp_path):
    for name in ("cascaded-td-lam0", "cascaded-ce"):
        shutil.copytree(reproduced / "runs" / "cifar10" / name, tmp_path / "runs" / "cifar10" / name)
    message = "1 of 2 items were left out: terriers, no network of terriers is trained in .*: leave --as-is out"
    with redirect_stdout(io.StringIO()), pytest.raises(InputError, match=message):
        reproduce(("terriers", "run-time"), out=tmp_path, as_is=True, jobs=1, **SMALL)
    assert [row.what for row in read_outcome(tmp_path / "results" / "run-time.json").rows][:1] == ["training time"]
    assert not (tmp_path / "results" / "terriers.json").exists()


def test_the_ledger_has_every_claim_and_names_the_runs(reproduced):
    scale, lines = read_ledger(reproduced / "results" / "claims.json")
    assert scale == "laptop"
    assert list(dict.fromkeys(line.claim for line in lines)) == list(CLAIMS)
    assert repr(lines) == repr(ledger(reproduced, "laptop"))  # of ten images a rho may be no number
    measured = [line for line in lines if line.effect is not None]
    assert {line.claim for line in measured} == set(CLAIMS)
    assert all(line.runs and (reproduced / "runs" / line.runs[0]).is_dir() for line in measured)


def test_a_run_that_has_just_begun_takes_nothing_from_the_ledger(reproduced, tmp_path):
    shutil.copytree(reproduced / "runs" / "cifar10", tmp_path / "runs" / "cifar10")
    before = ledger(tmp_path, "laptop")
    written = json.loads((reproduced / "runs" / "cifar10" / "cascaded-td-lam0" / "0" / "config.json").read_text())
    begun = tmp_path / "runs" / "cifar10" / "cascaded-td-lam0" / "1"
    begun.mkdir()
    (begun / "config.json").write_text(json.dumps({**written, "config": {**written["config"], "seed": 1}}))
    assert any(line.effect is not None for line in before)
    assert repr(ledger(tmp_path, "laptop")) == repr(before)


def test_runs_of_another_recipe_are_not_taken_for_this_scales(reproduced):
    other = {**SMALL, "epochs": 2}
    with redirect_stdout(io.StringIO()), pytest.raises(InputError, match=r"is another run \(epochs 1 -> 2\)"):
        reproduce(("noise-persistent",), out=reproduced, as_is=True, jobs=1, **other)
    table = listing(SCALES["laptop"].smaller(**other), reproduced)
    assert next(iter(table.columns[4].cells)) == "0 of 9 trained, 9 other runs in their place"


def test_what_networks_begin_with_counts_among_what_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr("cascaded.paper.estimate.seconds_an_image", lambda *_: 1.0)
    monkeypatch.setattr("cascaded.paper.estimate.cores", lambda: 1)
    work = Work(ITEMS["noise-persistent"], small(), tmp_path)
    assert len(work.first()) == 2
    assert seconds_left(work) == (len(work.asked()) + 2) * SMALL["data_limit"]


def test_the_commands_make_the_same_runs(reproduced):
    for name in ("table-lambda", "noise-persistent", "terriers"):
        lines = commands_for(Work(ITEMS[name], small(), reproduced))
        trainings = [line for line in lines if line.startswith("cascaded train ")]
        work = Work(ITEMS[name], small(), reproduced)
        assert len(trainings) == len(work.first()) + len(work.asked())
        for line in trainings[:: len(trainings) - 1]:  # another configuration would be refused
            told = io.StringIO()
            with redirect_stdout(told):
                cli.run(shlex.split(line)[1:])
            assert "wrote" in told.getvalue()
        assert all(line.split()[1] in cli.COMMANDS for line in lines)


def test_the_list_says_what_is_there_and_how_long_the_rest_would_take(reproduced, tmp_path, monkeypatch):
    done, lacking = (Work(ITEMS["run-time"], small(), out) for out in (reproduced, tmp_path))
    assert seconds_left(done) == 0
    assert seconds_left(lacking) > 0
    table = listing(small(), reproduced)
    names, trained, left = (list(table.columns[place].cells) for place in (0, 4, 6))
    assert names == [*ITEMS, "claims"]
    assert trained[0] == "9 of 9 trained"
    assert set(left) == {"none", ""}
    assert list(table.columns[3].cells)[names.index("terriers")] == "terriers"
    monkeypatch.delenv("CASCADED_DATA")
    assert list(listing(small(), reproduced).columns[3].cells)[names.index("terriers")] == "terriers (from the hub)"


def test_the_page_is_made_from_what_is_kept(reproduced, tmp_path):
    page = results_page(reproduced / "results", "figures")
    for name in ITEMS:
        assert f"`cascaded reproduce {name}`" in page
    _, lines = read_ledger(reproduced / "results" / "claims.json")
    assert all(line.what in page for line in lines if line.effect is not None)
    assert all((reproduced / "results" / figure).exists() for figure in _shown(page))
    (reproduced / "results" / "notes.json").write_text(json.dumps({"C1": "Why C1 may be so."}))
    assert "Why C1 may be so." in results_page(reproduced / "results", "figures")
    with pytest.raises(InputError, match=r"has no claims\.json: .* reproduce claims writes it"):
        results_page(tmp_path, "figures")


def test_what_was_tried_stands_beside_what_it_is_held_against(reproduced, tmp_path):
    run, against = (reproduced / "runs" / "cifar10" / name / "0" for name in ("cascaded-td-lam1", "cascaded-td-lam0"))
    found = changes(run, against, ["accuracy"])
    answers = json.loads((run / "results.json").read_text())["analyses"]["speed_accuracy"].values()
    told = {each["asked"]["what"]: each["result"]["headline"]["accuracy"] for each in answers}
    assert {each.of: each.after for each in found} == told
    with pytest.raises(InputError, match="do not both have speed of the same images: record and analyse both"):
        changes(run, against, ["speed"])

    kept = shutil.copytree(reproduced / "results", tmp_path / "results")
    trial = Trial("another lambda", "cascaded train --lam 1", "cascaded-td-lam1/0", "cascaded-td-lam0/0", found)
    for each in (replace(trial, command="an earlier one"), trial):
        keep_trial(kept, each)
    assert read_trials(kept) == [trial]
    page = results_page(kept, "figures")
    assert "### Another lambda\n\n```bash\ncascaded train --lam 1\n```" in page
    assert "an earlier one" not in page
    assert all(f"| {each.of} | accuracy | {each.before:.3f} | {each.after:.3f} |" in page for each in found)
    (kept / "tried.json").write_text("[]")
    with pytest.raises(InputError, match="holds no trials of format 1"):
        results_page(kept, "figures")


def _shown(page: str) -> list[str]:
    return [each.partition(")")[0] for each in page.split("](")[1:] if each.startswith("figures/")]


def test_the_published_page_is_made_from_the_published_results():
    page = (ROOT / "docs" / "results.md").read_text()
    assert page == results_page(ROOT / "results" / "laptop", "results")
    figures = [each.partition(")")[0] for each in page.split("](")[1:] if each.startswith("results/")]
    assert figures
    assert all((ROOT / "docs" / figure).exists() for figure in figures)


@pytest.mark.parametrize(
    ("items", "options", "message"),
    [
        ((), {}, rf"no item is given: say which, as in {PROGRAM} reproduce table-lambda; --list shows all"),
        (("table-lamda",), {}, "the paper has no item 'table-lamda' here: say table-lambda?"),
        (("ood",), {"data_limit": 0}, "--data-limit is 0: give at least 1"),
        (("ood",), {"epochs": 0}, "--epochs is 0: give at least 1"),
        (("ood",), {"jobs": 0}, "--jobs is 0: give at least 1"),
        (
            ("claims",),
            {},
            rf"nothing is reproduced in .*: {PROGRAM} reproduce table-lambda --scale laptop --out .* makes",
        ),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, items, options, message):
    with pytest.raises(InputError, match=message):
        reproduce(items, out=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_way_is_left_alone(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(InputError, match="which is a file: give a folder"):
        reproduce(("ood",), out=tmp_path / "out")
    assert (tmp_path / "out").read_text() == "mine"


def test_in_a_fresh_clone_the_claims_are_the_published_ones(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cli.run(["reproduce", "claims"])
    told = capsys.readouterr().out
    published = ROOT / "results" / "laptop"
    where = f"these are the published results in {published}: nothing is reproduced in out/reproduce-laptop yet"
    assert where in told
    assert f"next: {program()} reproduce table-lambda --scale laptop" in told
    _, lines = read_ledger(published / "claims.json")
    assert sum(told.count(told_effect(line)) > 0 for line in lines) == len(lines)
    assert all(claim in told for claim in CLAIMS)
    assert list(tmp_path.iterdir()) == []  # nothing is reproduced, so nothing is written
    monkeypatch.chdir(ROOT)
    assert ledger_module.published("laptop") == Path("results/laptop")


def test_without_the_repository_there_are_no_published_claims(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ledger_module, "PUBLISHED", tmp_path / "site-packages" / "results")
    message = rf"and published results come with a clone of the repository alone: {PROGRAM} reproduce "
    with pytest.raises(InputError, match=message):
        reproduce(("claims",))


def test_the_list_says_where_published_results_are(tmp_path, monkeypatch):
    monkeypatch.setattr("cascaded.paper.estimate.seconds_an_image", lambda *_: 1.0)
    monkeypatch.chdir(tmp_path)
    table = listing(small(), Path("out"))
    there = dict(zip(table.columns[0].cells, table.columns[5].cells, strict=True))
    published = f"published in {ROOT / 'results' / 'laptop'}"
    assert (there["table-lambda"], there["claims"], there["terriers"]) == (published, published, "no")
