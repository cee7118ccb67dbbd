"""Sweeps: independent runs side by side, on this machine and on a cluster, that go on where they were."""

import importlib.util
import os
import signal
import subprocess
import sys
import time

import pytest

from cascaded.learning.options import Options
from cascaded.learning.runs import is_done, is_locked, locked, read_metrics
from cascaded.sweep import command, engines
from cascaded.sweep.engines import Local
from cascaded.sweep.plan import plan

TINY = ["--data", "digits", "--limit", "64", "--epochs", "1", "--width", "2", "--batch", "32", "--device", "cpu"]


@pytest.fixture
def sweep(tmp_path):
    def run(*arguments, start=subprocess.run, **options):
        command = [sys.executable, "-m", "cascaded", "sweep", *TINY, "--out", str(tmp_path / "runs"), *arguments]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment}
        return start(command, **piped, **options)

    return run


def test_a_sweep_trains_what_is_not_done_and_says_what_failed(sweep, tmp_path):
    runs = tmp_path / "runs"
    blocked = runs / "cascaded-ce" / "0"
    blocked.mkdir(parents=True)
    (blocked / "checkpoints").write_text("in the way")
    told = sweep("--models", "cascaded-td", "cascaded-ce", "--lam", "0", "--seeds", "0", "1", "--jobs", "2")
    assert told.returncode == 2
    assert "3 done, 1 failed" in told.stdout
    assert f"1 of 4 runs failed, the first in {blocked}: see log.txt there" in told.stderr
    assert "cannot be written" in (blocked / "log.txt").read_text()
    assert all(is_done(runs / name / seed) for name, seed in [("cascaded-td-lam0", "0"), ("cascaded-td-lam0", "1")])

    (blocked / "checkpoints").unlink()
    kept = {file: file.stat().st_mtime_ns for file in runs.rglob("metrics.jsonl") if file.parent != blocked}
    with locked(runs / "cascaded-ce" / "1"):
        told = sweep("--models", "cascaded-td", "cascaded-ce", "--lam", "0", "--seeds", "0", "1")
    assert told.returncode == 0, told.stderr
    assert "1 elsewhere" in told.stdout
    assert "another process" in told.stdout
    assert is_done(blocked)
    assert all(file.stat().st_mtime_ns == before for file, before in kept.items())  # what is done is left alone

    told = sweep("--models", "cascaded-td", "--lam", "0", "--epochs", "2")
    assert told.returncode == 2
    assert "is another run (epochs 1 -> 2)" in told.stderr


def test_a_run_that_says_nothing_before_it_fails_stops_no_other(tmp_path, monkeypatch, capsys):
    jobs = plan(["cascaded-td"], [], [0, 1], tmp_path)
    engine = Local(slots=1, threads=1)
    silent = [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
    monkeypatch.setattr(engines, "_process", lambda *_: subprocess.Popen(silent))
    states = dict.fromkeys(jobs, "waiting")
    command._train_all(engine, jobs, Options(), states, outcomes := {})
    assert list(states.values()) == ["failed", "failed"]
    assert {outcome.code for outcome in outcomes.values()} == {-9}
    assert "ended with code -9" in capsys.readouterr().err


@pytest.fixture
def _heard():
    """Processes that are started here hear SIGINT, also where the tests run in the background and ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_heard")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_sweep_that_is_interrupted_or_killed_leaves_no_run_behind(sweep, tmp_path, how):
    with sweep("--epochs", "500", "--jobs", "1", start=subprocess.Popen) as going:
        metrics = tmp_path / "runs" / "cascaded-td" / "0" / "metrics.jsonl"
        while not metrics.exists():
            assert going.poll() is None, going.stderr.read()
            time.sleep(0.1)
        going.send_signal(how)
        assert going.wait() == (130 if how == signal.SIGINT else -how)
    while is_locked(metrics.parent):  # a run whose sweep is gone finishes its step
        time.sleep(0.1)
    assert "the same command with --resume goes on" in (metrics.parent / "log.txt").read_text()
    assert len(read_metrics(metrics.parent)) < 500


def test_a_dry_run_starts_nothing(sweep, tmp_path):
    told = sweep("--seeds", "0", "1", "--dry-run")
    assert told.returncode == 0
    assert "2 waiting" in told.stdout
    assert "nothing was started" in told.stdout
    assert not (tmp_path / "runs").exists()


def test_options_go_to_the_runs_as_they_were_asked():
    options = Options("cifar10", "paper", width=8, flip=False, classes=("cat", "dog"), tensorboard=True)
    words = options.arguments()
    assert words == [
        "--data",
        "cifar10",
        "--recipe",
        "paper",
        "--width",
        "8",
        "--flip",
        "False",
        "--classes",
        "cat",
        "dog",
        "--tensorboard",
    ]
    import tyro

    assert tyro.cli(Options, args=words) == options


RAY = """
import subprocess, sys
import os
from ray.cluster_utils import Cluster

home = os.getcwd()
os.chdir("/")  # the machines of a cluster are started elsewhere
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
cluster.add_node(num_cpus=1)
cluster.wait_for_nodes()
try:
    words = [sys.executable, "-m", "cascaded", "sweep", *sys.argv[1:], "--address", cluster.address]
    ended = subprocess.run(words, cwd=home)
finally:
    cluster.shutdown()
sys.exit(ended.returncode)
"""


@pytest.mark.skipif(not importlib.util.find_spec("ray"), reason="Ray is not installed: pip install 'cascaded[cluster]'")
def test_a_sweep_runs_on_both_nodes_of_a_ray_cluster(tmp_path):
    runs = tmp_path / "runs"
    arguments = [*TINY, "--seeds", "0", "1", "2", "3", "--out", "runs", "--engine", "ray"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}
    words = [sys.executable, "-W", "ignore", "-c", RAY, *arguments]
    told = subprocess.run(
        words, capture_output=True, text=True, check=False, env=environment, timeout=300, cwd=tmp_path
    )
    assert told.returncode == 0, told.stderr
    assert "4 done" in told.stdout
    assert all(is_done(runs / "cascaded-td" / str(seed)) for seed in range(4))
    nodes = {
        word for line in told.stdout.splitlines() if "node " in line for word in [line.split("node ")[1].split()[0]]
    }
    assert len(nodes) == 2, told.stdout


@pytest.mark.skipif(not importlib.util.find_spec("ray"), reason="Ray is not installed: pip install 'cascaded[cluster]'")
def test_a_cluster_that_does_not_answer_is_said_in_a_sentence(sweep, tmp_path):
    told = sweep("--engine", "ray", "--address", "auto", cwd=tmp_path)
    assert told.returncode == 2
    assert "no Ray cluster answers" in told.stderr
    assert "start one with `ray start --head`" in told.stderr
