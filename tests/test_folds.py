"""Cross-validation, `cascaded sweep --folds`: every training image is recorded by a network that has not seen it."""

import os
import shlex
import signal
import sys

import numpy as np
import pytest
import torch

from cascaded.cli import main as cli
from cascaded.data.sources import load
from cascaded.shell import program
from cascaded.traces.store import load_trace
from cascaded.traces.trace import join
from cascaded.training.data import load_batches
from cascaded.training.distributed import Distributed
from cascaded.training.load import load_run
from cascaded.training.runs import is_done, is_locked, locked
from tests.forked import code_of, forked, wait_until
from tests.queues import fork

TINY = "--max-images 64 --epochs 1 --width 2 --batch-size 32 --device cpu --threads 1"
WORDS = shlex.split(f"sweep {TINY} --folds 2 --num-workers 1 --steps 2 --out runs")


def cascaded(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["cascaded", *words])
    cli.main()


def kept(place):
    """When every file that matters was last written."""
    names = ("metrics.jsonl", "manifest.json", "*.safetensors")
    return {file: file.stat().st_mtime_ns for name in names for file in place.rglob(name)}


def test_killed_between_folds_it_goes_on_and_every_image_is_recorded_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    fork(monkeypatch)
    folders = [tmp_path / "runs" / "cascaded-td" / f"fold{number}of2" / "0" for number in (1, 2)]
    child = forked(lambda: cascaded(monkeypatch, *WORDS))
    wait_until(lambda: is_done(folders[0]), child)
    os.kill(child, signal.SIGKILL)
    assert code_of(child) == -signal.SIGKILL
    wait_until(lambda: not any(map(is_locked, folders)))  # a run whose sweep is gone finishes its step
    assert not list(tmp_path.rglob("traces/*.safetensors"))
    before = kept(folders[0])

    cascaded(monkeypatch, *WORDS)
    after = kept(tmp_path)
    assert all(after[file] == stamp for file, stamp in before.items())  # the first fold was not trained again
    files = [folder / "traces" / "digits-validation-ews0.9-2.safetensors" for folder in folders]
    output = capsys.readouterr().out
    assert all(f"wrote {os.path.relpath(file)}" in output for file in files)
    assert output.endswith(f"next: {program()} analyze runs\n")
    assert_each_judged_by_a_stranger(folders, [load_trace(file) for file in files])

    cascaded(monkeypatch, *WORDS)
    assert kept(tmp_path) == after

    # a fold that another process is still training is not recorded as it is
    (folders[1] / "metrics.jsonl").write_text("")
    with locked(folders[1]), pytest.raises(SystemExit) as ended:
        cascaded(monkeypatch, *WORDS)
    assert ended.value.code == 2
    output = "1 of 2 folds are not trained to the end, the first in runs/cascaded-td/fold2of2/0, another process is"
    assert output in capsys.readouterr().err


def assert_each_judged_by_a_stranger(folders, traces):
    source = load("digits", "train")
    for folder, trace in zip(folders, traces, strict=True):
        run = load_run(folder)
        feed = load_batches(run.config, Distributed(), torch.device("cpu"))
        assert trace.provenance.weights == run.weights
        assert trace.provenance.fold == run.config.fold
        assert trace.config.split == "validation"
        assert trace.embeddings is not None
        assert not set(trace.indices.tolist()) & set(source.indices[feed.train].tolist())
    whole = join(traces)
    assert np.array_equal(whole.indices, source.indices.numpy())
    assert np.array_equal(whole.labels, source.labels.numpy())
