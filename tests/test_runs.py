"""A run's folder: one process at a time, one config, metrics that are cut back to a checkpoint."""

import os
import re
import signal
import time

import pytest

from cascaded import RunConfig
from cascaded.errors import InputError
from cascaded.files import read_json, write_json
from cascaded.shell import program
from cascaded.training import runs
from cascaded.training.checkpoint import save
from cascaded.training.log import MetricsFile
from tests.forked import PATIENCE, code_of, forked, wait_until
from tests.refused import refused

INPUTS = runs.Inputs((1, 8, 8), (0.5,), (0.25,), ("no", "yes"))


def test_a_second_process_is_refused_and_a_killed_one_leaves_no_lock(tmp_path):
    def hold():
        with runs.locked(tmp_path):
            (tmp_path / "held").touch()
            time.sleep(PATIENCE)

    child = forked(hold)
    wait_until((tmp_path / "held").exists, child)
    assert runs.is_locked(tmp_path)
    with pytest.raises(InputError, match=r"another process is working in .*: wait for it, or"), runs.locked(tmp_path):
        pass
    os.kill(child, signal.SIGKILL)
    assert code_of(child) == -signal.SIGKILL
    assert not runs.is_locked(tmp_path)
    with runs.locked(tmp_path):
        assert runs.is_locked(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"), runs.locked(tmp_path / "file" / "run"):
        pass


def test_a_run_is_entered_once_and_then_resumed(tmp_path):
    config, images = RunConfig(epochs=2), r"digits has other images than those that .* was started with"
    save(tmp_path / "old", 5, {}, {}, {})
    refused(r"has checkpoints but no config\.json", runs.enter, tmp_path / "old", config, resume=True)
    runs.enter(tmp_path, config, resume=False)
    runs.begin(tmp_path, config, "abc", INPUTS, made_with={"torch": "2"})
    assert runs.read_config(tmp_path) == config
    runs.enter(tmp_path, config, resume=True)
    runs.begin(tmp_path, config, "abc", INPUTS, made_with={"torch": "3"})
    assert read_json(tmp_path / "config.json")["made_with"] == {"torch": "2"}
    refused(images, runs.begin, tmp_path, config, "abd", INPUTS, made_with={})
    command = re.escape(f"{program()} train --resume {tmp_path}")
    refused(f"contains this run already: resume it with {command}, or", runs.enter, tmp_path, config, resume=False)
    changed = RunConfig(epochs=3, lr=0.2)
    refused(r"is another run \(epochs 2 -> 3, lr 0.1 -> 0.2\)", runs.enter, tmp_path, changed, resume=True)


@pytest.mark.parametrize(
    "content",
    [[], {}, {"format": 2}, {"format": 3, "config": {}, "inputs": {}}, {"format": 2, "config": {}, "inputs": []}],
)
def test_a_spec_that_is_none_is_refused(tmp_path, content):
    write_json(tmp_path / "config.json", content)
    refused(r"config\.json", runs.read_config, tmp_path)


def test_metrics_are_cut_back_to_where_a_checkpoint_was_made(tmp_path):
    metrics = MetricsFile(tmp_path, 0)
    metrics.add({"epoch": 1})
    length = metrics.length
    metrics.add({"epoch": 2})
    with metrics.file.open("a") as opened:
        opened.write('{"epoch": 3')  # killed in the middle
    assert runs.read_metrics(tmp_path) == [{"epoch": 1}, {"epoch": 2}]
    MetricsFile(tmp_path, length).add({"epoch": 2, "again": True})
    assert runs.read_metrics(tmp_path) == [{"epoch": 1}, {"epoch": 2, "again": True}]


def test_a_run_is_done_when_its_last_step_is_kept(tmp_path):
    assert not runs.is_done(tmp_path)
    runs.begin(tmp_path, RunConfig(epochs=2), "abc", INPUTS, made_with={})
    metrics = MetricsFile(tmp_path, 0)
    metrics.add({"epoch": 1, "step": 10})
    save(tmp_path, 10, {}, {}, {})
    assert not runs.is_done(tmp_path)
    metrics.add({"epoch": 2, "step": 20})
    assert not runs.is_done(tmp_path)  # logged, but no checkpoint yet
    place = save(tmp_path, 20, {}, {}, {})
    assert runs.is_done(tmp_path)
    (place / "position.json").write_text("[]")
    assert not runs.is_done(tmp_path)  # kept, but damaged


@pytest.mark.parametrize("content", ['{"epoch": 1, garb\n', "3\n"])
def test_damaged_metrics_are_said_in_a_sentence(tmp_path, content):
    (tmp_path / "metrics.jsonl").write_text(content)
    refused("it is damaged, remove it", runs.read_metrics, tmp_path)


def test_inputs_are_stored_and_checked(tmp_path):
    runs.begin(tmp_path, RunConfig(), "abc", INPUTS, made_with={})
    assert runs.read_inputs(tmp_path) == INPUTS
    content = read_json(tmp_path / "config.json")
    for change in ({"mean": [0.1, 0.2]}, {"std": [0.0]}, {"shape": [8, 8]}, {"mean": [float("nan")]}, {"extra": 1}):
        write_json(tmp_path / "config.json", {**content, "inputs": {**content["inputs"], **change}})
        refused(r"config\.json does not describe a run", runs.read_inputs, tmp_path)


def test_runs_are_found_in_and_below_folders(tmp_path):
    for name in ("b/0", "a/1", "a/0"):
        runs.begin(tmp_path / name, RunConfig(), "abc", INPUTS, made_with={})
    assert runs.find_runs([tmp_path / "b/0", tmp_path]) == [tmp_path / name for name in ("b/0", "a/0", "a/1")]
    refused(r"there is no folder .*nowhere: give the folder of a run", runs.find_runs, [tmp_path / "nowhere"])
    (tmp_path / "empty").mkdir()
    refused(r"empty contains no run", runs.find_runs, [tmp_path / "empty"])


def test_a_run_to_resume_is_the_only_one_that_is_not_finished(tmp_path):
    for name in ("mine/0", "mine/1", "mine/2"):
        runs.begin(tmp_path / name, RunConfig(seed=int(name[-1]), epochs=1), "abc", INPUTS, made_with={})
    mine = tmp_path / "mine"
    assert runs.resume_command(tmp_path / "my runs") == f"{program()} train --resume '{tmp_path}/my runs'"
    assert runs.run_to_resume(mine / "1") == mine / "1"
    assert runs.run_to_resume(mine, seed=2) == mine / "2"
    names = re.escape(f"{mine / '0'}, {mine / '1'}, {mine / '2'}")
    refused(f"contains 3 unfinished runs, {names}: give one of them", runs.run_to_resume, mine)
    refused("contains no run with seed 7", runs.run_to_resume, mine, seed=7)
    for seed in (0, 2):
        MetricsFile(mine / str(seed), 0).add({"epoch": 1, "step": 10})
        save(mine / str(seed), 10, {}, {}, {})
    assert runs.run_to_resume(mine) == mine / "1"
