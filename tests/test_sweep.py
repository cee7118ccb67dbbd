"""Sweeps: independent runs side by side, on this machine and on a cluster, that go on where they were."""

import importlib.util
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import tyro
from filelock import FileLock

from cascaded.cli import main as cli
from cascaded.cli import sweep as command
from cascaded.cli.train import prepare
from cascaded.errors import InputError
from cascaded.shell import program
from cascaded.training import engines
from cascaded.training.config import RECIPES, ExecutionConfig, RunConfig
from cascaded.training.engines import Local, Status, run_jobs
from cascaded.training.runs import is_done, is_locked, locked, read_metrics, resume_command
from cascaded.training.sweep import plan
from tests.forked import code_of, forked, wait_until
from tests.queues import fork
from tests.refused import refused
from tests.shared_folder import shared_folder

PROCESS = engines._process
# one thread: two that wait for each other on cores that others use as well take far longer
TINY = shlex.split("--max-images 64 --epochs 1 --width 2 --batch-size 32 --device cpu --threads 1")


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """`cascaded sweep` in this process, which has torch already; its runs have forked processes."""
    fork(monkeypatch)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["cascaded", "sweep", *TINY, "--out", str(tmp_path / "runs"), *arguments])
        cli.main()

    return run


def test_a_sweep_trains_what_is_not_done_and_says_what_failed(sweep, tmp_path, capsys, monkeypatch):
    runs = tmp_path / "runs"
    sweep("--seeds", "0", "1", "--dry-run")
    output = capsys.readouterr().out
    assert "2 waiting" in output
    assert "nothing was started" in output
    assert not runs.exists()

    trained, blocked, taken = (runs / name / "0" for name in ("cascaded-td-lam0", "cascaded-ce", "serial-ce"))
    blocked.mkdir(parents=True)
    (blocked / "checkpoints").write_text("in the way")
    with pytest.raises(SystemExit) as ended:
        sweep("--methods", "cascaded-ce", "cascaded-td", "--lam", "0", "--num-workers", "2")
    assert ended.value.code == 2
    output = capsys.readouterr()
    assert "1 done, 1 failed" in output.out
    assert f"1 of 2 runs failed, the first in {blocked}: see log.txt there" in output.err
    assert "cannot be written" in (blocked / "log.txt").read_text()
    assert is_done(trained)

    (blocked / "checkpoints").unlink()
    before = (trained / "metrics.jsonl").stat().st_mtime_ns
    with locked(taken):
        sweep("--methods", "cascaded-ce", "cascaded-td", "serial-ce", "--lam", "0")
    output = capsys.readouterr().out
    assert "2 done, 1 elsewhere" in output
    assert "another process" in output
    assert "next:" not in output
    assert is_done(blocked)
    assert (trained / "metrics.jsonl").stat().st_mtime_ns == before  # what is done is left alone

    monkeypatch.setattr("cascaded.training.fit.training_images", None)  # the data may have moved since
    small = ["--data", "digits", "--max-images", "64", "--width", "2"]  # epochs and batch size are those of the runs
    cli.run(["sweep", *small, "--methods", "cascaded-ce", "--out", str(runs)])
    output = capsys.readouterr().out
    assert "1 done" in output
    assert f"next: {program()} record {runs}\n" in output

    with pytest.raises(SystemExit) as ended:
        sweep("--methods", "cascaded-td", "--lam", "0", "--epochs", "2")
    assert ended.value.code == 2
    assert "is another run (epochs 1 -> 2)" in capsys.readouterr().err


@pytest.mark.parametrize("full", [False, True])
def test_a_run_that_is_killed_stops_no_other_but_the_first_that_cannot_write_ends_the_sweep(
    tmp_path, monkeypatch, full
):
    jobs, started = plan(RECIPES["laptop"], ["cascaded-td"], [], [0, 1], tmp_path), []

    def process(folder, *_):
        started.append(folder)
        return subprocess.Popen([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"])

    def check(folder):
        if started and full:
            raise InputError("runs cannot be written (No space left on device)")

    monkeypatch.setattr(engines, "check_writable", check)
    monkeypatch.setattr(engines, "_process", process)
    monkeypatch.setattr(engines, "POLL_SECONDS", 0.1)
    engine = Local(slots=1, threads=1)
    if full:
        refused("No space left", run_jobs, jobs, engine=engine)
    else:
        statuses = run_jobs(jobs, engine=engine)
        assert list(statuses.values()) == [Status("failed", "ended with code -9", "here")] * 2
    assert started == [job.folder for job in (jobs[:1] if full else jobs)]


@pytest.fixture
def _heard():
    """Processes that are started here hear SIGINT, also where the tests run in the background and ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_heard")
@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.long)])
def test_a_sweep_that_is_interrupted_or_killed_leaves_no_run_behind(sweep, tmp_path, monkeypatch, how):
    monkeypatch.setattr(engines, "_process", PROCESS)  # not forked: as users start them
    child = forked(lambda: sweep("--epochs", "500", "--num-workers", "1"))
    metrics = tmp_path / "runs" / "cascaded-td" / "0" / "metrics.jsonl"
    wait_until(metrics.exists, child)
    os.kill(child, how)
    assert code_of(child) == (130 if how == signal.SIGINT else -how)
    wait_until(lambda: not is_locked(metrics.parent))  # a run whose sweep is gone finishes its step
    assert f"resume it with {resume_command(metrics.parent)}" in (metrics.parent / "log.txt").read_text()
    assert len(read_metrics(metrics.parent)) < 500


def test_all_runs_of_a_sweep_have_the_batch_size_and_epochs_chosen_for_the_first(tmp_path, monkeypatch, capsys):
    started = {}
    monkeypatch.setattr(command, "_run", lambda jobs, *_: started.update(dict.fromkeys(jobs)) or {})
    words = shlex.split("sweep --width 2 --classes 3 5 8 --seeds 0 1 --val-fraction 0.25 --out")
    cli.run([*words, str(tmp_path)])
    assert len(started) == 2
    assert {(job.config.width, job.config.epochs, job.config.batch_size) for job in started} == {(2, 40, 32)}
    assert capsys.readouterr().err.count("chosen for ") == 1


def test_a_job_is_trained_with_its_own_configuration(tmp_path):
    config = replace(RECIPES["laptop"], data="cifar10", fold=(2, 3), seed=4, lam=0.5, epochs=2)
    (job,) = plan(config, ["cascaded-td"], ["0.5"], [4], tmp_path)
    words = job.arguments(ExecutionConfig(device="cpu"))
    assert words[-3:] == ["--out", str(job.folder.parent), "--resume"]
    made = prepare(words[:-1])
    assert made.keywords["given"] == ("epochs", "batch_size")
    assert tyro.cli(RunConfig, default=RECIPES["laptop"], args=words[: words.index("--device")]) == config


@pytest.fixture
def _one_cluster(tmp_path_factory):
    """Tests of clusters take turns: --address auto finds any cluster of this machine."""
    with FileLock(shared_folder(tmp_path_factory) / "cluster.lock"):
        yield


RAY = """
import subprocess, sys
import os
from ray.cluster_utils import Cluster

home = os.getcwd()
os.chdir("/")  # the machines of a cluster are started elsewhere
cluster = Cluster(initialize_head=True, head_node_args={"wait": False, "num_cpus": 1, "include_dashboard": False})
cluster.add_node(wait=False, num_cpus=1)
cluster.wait_for_nodes(timeout=200)
try:
    words = [sys.executable, "-m", "cascaded", "sweep", *sys.argv[1:], "--address", cluster.address]
    ended = subprocess.run(words, cwd=home, timeout=240)
finally:
    cluster.shutdown()
sys.exit(ended.returncode)
"""


@pytest.mark.long
@pytest.mark.skipif(not importlib.util.find_spec("ray"), reason="Ray is not installed: pip install 'cascaded[cluster]'")
@pytest.mark.usefixtures("_one_cluster")
def test_a_sweep_runs_on_both_nodes_of_a_ray_cluster(tmp_path):
    words = [sys.executable, "-W", "ignore", "-c", RAY, *TINY, "--seeds", "0", "1", "--out", "runs", "--engine", "ray"]
    # a folder of its own with a short name: the path of a socket has at most 107 characters
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp", ignore_cleanup_errors=True) as session:
        environment = {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}
        environment = {**os.environ, **environment, "RAY_TMPDIR": session}
        output = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=300, cwd=tmp_path)
    assert output.returncode == 0, output.stderr
    assert "2 done" in output.stdout
    assert all(is_done(tmp_path / "runs" / "cascaded-td" / str(seed)) for seed in range(2))
    assert len(set(re.findall(r"node (\S+)", output.stdout))) == 2, output.stdout


@pytest.mark.skipif(not importlib.util.find_spec("ray"), reason="Ray is not installed: pip install 'cascaded[cluster]'")
@pytest.mark.usefixtures("_one_cluster")
def test_a_cluster_that_does_not_answer_is_an_error(sweep, tmp_path):
    def work():
        os.chdir(tmp_path)
        os.environ["RAY_TMPDIR"] = str(tmp_path)  # clusters of this machine leave their address in it
        sys.stderr = (tmp_path / "printed.txt").open("w", buffering=1)
        sweep("--engine", "ray", "--address", "auto")

    assert code_of(forked(work)) == 2
    printed = (tmp_path / "printed.txt").read_text()
    assert "no Ray cluster answers" in printed
    assert "start one with `ray start --head`" in printed


# --- which runs a sweep has


def jobs_of(methods, lams, seeds, **options):
    return plan(RunConfig(), methods, lams, seeds, Path("runs"), **options)


def test_methods_times_lambdas_times_seeds_and_methods_without_lambda_once_a_seed():
    jobs = jobs_of(["cascaded-td", "cascaded-ce"], ["0.0", "1:0"], [0, 1])
    names = ["cascaded-td-lam0", "cascaded-td-lam1-0", "cascaded-ce"]
    assert [job.folder for job in jobs] == [Path("runs", name, str(seed)) for seed in (0, 1) for name in names]
    assert [job.config.lam for job in jobs[:3]] == [0.0, (1.0, 0.0), None]
    names = ["serial-td", "shallow-deep"]  # without lambdas, every method has its own
    assert [job.name for job in jobs_of(names, [], [3])] == names


def test_folds_stand_between_method_and_seed_and_each_holds_out_its_own():
    jobs = jobs_of(["cascaded-td", "serial-ce"], ["0"], [4], folds=3)
    names = [f"{method}/fold{number}of3" for method in ("cascaded-td-lam0", "serial-ce") for number in (1, 2, 3)]
    assert [job.folder for job in jobs] == [Path("runs", name, "4") for name in names]
    assert [job.config.fold for job in jobs] == [(1, 3), (2, 3), (3, 3)] * 2
    words = jobs[1].arguments()
    assert words[words.index("--fold") + 1] == "2/3"
    assert words[words.index("--out") + 1] == str(Path("runs") / names[1])


@pytest.mark.parametrize(
    ("methods", "lams", "seeds", "options", "message"),
    [
        ([], [], [0], {}, "--methods is empty"),
        (["serial-ce"], [], [], {}, "--seeds is empty"),
        (["serial-ce"], [], [1, 1], {}, "--seeds has the same value twice"),
        (["cascaded-td"], ["0", "0.0"], [0], {}, "--lam has the same value twice"),
        (["cascaded-td"], ["2"], [0], {}, r"lam is 2\.0"),
        (["cascade"], [], [0], {}, "there is no method 'cascade'"),
        (["serial-ce"], [], [0], {"folds": 1}, "--folds is 1: give at least 2, each is held out once"),
    ],
)
def test_impossible_sweeps_are_refused(methods, lams, seeds, options, message):
    refused(message, jobs_of, methods, lams, seeds, **options)
