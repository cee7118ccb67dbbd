"""Runs by the names that people give them: a folder above, several runs, a damaged checkpoint."""

import pytest
import torch

import cascaded
from cascaded.cli.models import models
from cascaded.cli.predict import predict
from cascaded.errors import InputError
from cascaded.training import checkpoint
from cascaded.training.checkpoint import DamagedCheckpoint
from tests.made_networks import STEP, made, made_run, pixels
from tests.pictures import encoded, picture


@torch.no_grad()
def test_a_folder_with_one_run_below_it_is_that_run(tmp_path):
    net = made()
    made_run(tmp_path / "runs" / "mine" / "0", net)
    for place in ("runs/mine", "runs"):
        assert torch.equal(cascaded.load(tmp_path / place)(pixels()), net(pixels()))


def test_a_folder_with_several_runs_is_refused_with_a_list_of_them(tmp_path):
    for name in ("a/0", "a/1", "b/0"):
        made_run(tmp_path / name, made())
    listed = ", ".join(str(tmp_path / name) for name in ("a/0", "a/1", "b/0"))
    with pytest.raises(InputError) as raised:
        cascaded.load(tmp_path)
    assert str(raised.value) == f"{tmp_path} contains 3 runs: give one of {listed}"
    for number in range(2, 10):
        made_run(tmp_path / "a" / str(number), made())
    with pytest.raises(InputError, match=r"contains 10 runs: .*a/7 and 2 more$"):
        cascaded.load(tmp_path / "a")


@pytest.fixture
def damaged(tmp_path):
    """A run whose newest checkpoint is damaged, and the network of the one before it."""
    net = made(accuracy=(0.5,))
    folder = made_run(tmp_path / "0", net, step=STEP + 1)
    newer = checkpoint.save(folder, STEP + 1, made(seed=1).net.state_dict(), {}, {"step": STEP + 1})
    file = newer / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    return folder, net


@torch.no_grad()
def test_an_older_checkpoint_is_used_with_one_warning_and_without_the_accuracy_of_the_newer(damaged):
    folder, net = damaged
    with pytest.warns(DamagedCheckpoint, match=rf"{STEP + 1:09d} does not fit its manifest") as warned:
        found = cascaded.load(folder)
    assert len(warned) == 1
    assert torch.equal(found(pixels()), net(pixels()))
    assert found.accuracy == ()


def test_the_commands_warn_about_a_damaged_checkpoint_once(damaged, tmp_path, capsys):
    folder, _ = damaged
    (tmp_path / "photo.png").write_bytes(encoded(picture()))
    for command in (
        lambda: predict((tmp_path / "photo.png",), model=str(folder), figure=False),
        lambda: models(str(folder)),
    ):
        with pytest.warns(DamagedCheckpoint) as warned:
            command()
        assert len(warned) == 1
        assert str(folder) in capsys.readouterr().out
