"""Recordings contain the outputs of the network: complete, once, in little memory, and resumed after any kill."""

import os
import random
import shlex
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from cascaded.cascade.named import make_kernel
from cascaded.cascade.network import PIECE
from cascaded.cli import main as cli
from cascaded.data.images import Images
from cascaded.data.noise import make_noise
from cascaded.data.sources import load
from cascaded.traces import record as recording
from cascaded.traces.config import RecordingConfig
from cascaded.traces.protocols import Protocol
from cascaded.traces.record import coarse_of, record
from cascaded.traces.store import load_trace, read_header
from cascaded.training import checkpoint
from cascaded.training.load import load_run
from cascaded.training.runs import locked
from cascaded.training.seeds import generator_at
from tests.forked import code_of, forked, is_going, kill_at_call, wait_until
from tests.pictures import image_folder
from tests.refused import refused
from tests.tiny_runs import tiny_run  # noqa: F401

EWS = make_kernel("ews:0.9")
SHORT = RecordingConfig(kernel="ews:0.9", steps=3)
HALF = replace(SHORT, dtype="float16")


@pytest.fixture
def own_run(tiny_run, tmp_path):  # noqa: F811
    """`own_run("serial-ce")` is a run of the test's own to record into."""
    return lambda method="cascaded-td": load_run(shutil.copytree(tiny_run(method), tmp_path / "0"))


@pytest.fixture
def run(own_run):
    return own_run()


@pytest.fixture
def small_chunks(monkeypatch):
    """Fifty images of 8 x 8 at a time."""
    monkeypatch.setattr(recording, "PIXELS", 50 * 64)


def some(items):
    return load("digits", "test").select(torch.arange(items))


def recorded(run, images, config, **options):
    """The traces of all variants."""
    return [load_trace(file) for file in record(run, config, images=images, **options)]


def transient(*frames, noise="focus", **options):
    options = {"steps": 1, "trials": 1, **options}
    return RecordingConfig(noise=noise, protocol="transient", noise_frames=frames, **options)


# --- what is stored


@pytest.mark.parametrize(
    ("method", "kernel", "steps"),
    [
        ("cascaded-td", "osd", 9),
        ("cascaded-td", "ews:0.9", 70),
        ("cascaded-td-multihead", "ews:0.9", 5),
        ("serial-ce", "osd", 9),
        ("shallow-deep", "osd", 4),
    ],
)
@torch.no_grad()
def test_stored_logits_are_those_of_the_network(own_run, method, kernel, steps):
    run, images = own_run(method), some(40)
    (trace,) = recorded(run, images, RecordingConfig(kernel=kernel, steps=steps, embeddings=True))
    schedule = "cascaded" if "cascaded" in method else "serial"
    expected = run.net(run.normalized(images.images), kernel=make_kernel(kernel), steps=steps, schedule=schedule)
    assert np.array_equal(trace.logits, expected.numpy())
    assert np.array_equal(trace.labels, images.labels.numpy())
    assert np.array_equal(trace.indices, images.indices.numpy())
    head = run.net.readout.at(steps)
    assert np.array_equal(trace.head, head.weight.numpy())
    np.testing.assert_allclose(trace.embeddings @ trace.head.T + head.bias.numpy(), trace.logits[-1], 1e-5, 1e-5)


def test_items_are_recorded_in_the_given_order(run, small_chunks):
    images, items = load("digits", "test"), torch.randperm(359, generator=torch.Generator().manual_seed(0))[:120]
    (trace,) = recorded(run, images, SHORT, items=items)
    assert np.array_equal(trace.indices, images.indices[items].numpy())
    assert np.array_equal(trace.labels, images.labels[items].numpy())
    (whole,) = recorded(run, replace(images, name="whole"), SHORT)
    np.testing.assert_allclose(trace.logits, whole.logits[:, items], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("method", ["cascaded-td", "serial-ce"])
@torch.no_grad()
def test_noise_is_drawn_for_every_trial_and_image_and_stored_trial_by_trial(own_run, monkeypatch, method):
    run, images = own_run(method), some(7)
    serial = run.net.serial()
    net = run.net if method == "cascaded-td" else lambda frames: torch.stack([serial(frame) for frame in frames])
    monkeypatch.setattr(recording, "PIXELS", 4 * 7 * 64)  # four images of seven frames each
    traces = recorded(run, images, transient(1, 2, noise="occlusion", steps=3, trials=2, seed=11))
    for frames, trace in zip((1, 2), traces, strict=True):
        for trial in (0, 1):
            for place, row in enumerate(images.indices.tolist()):
                clean = run.normalized(images.images[place : place + 1])
                noisy = make_noise("occlusion").film(clean, 6, generator_at(11, "noise", trial, row))
                expected = net(torch.stack([*[clean] * 3, *noisy[:frames], *[clean] * 3]))
                stored = trace.trial(trial).logits[:, place : place + 1]
                np.testing.assert_allclose(stored, expected.numpy(), rtol=1e-5, atol=1e-5)
        assert trace.config.noise_frames == (frames,)
        assert np.array_equal(trace.trial(0).indices, trace.trial(1).indices)


@pytest.mark.parametrize(
    ("bias", "config", "message"),
    [(1e6, HALF, "too large for float16: use --dtype float32"), (float("nan"), SHORT, "are not finite")],
)
def test_outputs_that_cannot_be_stored_are_refused_and_leave_no_trace(run, bias, config, message):
    run.net.readout.linear.bias.data[0] = bias
    refused(message, record, run, config, images=some(3))
    assert not list(run.folder.glob("traces/*.safetensors"))


def test_a_variant_that_is_refused_leaves_nothing_of_the_others(run):
    record(run, transient(2), images=some(3))
    refused("add --overwrite to replace it", record, run, transient(1, 2, seed=5), images=some(3))
    assert not list(run.folder.glob("traces/*.part*"))


# --- what it needs


def batch_sizes(module):
    """The number of 8 x 8 images per call of a module, without calls that only count operations."""
    sizes = []

    def note(_, inputs):
        if inputs[0].device.type != "meta":
            sizes.append(inputs[0].numel() // 64)

    module.register_forward_pre_hook(note)
    return sizes


@pytest.mark.parametrize(("noise", "frames"), [(None, 1), ("focus", 6)])
def test_no_more_than_a_chunk_is_in_the_network_at_a_time(run, small_chunks, noise, frames):
    presented, stem = batch_sizes(run.net), batch_sizes(run.net.stem[0])
    record(run, RecordingConfig(steps=6, noise=noise, trials=noise and 1), images=some(120))
    assert max(presented) <= 50
    assert sum(presented) == 120 * frames
    assert max(stem) <= 50 * PIECE


# --- once


def test_finished_recordings_are_skipped(run, monkeypatch):
    (file,) = record(run, SHORT, images=some(10))
    before, calls = file.stat().st_mtime_ns, []
    monkeypatch.setattr(Protocol, "present", None)
    again = record(run, SHORT, images=some(10), on_progress=lambda *done: calls.append(done))
    assert (again, calls, file.stat().st_mtime_ns) == ({file: False}, [(10, 10)], before)


def test_a_second_process_is_refused(run):
    with locked(run.folder / "traces"):
        refused(r"another process is working in .*traces: wait for it", record, run, SHORT, images=some(3))
    assert recorded(run, some(3), SHORT)[0].items == 3


# --- killed

STILL = shlex.split("--kernel ews:0.9 --steps 8 --embeddings --max-images 60")
NOISY = shlex.split("--noise occlusion --protocol transient --steps 2 --noise-frames 1 2 --trials 2 --max-images 9")


MOMENTS = [  # where a recording may be killed, and how often it gets there
    (recording.Session, "present", 4),
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
    return {file.name: file.read_bytes() for file in (folder / "traces").iterdir()}


@pytest.mark.parametrize("words", [STILL, NOISY], ids=["still", "noise"])
def test_killed_at_drawn_moments_and_started_again_equals_never_killed(tiny_run, tmp_path, monkeypatch, words):  # noqa: F811
    monkeypatch.setattr(recording, "SAVE_SECONDS", 0.0)
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
    images, present = some(120), recording.Session.present

    def dies(self, recordings, chosen, start, trial):
        if start == 100:
            raise RuntimeError("power cut")
        present(self, recordings, chosen, start, trial)

    monkeypatch.setattr(recording, "SAVE_SECONDS", 0.0)
    with monkeypatch.context() as patched:
        patched.setattr(recording.Session, "present", dies)
        with pytest.raises(RuntimeError, match="power cut"):
            record(run, SHORT, images=images)
    assert not list(run.folder.glob("traces/*.safetensors"))
    return images


def test_saved_items_are_not_computed_again(run, cut_short):
    sizes, calls = batch_sizes(run.net), []
    (trace,) = recorded(run, cut_short, SHORT, on_progress=lambda *done: calls.append(done))
    assert (sizes, calls, trace.items) == ([20], [(100, 120), (120, 120)], 120)


def logits_of(run, images, chunk):
    with torch.no_grad():
        parts = [run.net(run.normalized(part), kernel=EWS, steps=3) for part in images.images.split(chunk)]
    return torch.cat(parts, dim=1).numpy()


def test_an_interrupted_recording_does_not_resume_with_other_chunks(run, cut_short, monkeypatch):
    monkeypatch.setattr(recording, "PIXELS", 40 * 64)
    sizes, (trace,) = batch_sizes(run.net), recorded(run, cut_short, SHORT)
    assert sizes == [40, 40, 40]
    assert np.array_equal(trace.logits, logits_of(run, cut_short, 40))


def test_an_interrupted_recording_of_other_weights_does_not_resume(run, cut_short):
    now = checkpoint.newest(run.folder)
    model = {name: each + 1 if "linear" in name else each for name, each in now.model.items()}
    checkpoint.save(run.folder, 99, model, now.optimizer, {**now.position, "step": 99})
    other = load_run(run.folder)
    (trace,) = recorded(other, cut_short, SHORT)
    assert np.array_equal(trace.logits, logits_of(other, cut_short, 50))


def test_a_note_that_has_outlived_its_recording_is_removed(run):
    (file,) = record(run, SHORT, images=some(20))
    note = file.with_suffix(".part.json")
    note.write_text('{"header": "", "done": 20}')  # killed between the last two actions of a recording
    assert record(run, SHORT, images=some(20)) == {file: False}
    assert not note.exists()


# --- configuration and provenance


def test_a_header_has_the_resolved_config_and_the_provenance(run):
    (file,) = record(run, RecordingConfig(kernel="ews:0.9", steps=6, max_images=20))
    header, net, images = read_header(file), run.net, load("digits", "test")
    config = RecordingConfig("digits", "test", "ews:0.9", 6, "cascaded", max_images=20)
    assert (header.config, file.stem) == (config, "digits-test-ews0.9-6-20images")
    source = header.provenance
    assert (source.run, source.weights, source.images) == (run.folder.as_posix(), run.weights, images.fingerprint())
    assert (source.method, source.lam, source.seed, source.fold) == ("cascaded-td", 0.0, 0, None)
    assert (source.in_distribution, source.classes, source.coarse_of) == (True, images.classes, ())
    assert list(source.updates) == net.cycles("cascaded", kernel=EWS, steps=6)
    assert list(source.operations) == net.operations(8, 8, "cascaded", kernel=EWS, steps=6)
    assert source.made_with["torch"] == torch.__version__
    (file,) = record(run, replace(SHORT, split="validation", max_images=30))
    source = read_header(file).provenance
    assert source.images == load("digits", "train").fingerprint()  # a part of the training images


def test_data_with_other_classes_is_out_of_distribution(run, tmp_path):
    place = image_folder(tmp_path / "other", [f"test/kind {number}" for number in range(12)], each=1, gray=True)
    (file,) = record(run, replace(SHORT, data=str(place)))
    trace = load_trace(file)
    assert not trace.provenance.in_distribution
    assert trace.labels.tolist() == list(range(12))  # two more than the network has
    assert (trace.provenance.classes, trace.classes) == (run.inputs.classes, 10)
    assert file.name.startswith("other-")


def two_levels(labels, coarse, classes=("ant", "bee", "cat")):
    pixels, rows = torch.zeros(len(labels), 1, 8, 8, dtype=torch.uint8), torch.arange(len(labels))
    coarse = None if coarse is None else torch.tensor(coarse)
    return Images("made", "test", pixels, torch.tensor(labels), classes, rows, coarse, ("a", "b"))


def test_every_class_has_one_coarse_class_or_there_are_none():
    assert coarse_of(two_levels([2, 0, 1, 2], [1, 0, 0, 1])) == (0, 0, 1)
    # a class in two groups; a class without images; one level
    for labels, coarse in (([2, 0, 1, 2], [1, 0, 0, 0]), ([0, 1, 1], [0, 1, 1]), ([2, 0, 1], None)):
        assert coarse_of(two_levels(labels, coarse)) == ()


def test_coarse_classes_are_stored_for_the_network_s_own_classes(run):
    names = run.inputs.classes
    images = two_levels([*range(10)], [0, 1] * 5, names)
    other = replace(images, name="other", classes=names[::-1])
    sources = [recorded(run, each, SHORT)[0].provenance for each in (images, other)]
    assert [(each.coarse_of, each.coarse_classes) for each in sources] == [((0, 1) * 5, ("a", "b")), ((), ())]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda run, images: (replace(run, weights="another"), images, None), "weights {weights:.12}..., not an"),
        (lambda run, images: (run, replace(images, images=images.images + 1), None), "images {images:.12}..."),
        (lambda run, images: (run, images, torch.arange(9, -1, -1)), "items"),
        (lambda run, images: (run, images, torch.arange(9)), "items"),
    ],
    ids=["weights", "images", "order", "count"],
)
def test_a_different_recording_of_the_same_name_is_refused_unless_overwritten(run, change, message):
    (file,) = record(run, SHORT, images=some(10))
    before, (other, images, items) = file.read_bytes(), change(run, some(10))
    message = message.format(weights=run.weights, images=some(10).fingerprint())
    message = f"{file} was recorded with {message}.*: add --overwrite to replace it"
    refused(message, record, other, SHORT, images=images, items=items)
    assert file.read_bytes() == before
    record(other, SHORT, images=images, items=items, overwrite=True)
    assert file.read_bytes() != before
    assert record(other, SHORT, images=images, items=items) == {file: False}


@pytest.mark.parametrize(
    ("before", "now", "message"),
    [
        (transient(1), transient(1, seed=1), "seed 0, not 1"),
        (transient(1), transient(1, trials=2), "trials 1, not 2"),
        (transient(1), transient(1, steps=3), "steps 1, not 3"),
        (HALF, SHORT, "dtype float16, not float32"),
    ],
)
def test_another_config_of_the_same_name_is_refused(run, before, now, message):
    record(run, before, images=some(3))
    refused(f"was recorded with {message}: add --overwrite", record, run, now, images=some(3))


def test_a_recording_that_only_lacks_embeddings_is_recorded_again(run):
    images, more = some(10), replace(SHORT, embeddings=True)
    (file,) = record(run, SHORT, images=images)
    logits = np.array(load_trace(file).logits)
    assert record(run, more, images=images) == {file: True}
    trace = load_trace(file)
    assert trace.embeddings is not None
    np.testing.assert_array_equal(trace.logits, logits)
    for enough in (SHORT, more, HALF):  # full precision is enough for half precision
        assert record(run, enough, images=images) == {file: False}


def test_half_precision_is_half_the_size_and_nearly_the_same(run):
    images, config = some(200), RecordingConfig(kernel="ews:0.9", steps=30, embeddings=True)
    (file,) = record(run, config, images=images)
    size, full = file.stat().st_size, load_trace(file)
    before = {name: np.array(getattr(full, name)) for name in ("logits", "embeddings")}
    (half,) = recorded(run, images, replace(config, dtype="float16"), overwrite=True)
    assert file.stat().st_size < 0.6 * size
    for name, values in before.items():
        assert getattr(half, name).dtype == np.float16
        np.testing.assert_allclose(getattr(half, name), values, rtol=1e-3, atol=1e-3)
