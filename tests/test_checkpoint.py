"""Checkpoints: whole or not there, and whatever is damaged is noticed."""

import errno
import os
import pickle
import shutil

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from cascaded.files import write_whole
from cascaded.training import checkpoint
from cascaded.training.checkpoint import DamagedCheckpoint, DamagedError, load_checkpoint, newest, save
from cascaded.training.runs import MANIFEST, PARTS, checkpoint_places, is_whole, manifest_of
from tests.refused import refused

FILES = (*PARTS, MANIFEST)


def write(run, step, value=1.0):
    model = {"weight": torch.full((3, 2), value), "rows": torch.arange(4)}
    return save(run, step, model, {"weight": torch.full((3, 2), value / 2)}, {"step": step, "loss": 0.1 + 0.2})


def test_what_is_saved_is_found_exactly(tmp_path):
    write(tmp_path, 7)
    found = newest(tmp_path)
    assert torch.equal(found.model["weight"], torch.ones(3, 2))
    assert torch.equal(found.model["rows"], torch.arange(4))
    assert torch.equal(found.optimizer["weight"], torch.full((3, 2), 0.5))
    assert found.position == {"step": 7, "loss": 0.1 + 0.2}


def test_nothing_saved_is_nothing_found_and_channels_last_weights_keep_their_values(tmp_path):
    assert newest(tmp_path) is None
    weight = torch.randn(4, 3, 2, 2).to(memory_format=torch.channels_last)
    save(tmp_path, 1, {"w": weight}, {}, {})
    assert torch.equal(newest(tmp_path).model["w"], weight)


def test_the_last_two_are_kept(tmp_path):
    for step in (1, 5, 9, 10):
        write(tmp_path, step)
    assert [place.name for place in checkpoint_places(tmp_path)] == ["000000009", "000000010"]
    assert sorted(place.name for place in (tmp_path / "checkpoints").iterdir()) == ["000000009", "000000010"]


def test_what_was_never_finished_and_what_went_on_differently_is_cleared_away(tmp_path):
    for step in (3, 8):
        write(tmp_path, step)
    (tmp_path / "checkpoints" / "000000001").mkdir()  # killed while it was written
    write(tmp_path, 5)  # from 3 on again
    assert sorted(place.name for place in (tmp_path / "checkpoints").iterdir()) == ["000000003", "000000005"]


def test_a_run_whose_checkpoints_are_all_damaged_is_not_begun_again_behind_ones_back(tmp_path):
    for step in (1, 2):
        (write(tmp_path, step) / "position.json").write_text("{}")
    with pytest.raises(DamagedError, match=r"no checkpoint in .* is intact \(2 damaged\)"):
        newest(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    run = tmp_path_factory.mktemp("run")
    write(run, 1, 1.0)
    write(run, 2, 2.0)
    return run


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(FILES), place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), data=st.data())
def test_every_bit_flip_and_truncation_is_noticed_and_the_one_before_used(whole, tmp_path, name, place, bit, data):
    run = tmp_path / "run"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(whole, run)
    file = run / "checkpoints" / "000000002" / name
    content = bytearray(file.read_bytes())
    where = int(place * len(content))
    if data.draw(st.booleans(), label="flip"):
        content[where] ^= 1 << bit
    else:
        del content[where:]
    file.write_bytes(content)
    with pytest.raises(DamagedError):
        load_checkpoint(file.parent)
    assert not is_whole(file.parent)
    with pytest.warns(DamagedCheckpoint, match="000000002 .*; checkpoint 000000001 is used instead"):
        found = newest(run)
    assert torch.equal(found.model["weight"], torch.ones(3, 2))


@pytest.mark.parametrize("name", FILES)
def test_a_missing_part_is_noticed(whole, tmp_path, name):
    shutil.copytree(whole, tmp_path / "run")
    place = tmp_path / "run" / "checkpoints" / "000000002"
    (place / name).unlink()
    with pytest.raises(DamagedError, match="has no readable"):
        load_checkpoint(place)


class Malice:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("signed", [False, True])
def test_a_malicious_pickle_is_refused_and_never_run(whole, tmp_path, name, signed):
    shutil.copytree(whole, tmp_path / "run")
    place, marker = tmp_path / "run" / "checkpoints" / "000000002", tmp_path / "marker"
    (place / name).write_bytes(pickle.dumps(Malice(marker)))
    if signed and name != MANIFEST:  # by someone who knows how checkpoints are signed
        digests = {each: checkpoint.sha256(place / each) for each in PARTS}
        (place / MANIFEST).write_bytes(manifest_of(digests))
    with pytest.raises(DamagedError):
        load_checkpoint(place)
    assert not marker.exists()
    os.mkdir(marker)  # the pickle would have worked
    with pytest.raises(FileExistsError):
        pickle.loads(pickle.dumps(Malice(marker)))


@pytest.mark.parametrize("part", range(4))
def test_a_full_disk_leaves_the_last_good_checkpoint(tmp_path, monkeypatch, part):
    write(tmp_path, 1)
    writes = iter(range(10))

    def full(path):
        if next(writes) == 2 * part:  # a file is brought to the disk, then its folder
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("cascaded.files.flush", full)
    refused("No space left on device", write, tmp_path, 2)
    monkeypatch.undo()
    assert newest(tmp_path).position["step"] == 1
    write(tmp_path, 2)  # and once there is room, on it goes
    assert newest(tmp_path).position["step"] == 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full to stand for a full disk")
def test_safetensors_own_error_on_a_full_disk_is_told_in_a_sentence(tmp_path):
    content = {"a": torch.zeros(1000)}
    refused("cannot be written", write_whole, tmp_path / "a", lambda _: save_file(content, "/dev/full"))
