"""What is recorded is what the network says: whole, once, in little memory, and killed as often as you like."""

import os
import random
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from cascaded.cascade.named import make_kernel
from cascaded.cascade.network import PIECE
from cascaded.cli import main as cli
from cascaded.data.noise import make_noise
from cascaded.data.sources import load
from cascaded.errors import InputError
from cascaded.traces import record as recording
from cascaded.traces.protocols import Persistent, Still, Transient
from cascaded.traces.record import record
from cascaded.traces.shown import shown_images
from cascaded.traces.store import load_trace
from cascaded.training import checkpoint
from cascaded.training.load import load_run
from cascaded.training.runs import LockedError, locked
from cascaded.training.seeds import generator_at
from tests.forked import PATIENCE, code_of, forked, is_going, kill_at_call, wait_until
from tests.tiny_runs import tiny_run  # noqa: F401

OSD, EWS = make_kernel("osd"), make_kernel("ews:0.9")
SHORT = Still(EWS, "cascaded", 3)


@pytest.fixture
def run(tiny_run, tmp_path):  # noqa: F811
    """A run of the test's own to record into."""
    return load_run(shutil.copytree(tiny_run(), tmp_path / "0"))


@pytest.fixture
def small_chunks(monkeypatch):
    """Fifty images of 8 x 8 at a time."""
    monkeypatch.setattr(recording, "PIXELS", 50 * 64)


def some(items):
    return load("digits", "test").select(torch.arange(items))


def recorded(run, images, view, **options):
    """The traces of all takes."""
    return [load_trace(file) for file in record(run, images, view, **options)]


# --- what is stored


@pytest.mark.parametrize(
    ("model", "view"),
    [
        ("cascaded-td", Still(OSD, "cascaded", 9)),
        ("cascaded-td", Still(EWS, "cascaded", 70)),
        ("cascaded-td-multihead", Still(EWS, "cascaded", 5)),
        ("serial-ce", Still(OSD, "serial", 9)),
        ("shallow-deep", Still(OSD, "serial", 4)),
    ],
)
@torch.no_grad()
def test_what_is_stored_is_what_the_network_says(tiny_run, tmp_path, model, view):  # noqa: F811
    run, images = load_run(shutil.copytree(tiny_run(model), tmp_path / "0")), some(40)
    (trace,) = recorded(run, images, view, embeddings=True)
    expected = run.net(run.normalised(images.images), kernel=view.kernel, steps=view.steps, schedule=view.schedule)
    assert np.array_equal(trace.logits, expected.numpy())
    assert np.array_equal(trace.labels, images.labels.numpy())
    assert np.array_equal(trace.indices, images.indices.numpy())
    head = run.net.readout.at(view.steps)
    assert np.array_equal(trace.head, head.weight.numpy())
    np.testing.assert_allclose(trace.embeddings @ trace.head.T + head.bias.numpy(), trace.logits[-1], 1e-5, 1e-5)


def test_half_precision_is_half_the_size_and_nearly_the_same(run):
    images, view = some(200), Still(EWS, "cascaded", 30)
    (file,) = record(run, images, view, embeddings=True)
    size, full = file.stat().st_size, load_trace(file)
    logits, embeddings = np.array(full.logits), np.array(full.embeddings)
    (half,) = recorded(run, images, view, embeddings=True, half=True, again=True)
    assert half.logits.dtype == half.embeddings.dtype == np.float16
    assert file.stat().st_size < 0.6 * size
    np.testing.assert_allclose(half.logits, logits, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(half.embeddings, embeddings, rtol=1e-3, atol=1e-3)


def test_items_are_shown_in_the_order_they_are_asked_for(run, small_chunks):
    images, items = load("digits", "test"), torch.randperm(359, generator=torch.Generator().manual_seed(0))[:120]
    (trace,) = recorded(run, images, SHORT, items=items, part="-some")
    assert np.array_equal(trace.indices, images.indices[items].numpy())
    assert np.array_equal(trace.labels, images.labels[items].numpy())
    (whole,) = recorded(run, images, SHORT)
    np.testing.assert_allclose(trace.logits, whole.logits[:, items], rtol=1e-5, atol=1e-5)


def test_validation_holds_the_rows_of_the_source_that_were_not_trained_on(run):
    images, items = shown_images(run, None, "validation", limit=30)
    (trace,) = recorded(run, images, SHORT, items=items)
    source = load("digits", "train")
    assert np.array_equal(trace.indices, source.indices[items].numpy())
    assert np.bincount(trace.labels).tolist() == [3] * 10
    assert (trace.origin.split, trace.origin.images) == ("validation", source.fingerprint())


@pytest.mark.parametrize(("schedule", "model"), [("cascaded", "cascaded-td"), ("serial", "serial-ce")])
@torch.no_grad()
def test_noise_is_drawn_for_every_trial_and_image_and_stored_trial_by_trial(
    tiny_run,  # noqa: F811
    tmp_path,
    monkeypatch,
    schedule,
    model,
):
    run, images = load_run(shutil.copytree(tiny_run(model), tmp_path / "0")), some(7)
    view = Transient(OSD, schedule, "occlusion", 2, 11, lengths=(1, 2), before=3, after=2)
    monkeypatch.setattr(recording, "PIXELS", 4 * 7 * 64)  # four images of seven frames each
    traces = recorded(run, images, view)
    for frames, trace in zip((1, 2), traces, strict=True):
        for trial in (0, 1):
            for place, row in enumerate(images.indices.tolist()):
                pixels = images.images[place : place + 1]
                drawn = make_noise("occlusion").film(pixels / 255, 6, generator_at(11, "noise", trial, row))
                clean, noisy = run.normalised(pixels), run.normalised(drawn)
                film = torch.stack([*[clean] * 3, *noisy[:frames], *[clean] * 2])
                serially = schedule == "serial"
                said = torch.stack([run.net.serial()(frame) for frame in film]) if serially else run.net(film)
                stored = trace.trial(trial).logits[:, place : place + 1]
                np.testing.assert_allclose(stored, said.numpy(), rtol=1e-5, atol=1e-5)
        assert trace.origin.noise.frames == frames
        assert np.array_equal(trace.trial(0).indices, trace.trial(1).indices)


def test_a_recording_that_was_interrupted_does_not_go_on_in_other_portions(run, monkeypatch):
    images, view = some(30), Still(EWS, "cascaded", 3)
    shown = Still.show

    def interrupted(self, run, pixels, generators):
        if len(pixels) == 7 and torch.equal(pixels, images.images[14:21]):
            raise KeyboardInterrupt
        return shown(self, run, pixels, generators)

    monkeypatch.setattr(recording, "PIXELS", 7 * 64)
    monkeypatch.setattr(recording, "KEEP_EVERY", 0)
    monkeypatch.setattr(Still, "show", interrupted)
    with pytest.raises(KeyboardInterrupt):
        record(run, images, view)
    monkeypatch.setattr(recording, "PIXELS", 10 * 64)
    (trace,) = recorded(run, images, view)
    assert np.array_equal(trace.indices, images.indices.numpy())
    expected = run.net(run.normalised(images.images), kernel=EWS, steps=3).detach().numpy()
    np.testing.assert_allclose(trace.logits, expected, rtol=1e-4, atol=1e-5)


def test_what_half_precision_cannot_hold_is_refused(run):
    with torch.no_grad():
        run.net.readout.linear.bias.fill_(1e6)
    with pytest.raises(InputError, match="says numbers beyond half precision: leave out --half"):
        record(run, some(3), SHORT, half=True)


def test_a_take_that_is_refused_leaves_nothing_of_the_others(run):
    images = some(3)
    record(run, images, Transient(OSD, "cascaded", "focus", 1, lengths=(2,), before=1, after=1))
    with pytest.raises(InputError, match="say --again to replace it"):
        record(run, images, Transient(OSD, "cascaded", "focus", 1, seed=5, lengths=(1, 2), before=1, after=1))
    assert not list((run.folder / "traces").glob("*.part*"))


def test_trials_differ_and_the_seed_decides(run):
    images = some(6)
    traces = []
    for seed in (5, 5, 6):
        view = Persistent(OSD, "cascaded", "focus", 2, seed, steps=3)
        (trace,) = recorded(run, images, view, again=True)
        traces.append(np.array(trace.logits))
        assert not np.allclose(trace.trial(0).logits, trace.trial(1).logits)
    assert np.array_equal(traces[0], traces[1])
    assert not np.allclose(traces[0], traces[2])


# --- what it needs


def heard(module):
    """How many images of 8 x 8 go through a module at a time; those that are only counted, for operations, aside."""
    sizes = []

    def listen(_, inputs):
        if inputs[0].device.type != "meta":
            sizes.append(inputs[0].numel() // 64)

    module.register_forward_pre_hook(listen)
    return sizes


@pytest.mark.parametrize(
    ("view", "frames"),
    [(Still(EWS, "cascaded", 70), PIECE), (Persistent(OSD, "cascaded", "focus", 1, steps=6), PIECE)],
    ids=["still", "film"],
)
def test_no_more_than_a_chunk_is_in_the_network_at_a_time(run, small_chunks, view, frames):
    shown, seen = heard(run.net), heard(run.net.stem[0])
    record(run, some(120), view)
    assert max(shown) <= 50
    assert sum(shown) == 120 * view.held
    assert max(seen) <= 50 * frames


# --- once


def stamps(run):
    return {file.name: file.stat().st_mtime_ns for file in (run.folder / "traces").glob("*.safetensors")}


def test_what_is_there_is_left_alone(run, monkeypatch):
    images, told = some(10), []
    files = record(run, images, SHORT)
    before = stamps(run)
    monkeypatch.setattr(Still, "show", None)
    assert record(run, images, SHORT, told=told.append) == dict.fromkeys(files, False)
    assert stamps(run) == before
    assert told == [10]


def test_a_second_process_is_refused(run):
    def hold():
        with locked(run.folder / "traces"):
            (run.folder / "held").touch()
            time.sleep(PATIENCE)

    child = forked(hold)
    try:
        wait_until((run.folder / "held").exists, child)
        with pytest.raises(LockedError, match=r"another process is at work in .*traces: wait for it"):
            record(run, some(3), SHORT)
    finally:
        os.kill(child, signal.SIGKILL)
        code_of(child)
    assert recorded(run, some(3), SHORT)[0].items == 3


def test_a_network_that_has_diverged_is_said_and_leaves_nothing_under_the_name(run):
    run.net.readout.linear.bias.data[0] = float("nan")
    with pytest.raises(InputError, match="says what is not a number: it has diverged, train another"):
        record(run, some(3), SHORT)
    assert stamps(run) == {}


def test_embeddings_of_a_film_are_refused(run):
    with pytest.raises(InputError, match="embeddings are kept of still images, focus-persistent was asked for"):
        record(run, some(3), Persistent(OSD, "cascaded", "focus"), embeddings=True)


# --- killed

STILL = ["--kernel", "ews:0.9", "--steps", "8", "--embeddings", "--limit", "60"]
FILMS = [
    "--noise",
    "occlusion",
    "--protocol",
    "transient",
    "--steps",
    "2",
    "--noisy",
    "1",
    "2",
    "--trials",
    "2",
    "--limit",
    "9",
]


MOMENTS = [  # where a recording may be killed, and how often it gets there
    (recording.Session, "show", 4),
    (Path, "replace", 5),  # the note of how far it is, and the trace itself get their names
    (os, "fsync", 10),  # these files and their folder get to the disk
]


def code_when_killed(folder, words, moment=None):
    """Record in a process of its own that is killed at a moment, if one is given; its exit code."""

    def work():
        if moment is not None:
            owner, name, call, after = moment
            kill_at_call(owner, name, call, after=after)
        cli.run(["record", str(folder), "--device", "cpu", *words])

    def has_ended():
        for file in (folder / "traces").glob("*.safetensors"):
            load_trace(file)  # at any moment: what has its name is whole
        return not is_going(child)

    child = forked(work)
    wait_until(has_ended)
    return code_of(child)


def contents(folder):
    return {file.name: file.read_bytes() for file in (folder / "traces").iterdir() if file.name != ".lock"}


@pytest.mark.parametrize("words", [STILL, FILMS], ids=["still", "films"])
def test_killed_at_drawn_moments_and_started_again_equals_never_killed(tiny_run, tmp_path, monkeypatch, words):  # noqa: F811
    monkeypatch.setattr(recording, "KEEP_EVERY", 0.0)
    monkeypatch.setattr(recording, "PIXELS", 64 * 10)
    folder = shutil.copytree(tiny_run(), tmp_path / "run" / "0")
    assert code_when_killed(folder, words) == 0
    expected, draws = contents(folder), random.Random(0)
    assert {os.path.splitext(name)[1] for name in expected} == {".safetensors"}
    shutil.rmtree(folder / "traces")
    kills = midway = 0
    for _ in range(20):
        owner, name, calls = draws.choice(MOMENTS)
        code = code_when_killed(folder, words, (owner, name, draws.randint(1, calls), draws.random() < 0.5))
        if code == 0:
            assert contents(folder) == expected
            if kills >= 2 and midway:
                return
            shutil.rmtree(folder / "traces")
        else:
            assert code == -signal.SIGKILL
            kills += 1
            midway += any((folder / "traces").glob("*.part.json"))
    pytest.fail(f"{kills} kills, {midway} of them midway, in 20 attempts")


@pytest.fixture
def cut_short(run, small_chunks, monkeypatch):
    """A recording of 120 images that ended after 100 of them."""
    images, show = some(120), recording.Session.show

    def dies(self, recordings, chosen, start, generator):
        if start == 100:
            raise RuntimeError("power cut")
        show(self, recordings, chosen, start, generator)

    monkeypatch.setattr(recording, "KEEP_EVERY", 0.0)
    with monkeypatch.context() as patched:
        patched.setattr(recording.Session, "show", dies)
        with pytest.raises(RuntimeError, match="power cut"):
            record(run, images, SHORT)
    assert stamps(run) == {}
    return images


def test_what_was_kept_is_not_shown_again(run, cut_short):
    shown, told = heard(run.net), []
    (trace,) = recorded(run, cut_short, SHORT, told=told.append)
    assert (shown, told, trace.items) == ([20], [100, 20], 120)


def test_what_other_weights_left_behind_is_not_gone_on_with(run, cut_short):
    now = checkpoint.newest(run.folder)
    model = {name: each + 1 if "linear" in name else each for name, each in now.model.items()}
    checkpoint.save(run.folder, 99, model, now.optimiser, {**now.position, "step": 99})
    other = load_run(run.folder)
    (trace,) = recorded(other, cut_short, SHORT)
    with torch.no_grad():
        expected = torch.cat(
            [other.net(other.normalised(part), kernel=EWS, steps=3) for part in cut_short.images.split(50)], dim=1
        )
    assert np.array_equal(trace.logits, expected.numpy())


def test_a_note_that_has_outlived_its_recording_goes(run):
    (file,) = record(run, some(20), SHORT)
    note = file.with_suffix(".part.json")
    note.write_text('{"header": "", "done": 20}')  # killed between the last two things that a recording does
    assert record(run, some(20), SHORT) == {file: False}
    assert not note.exists()
