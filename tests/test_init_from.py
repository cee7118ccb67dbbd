"""Runs that start from the weights of others, and saved networks."""

import shutil
from dataclasses import replace

import pytest
import torch

import cascaded
from cascaded import load_run
from cascaded.training import checkpoint
from cascaded.training.config import ExecutionConfig
from cascaded.training.loop import train
from cascaded.training.rounded import write_rounded
from cascaded.training.runs import resolve_init, weights_digest
from tests.refused import refused
from tests.tiny_runs import tiny_config
from tests.tiny_runs import tiny_run as tiny_run

CPU = ExecutionConfig("cpu")


def begun(run, folder, **options):
    """A run that starts from the weights of another, and hardly moves away from them."""
    config, start = resolve_init(tiny_config(lr=1e-6, init_from=str(run), **options))
    train(config, folder, CPU, init_from=start, resume=True)
    return folder


@pytest.mark.parametrize("kind", ["run", "saved network", "rounded weights"])
def test_a_run_starts_from_the_weights_it_is_given_and_stores_their_digest(tiny_run, tmp_path, kind):
    first = tiny_run() if kind == "run" else tmp_path / "saved"
    if kind == "saved network":
        cascaded.load(tiny_run()).save_pretrained(first)
    elif kind == "rounded weights":
        first.mkdir()
        shutil.copy(tiny_run() / "config.json", first)
        assert write_rounded(tiny_run(), first)
    after, before = load_run(begun(first, tmp_path / "0")), load_run(first)
    for (name, mine), theirs in zip(after.net.named_parameters(), before.net.parameters(), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-3), name
    assert after.config.init_from == before.weights == weights_digest(first)
    assert before.config.init_from is None
    drawn = load_run(tiny_run(lr=1e-6))
    assert not torch.allclose(next(drawn.net.parameters()), next(before.net.parameters()), atol=1e-3)


def test_cross_entropy_starts_with_the_statistics_of_the_last_step_only(tiny_run, tmp_path):
    after = begun(tiny_run(), tmp_path / "0", method="cascaded-ce")
    rows = {len(each) for name, each in checkpoint.newest(after).model.items() if "running" in name}
    assert rows == {1}


def test_once_started_a_run_does_not_need_what_it_started_from(tiny_run, tmp_path):
    first = shutil.copytree(tiny_run(), tmp_path / "first" / "0")
    begun(first, tmp_path / "0")
    config = load_run(tmp_path / "0").config
    shutil.rmtree(first)
    assert resolve_init(config) == (config, None)
    assert train(config, tmp_path / "0", CPU, resume=True)["epoch"] == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": 8}, "is another network .*: give one of the same architecture and classes"),
        ({"init_from": "0" * 64}, "has weights [0-9a-f]{12}, the run starts from 000000000000: bring those back"),
        ({"run": None}, "starts from weights [0-9a-f]{12}, and no --init-from is given: give the run that has them"),
    ],
)
def test_other_weights_are_refused(tiny_run, tmp_path, change, message):
    run = tiny_run()
    fields = {name: value for name, value in change.items() if name != "run"}
    config = replace(tiny_config(init_from=weights_digest(run)), **fields)
    refused(message, train, config, tmp_path / "0", CPU, init_from=change.get("run", run))
    assert not (tmp_path / "0").exists()
