"""Runs that begin with the weights of others."""

import shutil
from dataclasses import replace

import pytest
import torch

from cascaded import load_run
from cascaded.errors import InputError
from cascaded.training.loop import Where, train
from cascaded.training.options import Options
from tests.tiny_runs import tiny_run as tiny_run
from tests.tiny_runs import tiny_spec

CPU = torch.device("cpu")


def begun(run, folder, **options):
    """A run that begins with the weights of another, and hardly moves away from them."""
    spec = replace(tiny_spec(rate=1e-6, **options), start=load_run(run).weights)
    train(spec, folder, Where(CPU, start=run), resume=True)
    return folder


def test_a_run_begins_with_the_weights_it_is_given_and_says_which(tiny_run, tmp_path):
    first = tiny_run()
    after, before = load_run(begun(first, tmp_path / "0")), load_run(first)
    for (name, mine), theirs in zip(after.net.named_parameters(), before.net.parameters(), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-3), name
    assert after.spec.start == before.weights
    assert before.spec.start is None
    drawn = load_run(tiny_run(rate=1e-6))
    assert not torch.allclose(next(drawn.net.parameters()), next(before.net.parameters()), atol=1e-3)


def test_once_begun_a_run_does_not_need_what_it_began_with(tiny_run, tmp_path):
    first = shutil.copytree(tiny_run(), tmp_path / "first" / "0")
    begun(first, tmp_path / "0")
    spec = load_run(tmp_path / "0").spec
    shutil.rmtree(first)
    assert train(spec, tmp_path / "0", Where(CPU), resume=True)["epoch"] == 1


def test_options_name_a_run_and_the_spec_its_weights(tiny_run):
    run = tiny_run()
    assert Options(start=run).spec("cascaded-td", None, 0).start == load_run(run).weights
    assert Options(start=run).arguments() == ["--start", str(run)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": 8}, "is another network .*: give one of the same network and classes"),
        ({"start": "0" * 64}, "has weights [0-9a-f]{12}, the run begins with 000000000000: bring those back"),
        ({"where": None}, "begins with weights [0-9a-f]{12}, and no --start is given: say which run has them"),
    ],
)
def test_other_weights_are_refused(tiny_run, tmp_path, change, message):
    run = tiny_run()
    spec = replace(tiny_spec(**{k: v for k, v in change.items() if k == "width"}), start=load_run(run).weights)
    spec = replace(spec, start=change.get("start", spec.start))
    with pytest.raises(InputError, match=message):
        train(spec, tmp_path / "0", Where(CPU, start=None if "where" in change else run))
    assert not (tmp_path / "0").exists()
