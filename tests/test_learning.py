"""The script that trains every kind of network, and the one that draws what it trained."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from scripts import learned, learning
from tests.forked import code_of, forked

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Trainings of a U-Net, for one epoch on a few images."""
    folder = tmp_path_factory.mktemp("learning")
    threads = torch.get_num_threads()
    before = signal.getsignal(signal.SIGTERM)
    try:
        learning.main(["U-Net", "--smoke", "--out", str(folder)])
    finally:
        torch.set_num_threads(threads)
        signal.signal(signal.SIGTERM, before)
    return folder


def test_the_first_seed_of_every_network_comes_first():
    planned = learning.trainings(["Highway", "ViT"], Path("out"))
    assert [(each.network, each.seed) for each in planned[::3]] == [("Highway", 0), ("ViT", 0), ("ViT", 1), ("ViT", 2)]
    assert [each.method for each in planned[:3]] == ["CE", "TD(1)", "TD(0)"]
    assert len({each.folder for each in learning.trainings(list(learning.CASES), Path("out"))}) == 30


@pytest.mark.long
def test_finished_trainings_are_rows_and_are_not_repeated(out, capsys):
    rows = learned.read_steps(out / "smoke")
    assert rows.groupby("method", sort=False)["step"].max().to_dict() == {"CE": 4, "TD(1)": 4, "TD(0)": 4}
    assert rows["value"].between(0, 1).all()
    files = {file: file.stat().st_mtime_ns for file in out.rglob("result.json")}
    learning.work(learning.trainings(["U-Net"], out / "smoke", smoke=True)[0])
    assert capsys.readouterr().out == ""
    assert {file: file.stat().st_mtime_ns for file in files} == files
    learning.main(["U-Net", "--status", "--smoke", "--out", str(out)])
    assert "3 of 3 trainings are finished" in capsys.readouterr().out


@pytest.mark.long
def test_a_training_that_is_killed_ends_with_the_same_weights(out, tmp_path, monkeypatch):
    whole, halted = (learning.Training("U-Net", "TD(0)", 0, each, smoke=True) for each in (out / "smoke", tmp_path))
    monkeypatch.setattr(learning, "CHECKPOINT_SECONDS", 0.0)
    real, calls = learning.write_whole, []

    def killed(file, write):
        real(file, write)
        calls.append(file)
        if len(calls) == 4:  # the checkpoint and the progress of two steps
            raise KeyboardInterrupt

    monkeypatch.setattr(learning, "write_whole", killed)
    with pytest.raises(KeyboardInterrupt):
        learning.segment(halted)
    monkeypatch.setattr(learning, "write_whole", real)
    assert torch.load(halted.folder / "checkpoint.pt", weights_only=True)["step"] == 2
    assert learning.segment(halted) == json.loads(whole.result.read_text())["value"]
    ends = [torch.load(each.folder / "checkpoint.pt", weights_only=True)["net"] for each in (whole, halted)]
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])


class Worker:
    """A process that is forked from this one: it need not import torch."""

    def __init__(self, command):
        assert command[:3] == [sys.executable, "-m", "scripts.learning"]
        self.child = forked(lambda: learning.main(command[3:]))

    def wait(self):
        return code_of(self.child)

    def terminate(self):
        """It was waited for."""


def test_several_workers_share_the_trainings(tmp_path, monkeypatch):
    def once(training):
        (training.folder / "trained").touch(exist_ok=False)
        return [0.5, 0.75]

    monkeypatch.setattr(learning, "CASES", {"GPT": replace(learning.CASES["GPT"], run=once)})
    monkeypatch.setattr(learning, "subprocess", SimpleNamespace(Popen=Worker))
    words = ["GPT", "--num-workers", "2", "--out", str(tmp_path)]
    handler = signal.getsignal(signal.SIGTERM)
    try:
        learning.main(words)
    finally:
        signal.signal(signal.SIGTERM, handler)
    rows = learned.read_steps(tmp_path)
    assert sorted(set(zip(rows["method"], rows["seed"], strict=True))) == [
        (method, seed) for method in sorted(learning.METHODS) for seed in range(3)
    ]
    assert len(list(tmp_path.rglob("trained"))) == 9
    (tmp_path / "gpt" / "ce" / "0" / "result.json").unlink()  # is trained twice, which the file refuses
    with pytest.raises(SystemExit, match="of 2 workers failed: run the same command again to resume"):
        learning.main(words)


@pytest.mark.long  # as a user starts them: every process imports torch
def test_workers_are_processes_of_the_same_command(tmp_path):
    command = [sys.executable, "-m", "scripts.learning", "U-Net", "--smoke", "--num-workers", "2", "--out", tmp_path]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=True)
    assert sorted(line for line in run.stdout.splitlines() if "seed" in line) == [
        f"U-Net, {method}, seed 0: 1 epochs" for method in ("CE", "TD(0)", "TD(1)")
    ]
    assert set(learned.read_steps(tmp_path / "smoke")["method"]) == set(learning.METHODS)


def test_the_figure_has_the_mean_over_seeds_and_a_panel_per_network():
    rows = [
        {"network": network, "metric": metric, "method": method, "seed": seed, "step": step, "value": step / 10 + seed}
        for network, metric in (("GPT", "bits per character"), ("ViT", "accuracy"), ("ViT, 64 tokens", "accuracy"))
        for method in ("CE", "TD(0)")
        for seed in range(2)
        for step in (1, 2)
    ]
    fig = learned.metric_per_step(pd.DataFrame(rows))
    titles = [ax.get_title("left").replace("\n", " ") for ax in fig.axes]
    assert titles == ["ViT: accuracy", "GPT: bits per character, lower is better"]
    for ax in fig.axes:
        points = [line.get_xydata().tolist() for line in ax.lines]
        assert points == [[[1, pytest.approx(0.6)], [2, pytest.approx(0.7)]]] * 2


def test_the_section_has_every_number_of_the_table():
    rows = [("CE", 1, 0.5), ("CE", 2, 0.9), ("TD(0)", 1, 0.75), ("TD(0)", 2, 0.85)]
    df = pd.DataFrame(rows, columns=["method", "step", "value"])
    df = df.assign(network="Highway", metric="accuracy", seed=0, epochs=3, cpu_seconds=120)
    lines = learned.section(df).splitlines()
    assert "| Highway | accuracy | 70.0 % | - | 80.0 % | 90.0 % | - | 85.0 % |" in lines
    assert lines[-4:] == [
        "| step | 1 | 2 |",
        "| --- | ---: | ---: |",
        "| CE | 50.0 % | 90.0 % |",
        "| TD(0) | 75.0 % | 85.0 % |",
    ]
    assert any("one seed; CE 3 epochs in 2.0 min, TD(0) 3 epochs in 2.0 min on one core." in line for line in lines)


def test_masks_are_shown_from_the_image_to_the_true_mask(out, tmp_path, capsys):
    learned.main([str(out / "smoke"), "--docs", str(tmp_path)])
    assert capsys.readouterr().out.startswith(learned.HEADING)
    assert {file.name for file in tmp_path.iterdir()} == {"learning.svg", "masks.png"}
    arrays = dict(np.load(out / "smoke" / "masks.npz"))
    fig = learned.masks_per_step(arrays)
    assert fig.data["caption"].tolist()[:6] == ["image", "step 1", "step 2", "step 3", "step 4", "true mask"]
    assert fig.data["row"].unique().tolist()[:3] == ["CE, image 1", "TD(1), image 1", "TD(0), image 1"]
    shown = np.asarray(fig.axes[5].images[0].get_array())
    background = arrays["masks"][0] == 0
    assert len(np.unique(shown[background], axis=0)) == 1
    assert len(np.unique(shown.reshape(-1, 3), axis=0)) == len(np.unique(arrays["masks"][0]))
