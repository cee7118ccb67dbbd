"""A run's folder: one process at a time, one config, metrics that are cut back to a checkpoint."""

import json
import os
import re
import signal
import time

import pytest
from filelock import FileLock

from cascaded import RunConfig
from cascaded.errors import InputError
from cascaded.files import read_json
from cascaded.runtime.exported import FORMAT as EXPORTED
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


def test_a_lock_leaves_no_file_and_one_whose_file_was_removed_is_taken_again(tmp_path, monkeypatch):
    acquire = FileLock.acquire

    def while_another_process_ends(lock, timeout):
        acquire(lock, timeout=timeout)
        (tmp_path / runs.LOCK).unlink()
        monkeypatch.undo()

    monkeypatch.setattr(FileLock, "acquire", while_another_process_ends)
    with runs.locked(tmp_path):
        assert (tmp_path / runs.LOCK).exists()
    assert not any(tmp_path.iterdir())
    (tmp_path / runs.LOCK).touch()  # of a process that was killed
    assert not runs.is_locked(tmp_path)
    with runs.locked(tmp_path):
        (tmp_path / runs.LOCK).unlink()
        (tmp_path / runs.LOCK).write_text("another's")
    assert (tmp_path / runs.LOCK).read_text() == "another's"


def test_one_of_several_processes_at_a_time_holds_a_lock(tmp_path):
    (tmp_path / "count").write_text("0")

    def count():
        for _ in range(5):
            with runs.locked(tmp_path, PATIENCE):
                number = int((tmp_path / "count").read_text())
                time.sleep(0.002)
                (tmp_path / "count").write_text(str(number + 1))

    assert [code_of(child) for child in [forked(count) for _ in range(4)]] == [0] * 4
    assert (tmp_path / "count").read_text() == "20"
    assert [file.name for file in tmp_path.iterdir()] == ["count"]


def test_a_run_is_entered_once_and_then_resumed(tmp_path):
    config, images = RunConfig(epochs=2), r"digits has other images than those that .* was started with"
    save(tmp_path / "old", 5, {}, {}, {})
    refused(r"has checkpoints but no config\.json", runs.enter, tmp_path / "old", config, resume=True)
    runs.enter(tmp_path, config, resume=False)
    runs.begin(tmp_path, config, "abc", INPUTS, made_with={"torch": "2"})
    assert (runs.read_config(tmp_path), runs.read_inputs(tmp_path)) == (config, INPUTS)
    runs.enter(tmp_path, config, resume=True)
    runs.begin(tmp_path, config, "abc", INPUTS, made_with={"torch": "3"})
    assert read_json(tmp_path / "config.json")["made_with"] == {"torch": "2"}
    refused(images, runs.begin, tmp_path, config, "abd", INPUTS, made_with={})
    command = re.escape(f"{program()} train --resume {tmp_path}")
    refused(f"contains this run already: resume it with {command}, or", runs.enter, tmp_path, config, resume=False)
    changed = RunConfig(epochs=3, lr=0.2)
    refused(r"is another run \(epochs 2 -> 3, lr 0.1 -> 0.2\)", runs.enter, tmp_path, changed, resume=True)


NO_INT, NO_CHANNELS = r"Expected `int.*`, got `{}` - at `\$\.{}`", r"are not of 1 channels: give finite numbers"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("format", 3, r"format is 3, this version of cascaded reads 2"),
        ("config", [], r"Expected `object`, got `array` - at `\$\.config`"),
        ("config.method", "cascaded-tdd", r"Invalid enum value 'cascaded-tdd' - at `\$\.config\.method`"),
        ("config.arch", "resnet19", r"there is no architecture 'resnet19': did you mean resnet18"),
        ("config.arch", None, r"Expected `str`, got `null` - at `\$\.config\.arch`"),
        ("config.width", "4", NO_INT.format("str", "config.width")),
        ("config.width", True, NO_INT.format("bool", "config.width")),
        ("config.seed", "0", NO_INT.format("str", "config.seed")),
        ("config.lr", float("nan"), r"lr is nan: give a positive number"),
        ("config.data", ["x"], r"Expected `str`, got `array` - at `\$\.config\.data`"),
        ("config.data", None, r"Expected `str`, got `null` - at `\$\.config\.data`"),
        ("config.image_column", [], r"Expected `str \| null`, got `array`"),
        ("config.classes", "ab", r"Expected `array`, got `str` - at `\$\.config\.classes`"),
        ("config.max_images", "x", NO_INT.format("str", "config.max_images")),
        ("config.max_images", 0, r"max_images is 0: give at least 1"),
        ("config.fold", [3, 2], r"fold is \(3, 2\): give its number and how many there are"),
        ("config.lam", [], r"lam is empty: give a number from 0 to 1"),
        ("config.\x1b[31mred", 1, r"unknown key \ufffd\[31mred: written by a newer version"),
        ("inputs", None, r"Expected `object`, got `null` - at `\$\.inputs`"),
        ("inputs", {}, r"missing required field `shape` - at `\$\.inputs`"),
        ("inputs.extra", 1, r"unknown key extra: written by a newer version"),
        ("inputs.shape", [8, 8], r"shape is \[8, 8\]: give channels, height and width"),
        ("inputs.shape", [1, True, 8], r"Expected `int`, got `bool` - at `\$\.inputs\.shape\[1\]`"),
        ("inputs.mean", ["a"], r"Expected `float`, got `str` - at `\$\.inputs\.mean\[0\]`"),
        ("inputs.mean", [float("nan")], NO_CHANNELS),
        ("inputs.mean", [0.1, 0.1], NO_CHANNELS),
        ("inputs.std", [10**400], r"Number out of range - at `\$\.inputs\.std\[0\]`"),
        ("inputs.std", [1e300], NO_CHANNELS),
        ("inputs.std", [0.0], NO_CHANNELS),
        ("inputs.classes", [1], r"Expected `str`, got `int` - at `\$\.inputs\.classes\[0\]`"),
        ("accuracy", [10**400], r"Number out of range - at `\$\.accuracy\[0\]`"),
        ("accuracy", "x", r"Expected `array`, got `str` - at `\$\.accuracy`"),
        ("accuracy", [2], r"accuracy is \[2\.0\]: give numbers from 0 to 1"),
        ("made_with", {"torch": 2}, r"Expected `str`, got `int` - at `\$\.made_with"),
    ],
)
def test_a_damaged_config_is_refused_in_one_sentence(tmp_path, field, value, message):
    runs.begin(tmp_path, RunConfig(), "abc", INPUTS, made_with={})
    content = read_json(tmp_path / "config.json")
    section, _, name = field.rpartition(".")
    (content[section] if section else content)[name] = value
    (tmp_path / "config.json").write_text(json.dumps(content))
    sentence = rf"^[^\n]*config\.json does not describe a run \([^\n]*{message}[^\n]*\): it is damaged$"
    refused(sentence, runs.read_run_file, tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "it has no config and inputs"),
        ('{"hidden_size": 9}', "it has no config and inputs"),
        ('{"spec": {}}', r"is a network of cascaded 0\.1"),
        (f'{{"format": "{EXPORTED}"}}', "is an exported network, for .* serve, live and .*Runner: give the run that"),
    ],
)
def test_a_file_of_another_kind_is_refused_in_one_sentence(tmp_path, text, message):
    (tmp_path / "config.json").write_text(text)
    refused(rf"^[^\n]*{message}[^\n]*$", runs.read_run_file, tmp_path)


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
