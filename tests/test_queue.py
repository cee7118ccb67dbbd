"""The queue of trainings: killed, paused, watched from elsewhere, and with networks that fail."""

import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from multiprocessing import Value

import pytest
import torch

import cascaded
from cascaded import files
from cascaded.analysis.rows import DRAWS
from cascaded.cli.reproduce import reproduce as command
from cascaded.errors import InputError
from cascaded.paper import worker
from cascaded.paper.experiments import COARSE, Experiment
from cascaded.paper.published import read_estimates
from cascaded.paper.queue import Ended, only_queue, plan, run_queue
from cascaded.paper.reproduce import Reproduction
from cascaded.paper.scales import Stage
from cascaded.paper.status import PAUSE, Entry, QueueFile, seconds_left
from cascaded.paper.work import Done
from cascaded.results.compare import estimates
from cascaded.results.table import load
from cascaded.shell import program
from cascaded.traces.config import RecordingConfig
from cascaded.training.engines import Status
from cascaded.training.rounded import rounded_from, trained_weights
from cascaded.training.runs import checkpoint_places, is_locked, last_metrics, read_config, weights_digest
from tests.forked import code_of, forked, wait_until
from tests.queues import CE, FOLDED, NOISY, PRECISE, TD, TINY, folder_of, patch, with_epochs, works

LONG = with_epochs(2000)


@pytest.fixture(autouse=True)
def _tiny(monkeypatch):
    patch(monkeypatch)


def run(out, keep="weights", stages=()):
    with only_queue(out):
        return run_queue(plan(works(out), keep, stages), out, "cascaded reproduce all", 2)


def printed(*names, out, **options):
    with redirect_stdout(io.StringIO()) as text:
        command(names, scale="smoke", out=out, **options)
    return text.getvalue()


def in_group(work):
    """Do something in a process group of its own, where everything that it starts is."""

    def grouped():
        os.setpgid(0, 0)
        work()

    return forked(grouped)


def finished(out):
    """Everything that finished networks have left, with the time of its last change."""
    done = [task for task in plan(works(out)) if task.state() == "done" and task.joined is None]
    found = [file for task in done for file in task.folder.rglob("*") if file.is_file()]
    return {file: file.stat().st_mtime_ns for file in found if file.suffix in (".parquet", ".jsonl")}


def rows(out):
    """All rows without what differs from run to run: the folder, the training time, and draws, which are lists."""
    table = load(out / "runs")
    table = table[table.analysis != "run_time"].drop(columns=["draws"])
    table["run"] = table.run.str.rpartition("runs/")[2]
    return table.sort_values([*table.columns]).reset_index(drop=True)


def queue_killed_at(out, at):
    """Run the queue until the `at`-th file was written, by whichever process, then kill all of them.

    Returns whether it was killed before its end, and how many files were written.
    """
    written, flush = Value("i", 0), files.flush

    def counted(path):
        flush(path)
        with written.get_lock():
            written.value += 1
            if written.value == at:
                os.killpg(0, signal.SIGKILL)

    def killed():
        files.flush = counted
        run(out)

    code = code_of(in_group(killed))
    assert code in (0, -signal.SIGKILL)
    return code != 0, written.get_obj().value  # a killed process may still hold the lock


def test_a_killed_queue_loses_and_repeats_nothing(tmp_path):
    whole, out, draws = tmp_path / "whole", tmp_path / "out", random.Random(0)
    _, total = queue_killed_at(whole, at=0)
    assert total > 40
    kills = 0
    for _ in range(3):
        before = finished(out) if out.exists() else {}
        was_killed, _ = queue_killed_at(out, draws.randrange(1, total // 3))
        kills += was_killed
        assert {file: stamp for file, stamp in finished(out).items() if file in before} == before
    assert kills >= 2
    assert run(out).failed == {}
    assert rows(out).equals(rows(whole))
    for network in (TD, CE, NOISY):
        assert weights_digest(folder_of(out, network)) == weights_digest(folder_of(whole, network))


def test_the_networks_of_a_killed_queue_stop(tmp_path, monkeypatch):
    patch(monkeypatch, LONG)
    queue = forked(lambda: printed("all", out=tmp_path, num_workers=2))
    runs = [folder_of(tmp_path, network) for network in (TD, CE)]
    wait_until(lambda: all(map(last_metrics, runs)), queue)
    os.kill(queue, signal.SIGKILL)
    assert code_of(queue) == -signal.SIGKILL
    wait_until(lambda: not any(map(is_locked, runs)))
    assert all("stopped after step" in (run / "log.txt").read_text() for run in runs)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A queue to its end with every --keep."""
    root = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patched:
        patch(patched)
        for keep in ("weights", "traces", "none"):
            assert run(root / keep, keep).failed == {}
    return root


def test_keep_weights(kept):
    for network in (TD, CE, NOISY):
        names = {file.name for file in folder_of(kept / "weights", network).iterdir()}
        assert {"config.json", "metrics.jsonl", "model.safetensors", "results"} <= names
        assert not names & {"traces", "checkpoints"}
    fold = kept / "weights" / "runs" / FOLDED.part / FOLDED.name / "fold1of2" / "0"
    assert (fold / "model.safetensors").exists()
    assert not (fold / "traces").exists()
    assert weights_digest(folder_of(kept / "weights", TD)) == weights_digest(folder_of(kept / "traces", TD))


def test_numbers_that_claims_are_about_have_more_draws(kept):
    lengths = load(kept / "weights").query("metric in ('accuracy', 'cost_to_95') and x.isna()")
    assert set(lengths.draws[lengths.metric == "accuracy"].map(len)) == {TINY.claim_draws}
    assert set(lengths.draws[lengths.metric == "cost_to_95"].map(len)) == {DRAWS}


def test_keep_traces(kept):
    for network in (TD, CE, NOISY):
        folder = folder_of(kept / "traces", network)
        assert list((folder / "traces").glob("*.safetensors"))
        assert list((folder / "checkpoints").glob("*/optimizer.safetensors"))


def test_keep_none_keeps_the_weights_that_others_start_from(kept):
    assert list((kept / "none").rglob("*.safetensors")) == [folder_of(kept / "none", TD) / "model.safetensors"]
    assert rows(kept / "none").equals(rows(kept / "weights"))


@pytest.mark.parametrize("keep", ["weights", "traces", "none"])
def test_what_is_done_is_not_done_again(kept, keep):
    before = finished(kept / keep)
    assert len(before) >= 6
    if keep == "weights":  # with tables and figures, which are the same for all
        printed("all", out=kept / keep, keep=keep)
    else:
        assert run(kept / keep, keep).failed == {}
    assert finished(kept / keep) == before


def test_what_was_kept_is_not_deleted_by_another_keep(kept):
    run(kept / "traces", "none")
    assert list((folder_of(kept / "traces", TD) / "traces").glob("*.safetensors"))


def test_a_network_without_weights_can_not_be_measured_again(kept):
    work = Reproduction(replace(PRECISE, name="again"), TINY, kept / "none")
    with only_queue(work.out):
        ended = run_queue(plan([work]), work.out, "cascaded reproduce again", 2)
    reasons = {name: reason for name, reason in ended.failed.items() if "weights" in reason}
    assert set(reasons) == {"digits/cascaded-ce/0", "digits-occlusion/cascaded-td-lam0/0"}
    assert "were deleted, and again need them: remove the folder to train the network again" in str(reasons)


@pytest.fixture
def copied(kept, tmp_path):
    """A queue whose runs are a copy of published networks."""
    text = printed(out=kept / "weights", publish=tmp_path / "results")
    assert "copied 4 networks to" in text
    shutil.copytree(tmp_path / "results", tmp_path / "out" / "runs")
    return tmp_path / "out"


def test_published_networks_are_done(kept, copied):
    assert not list(copied.rglob("*.safetensors"))
    before = finished(copied)
    assert run(copied).failed == {}
    assert finished(copied) == before
    assert rows(copied).equals(rows(kept / "weights"))
    assert "copied 4 networks to" in printed(out=copied, publish=copied.parent / "again", keep="none")


def test_a_published_network_says_what_to_do_for_its_weights(kept, copied):
    scale = replace(TINY, stages=(*TINY.stages, Stage((replace(NOISY, noise="focus"),))))
    work = Reproduction(replace(PRECISE, networks=(TD, replace(NOISY, noise="focus"))), scale, copied)
    with only_queue(copied):
        (reason,) = run_queue(plan([work]), copied, "cascaded reproduce precise", 2).failed.values()
    folder = folder_of(copied, TD)
    assert f"the weights in {folder} were deleted, and {folder_of(copied, replace(NOISY, noise='focus'))}" in reason
    assert reason.endswith("remove the folder to train the network again, or copy model.safetensors into it")
    shutil.copy(folder_of(kept / "weights", TD) / "model.safetensors", folder)
    assert run(copied).failed == {}
    assert (folder / "model.safetensors").exists()  # it is not deleted again


@pytest.fixture
def rounded(kept, tmp_path):
    """A queue whose runs are a copy of published networks with rounded weights."""
    text = printed(out=kept / "weights", publish=tmp_path / "results", weights=True)
    assert "copied 4 networks to" in text
    assert "no weights" not in text
    shutil.copytree(tmp_path / "results", tmp_path / "out" / "runs")
    return tmp_path / "out"


def test_published_weights_are_saved_networks_rounded_to_half_precision(kept, rounded):
    fold = kept / "weights" / "runs" / FOLDED.part / FOLDED.name / "fold1of2" / "0"
    for run_folder in (*(folder_of(kept / "weights", network) for network in (TD, CE, NOISY)), fold):
        copy = rounded / run_folder.relative_to(kept / "weights")
        assert rounded_from(copy) == trained_weights(copy) == weights_digest(run_folder) != weights_digest(copy)
        assert rounded_from(run_folder) is None
        own, theirs = cascaded.load(copy).state_dict(), cascaded.load(run_folder).state_dict()
        assert own.keys() == theirs.keys()
        for name, each in theirs.items():
            assert torch.equal(own[name], each.half().float() if each.dim() == 4 else each)
    printed(out=rounded, publish=rounded.parent / "again", weights=True)
    copy = folder_of(rounded, TD).relative_to(rounded / "runs") / "model.safetensors"
    assert (rounded.parent / "again" / copy).read_bytes() == (rounded / "runs" / copy).read_bytes()


def test_what_is_not_measured_yet_is_measured_on_rounded_weights_and_says_so(kept, rounded):
    """Rows of the weights themselves stay, rows of the rounded ones have their own digest, new networks start there."""
    assert run(rounded).failed == {}
    assert rows(rounded).equals(rows(kept / "weights"))
    later, serial = replace(NOISY, noise="focus"), RecordingConfig(schedule="serial")
    scale = replace(TINY, stages=(*TINY.stages, Stage((later,))))
    more = Experiment("more", (TD, CE, later), (COARSE, serial))
    joined = Experiment("joined", (FOLDED,), (replace(COARSE, split="validation"),), more.analyses)
    with only_queue(rounded):
        ended = run_queue(plan([Reproduction(each, scale, rounded) for each in (more, joined)]), rounded, "more", 2)
    assert ended.failed == {}
    after = load(rounded / "runs")
    own = after[after.run.str.endswith("cascaded-ce/0") & (after.analysis == "speed_accuracy")]
    copy = folder_of(rounded, CE)
    for schedule, file, origin in (("cascaded", kept / "weights", None), ("serial", rounded, trained_weights(copy))):
        found = own[own.schedule == schedule]
        assert set(found.weights) == {weights_digest(folder_of(file, CE))[:16]}
        assert found.rounded_from.isna().all() if origin is None else set(found.rounded_from) == {origin[:16]}
    folds = after[after.run.str.endswith("folds-0")]
    assert folds[folds.analysis == "prototypicality"].rounded_from.isna().all()
    assert folds[folds.analysis == "speed_accuracy"].rounded_from.notna().all()
    numbers = estimates(own)
    assert {name.endswith(":rounded") for name in numbers.runs.explode()[numbers.schedule == "serial"]} == {True}
    assert not numbers.runs.explode()[numbers.schedule == "cascaded"].str.endswith(":rounded").any()
    start = folder_of(rounded, TD)
    assert read_config(folder_of(rounded, later)).init_from == weights_digest(start)
    notes = [note for network in (CE, later) for note in Done.read(folder_of(rounded, network)).notes]
    assert "rows that were added later were measured on weights rounded to half precision" in notes[0]
    assert f"training started from weights of {start} that are rounded to half precision" in notes[1]


def test_settings_that_have_changed_are_measured_on_rounded_weights(rounded):
    with only_queue(rounded):
        run_queue(plan(works(rounded, replace(TINY, claim_draws=250))), rounded, "cascaded reproduce all", 2)
    after = load(rounded / "runs")
    assert set(after.draws[(after.metric == "accuracy") & after.x.isna()].map(len)) == {250}
    assert after[after.metric == "accuracy"].rounded_from.notna().all()


def test_rows_of_rounded_weights_are_replaced_when_the_weights_are_back(kept, rounded):
    experiment = replace(PRECISE, name="later", recordings=(RecordingConfig(schedule="serial"),))
    later = Reproduction(experiment, TINY, rounded)
    with only_queue(rounded):
        run_queue(plan([later]), rounded, "later", 2)
    for network in (TD, CE, NOISY):
        shutil.copy(folder_of(kept / "weights", network) / "model.safetensors", folder_of(rounded, network))
    with only_queue(rounded):
        ended = run_queue(plan([replace(later, experiment=replace(experiment, name="last"))]), rounded, "last", 2)
    assert ended.failed == {}
    after = load(rounded / "runs", "speed_accuracy")
    assert after.rounded_from.isna().all()
    assert set(after.schedule) == {"cascaded", "serial"}


def test_weights_of_another_training_are_not_replaced(kept, rounded):
    file = rounded.parent / "results" / TD.part / TD.name / "0" / "model.safetensors"
    shutil.copy(folder_of(kept / "weights", CE) / "model.safetensors", file)
    for weights in (False, True):
        with pytest.raises(InputError, match=r"has weights .* of another training than .*: remove it, or publish to"):
            printed(out=kept / "weights", publish=rounded.parent / "results", weights=weights)


def test_without_weights_there_is_a_note(kept, tmp_path):
    text = printed(out=kept / "none", publish=tmp_path / "results", weights=True)
    assert "note: there are no weights of digits/cascaded-ce/0, digits-2folds/cascaded-ce/folds-0, digits-occl" in text
    assert (tmp_path / "results" / TD.part / TD.name / "0" / "model.safetensors").exists()
    with pytest.raises(InputError, match="--weights is for --publish FOLDER: add it"):
        printed("all", out=kept / "none", weights=True)


def test_another_network_is_not_replaced_by_a_published_one(kept, copied):
    config = copied.parent / "results" / TD.part / TD.name / "0" / "config.json"
    config.write_text(config.read_text().replace('"epochs": 2', '"epochs": 3'))
    with pytest.raises(InputError, match="is another run"):
        printed(out=kept / "weights", publish=copied.parent / "results")
    with pytest.raises(InputError, match=r"no network in .* is finished"):
        printed(out=copied.parent / "nothing", publish=copied.parent / "again")


def test_work_that_has_to_be_deterministic_is(tmp_path, monkeypatch):
    task = plan([replace(works(tmp_path)[0], scale=replace(TINY, deterministic=True))])[0]
    monkeypatch.setattr(worker, "be_deterministic", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        worker.work(task.work)
    assert not task.folder.exists()


def test_status_and_pause_work_from_elsewhere(tmp_path, monkeypatch):
    patch(monkeypatch, LONG)
    out, run_folder = tmp_path / "out", folder_of(tmp_path / "out", TD)

    def child():
        (tmp_path / "printed.txt").write_text(printed("all", out=out, num_workers=1))

    queue = forked(child)
    wait_until(lambda: last_metrics(run_folder), queue)
    text = printed(out=out, status=True)
    assert "running: digits/cascaded-td-lam0/0, epoch " in text
    assert " of 2000, " in text
    assert "next: digits/cascaded-ce/0, digits-occlusion/cascaded-td-lam0/0" in text
    with pytest.raises(InputError, match=r"another queue is running in .*: --status shows it, --pause stops it"):
        printed("all", out=out)

    text = printed(out=out, pause=True)
    assert code_of(queue) == 0
    resume = f"to resume: {program()} reproduce all --scale smoke --out {out.as_posix()} --num-workers 1"
    assert resume in text
    assert f"paused; {resume}" in (tmp_path / "printed.txt").read_text()
    assert not (out / PAUSE).exists()
    steps = int(checkpoint_places(run_folder)[-1].name)
    assert steps >= last_metrics(run_folder)["step"] > 0

    text = printed(out=out, status=True)
    assert "running:" not in text
    assert f"the queue is not running; {resume.replace('resume', 'resume it')}" in text
    with pytest.raises(InputError, match=r"no queue is running in .*: .* reproduce all --scale .* starts one"):
        printed(out=out, pause=True)


def test_ctrl_c_pauses_and_writes_what_there_is(tmp_path, monkeypatch):
    run(tmp_path, stages=(1,))
    patch(monkeypatch, replace(TINY, noise_changes={"epochs": 2000}))

    def child():
        signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests run in the background
        printed("all", out=tmp_path, num_workers=1)

    queue = forked(child)
    wait_until(lambda: last_metrics(folder_of(tmp_path, NOISY)), queue)
    os.kill(queue, signal.SIGINT)
    assert code_of(queue) == 0
    assert set(read_estimates(tmp_path / "results" / "precise.csv").method) == {"cascaded-td", "cascaded-ce"}
    assert (tmp_path / "results" / "claims.csv").exists()
    states = [entry.state for entry in QueueFile.read(tmp_path).entries]
    assert states == ["done", "done", "waiting", "waiting", "waiting", "waiting"]


def test_one_network_that_fails_stops_those_alone_that_start_from_it(tmp_path):
    blocked = folder_of(tmp_path, TD)
    blocked.mkdir(parents=True)
    (blocked / "checkpoints").write_text("in the way")
    with pytest.raises(
        InputError, match=r"2 networks failed: digits/cascaded-td-lam0/0, .* cannot be written"
    ) as error:
        printed("all", out=tmp_path)
    assert "digits-occlusion/cascaded-td-lam0/0, another one that it starts from failed" in str(error.value)
    assert set(load(tmp_path / "runs").method) == {"cascaded-ce"}
    text = printed(out=tmp_path, status=True)
    assert "failed: digits/cascaded-td-lam0/0, " in text
    assert (tmp_path / "results" / "precise.csv").exists()
    (blocked / "checkpoints").unlink()
    printed("all", out=tmp_path)
    assert "all is done" in printed(out=tmp_path, status=True)


def test_networks_that_failed_for_the_same_reason_are_named_together(tmp_path):
    tasks, reasons = plan(works(tmp_path))[:3], ("no data", "no space", "no data")
    statuses = {task: Status("failed", reason) for task, reason in zip(tasks, reasons, strict=True)}
    first, second, third = (task.name for task in tasks)
    assert Ended(statuses, paused=False).failures == {f"{first}, {third}": "no data", second: "no space"}


def test_stages_are_done_in_their_order_and_can_be_chosen(tmp_path):
    assert [task.stage for task in plan(works(tmp_path))] == [1, 1, 2, 2, 2, 2]
    names = [task.name for task in plan(works(tmp_path), stages=[2])]
    assert names[:2] == ["digits/cascaded-td-lam0/0", "digits-occlusion/cascaded-td-lam0/0"]  # it starts from the first
    with pytest.raises(InputError, match="no network is in --stages 7: the scale has stages 1 to 2"):
        printed("all", out=tmp_path, stages=(7,))


def test_status_needs_no_torch(kept):
    words = ["reproduce", "--status", "--out", str(kept / "weights")]
    program = f"import sys; from cascaded.cli.main import run; run({words!r}); sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "all is done" in done.stdout


def test_without_a_queue_status_and_pause_are_one_sentence(tmp_path):
    for options in ({"status": True}, {"pause": True}):
        with pytest.raises(InputError, match=r"(there is no queue|no queue is running) in .*: .* starts one"):
            printed(out=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_a_queue_that_does_not_stop_is_waited_for_until_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr("cascaded.cli.queue.PAUSE_SECONDS", 0.0)
    monkeypatch.setattr("cascaded.cli.queue.is_locked", lambda out: True)
    match = r"is still running after 0 s: look at it with .* reproduce --status --scale smoke --out .*, or end its"
    with pytest.raises(InputError, match=match):
        printed(out=tmp_path, pause=True)
    assert (tmp_path / PAUSE).exists()  # it may stop later


def test_the_time_that_is_left_is_that_of_finished_networks_of_the_same_kind(tmp_path):
    def entry(stage, name, kind, state, estimate):
        folder = tmp_path / name
        folder.mkdir()
        return Entry(stage, name, str(folder), kind, 4, 40, state, "", estimate)

    entries = [
        entry(1, "a", "td", "done", 100.0),
        entry(1, "b", "td", "waiting", 100.0),
        entry(1, "c", "td", "running", 100.0),
        entry(2, "d", "ce", "waiting", 50.0),
    ]
    line = {"epoch": 4, "step": 40, "seconds": 180.0}
    (tmp_path / "a" / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    Done(seconds=20.0).write(tmp_path / "a")
    (tmp_path / "c" / "metrics.jsonl").write_text(json.dumps({**line, "epoch": 1, "step": 10}) + "\n")
    left = seconds_left(QueueFile("cascaded reproduce all", 2, tuple(entries)))
    assert left == {1: (200 + 0.75 * 200) / 2, 2: 2 * 50 / 2}  # finished ones took twice their estimate
