"""Traces on disk: complete or absent, checked when read, never unpickled; and which of them belong to a run."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from cascaded.traces.config import Provenance, RecordingConfig
from cascaded.traces.store import find_traces, group_folds, load_trace, read_header, save_trace, scan_traces
from cascaded.traces.trace import Trace
from cascaded.traces.writer import Recording
from cascaded.training.checkpoint import save
from cascaded.training.runs import weights_digest
from tests.made_traces import made_run, made_trace
from tests.pictures import evil_pickle
from tests.refused import refused

rng = np.random.default_rng(0)
CONFIG = RecordingConfig(data="cifar10", split="test", kernel="ews:0.9", steps=5, embeddings=True)
SOURCE = Provenance(run='runs/"odd" <name>/0', lam=(1.0, 0.0), fold=(2, 10), classes=("ant", "bee", "cat"))


def made(items=7, steps=5, classes=3, kind=np.float32, embeddings=True):
    more = {}
    if embeddings:
        more = {"embeddings": rng.normal(size=(items, 4)).astype(kind), "head": rng.normal(size=(classes, 4))}
        more["head"] = more["head"].astype(np.float32)
    logits = rng.normal(size=(steps, items, classes)).astype(kind)
    return Trace(logits, np.arange(items) % classes, np.arange(items)[::-1].copy(), CONFIG, SOURCE, **more)


def arrays(trace):
    return {name: getattr(trace, name) for name in ("logits", "labels", "indices", "embeddings", "head")}


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.float64])
@pytest.mark.parametrize("embeddings", [True, False])
def test_a_trace_comes_back_as_it_was_and_is_mapped(tmp_path, kind, embeddings):
    trace, file = made(kind=kind, embeddings=embeddings), tmp_path / "t.safetensors"
    save_trace(trace, file)
    back, header, theirs = load_trace(file), read_header(file), load_file(file)
    stored = np.dtype(np.float32 if kind == np.float64 else kind)  # double precision is stored as single
    config = replace(CONFIG, embeddings=embeddings, dtype=stored.name)
    assert (back.config, back.provenance) == (header.config, header.provenance) == (config, SOURCE)
    assert (header.steps, header.items, len(header.digest)) == (5, 7, 64)
    for name, values in arrays(trace).items():
        if values is None:
            assert getattr(back, name) is None
            continue
        values = values.astype(np.float32) if values.dtype == np.float64 else values
        assert np.array_equal(getattr(back, name), values)
        assert np.array_equal(theirs[name], values)  # as the library of the format reads it
    assert back.logits.dtype == stored
    assert isinstance(back.logits, np.memmap)
    assert os.listdir(tmp_path) == ["t.safetensors"]


def recording(file, trace, source=SOURCE):
    form = {name: (values.dtype, values.shape) for name, values in arrays(trace).items()}
    return Recording(file, form, CONFIG, source)


def write(to, trace, start, end):
    parts = {name: values[start:end] for name, values in arrays(trace).items() if name not in ("logits", "head")}
    to.write(start, logits=trace.logits[:, start:end], head=trace.head, **parts)


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.data())
def test_interrupted_anywhere_a_recording_goes_on_after_what_was_kept(tmp_path_factory, sizes, data):
    file, trace = tmp_path_factory.mktemp("store") / "t.safetensors", made(sum(sizes))
    ends = np.cumsum(sizes).tolist()
    until = data.draw(st.integers(0, len(sizes)))
    first = recording(file, trace)
    for start, end in zip([0, *ends], ends[:until], strict=False):
        write(first, trace, start, end)
        first.keep(end)
    write(first, trace, 0, 0)
    del first  # killed: nothing more was written
    second = recording(file, trace)
    assert second.done == (ends[until - 1] if until else 0)
    write(second, trace, second.done, trace.items)
    assert not file.exists()
    second.finish()
    assert np.array_equal(load_trace(file).logits, trace.logits)
    assert os.listdir(file.parent) == [file.name]


def test_a_name_stands_for_the_old_trace_until_the_new_one_is_whole(tmp_path):
    old, new = made(), made()
    save_trace(old, tmp_path / "t.safetensors")
    now = recording(tmp_path / "t.safetensors", new)
    write(now, new, 0, 7)
    assert np.array_equal(load_trace(tmp_path / "t.safetensors").logits, old.logits)
    now.finish()
    assert np.array_equal(load_trace(tmp_path / "t.safetensors").logits, new.logits)


@given(st.floats(0, 1, exclude_max=True))
def test_a_truncated_file_is_refused(tmp_path_factory, share):
    file = tmp_path_factory.mktemp("store") / "t.safetensors"
    save_trace(made(), file)
    os.truncate(file, int(file.stat().st_size * share))
    refused(r"t.safetensors is no trace \(.*\): it is truncated or something else", load_trace, file)


@given(st.floats(0, 1, exclude_max=True), st.integers(0, 7))
def test_a_changed_bit_is_refused(tmp_path_factory, place, bit):
    file = tmp_path_factory.mktemp("store") / "t.safetensors"
    save_trace(made(), file)
    content = bytearray(file.read_bytes())
    header = 8 + int.from_bytes(content[:8], "little")
    content[header + int(place * (len(content) - header))] ^= 1 << bit
    file.write_bytes(content)
    refused("is not what was recorded, its digest differs: it is damaged", load_trace, file)


def test_a_pickle_is_refused_and_not_run(tmp_path):
    file, marker = tmp_path / "t.safetensors", tmp_path / "marker"
    file.write_bytes(evil_pickle(marker))
    refused("is no trace", load_trace, file)
    assert not marker.exists()


LOGITS = {"logits": np.zeros((2, 1, 2), np.float32), "labels": np.zeros(1, np.int64)}
UNREADABLE = r"the header of .* cannot be read \(.*\): record it again"


@pytest.mark.parametrize(
    ("arrays", "metadata", "message"),
    [
        ({"weight": np.zeros(3)}, None, "is a safetensors file but no trace: give one that cascaded record wrote"),
        (LOGITS, {"format": 1}, "is a trace of format 1, this version reads format 2: record it again"),
        ({"logits": np.zeros((2, 1, 2), np.int32)}, {}, "has values of type I32, a trace has I64, F32, F16"),
        (LOGITS, {"format": 2, "config": {"steps": "nine"}, "provenance": {}}, UNREADABLE),
        (LOGITS, {"format": 2, "config": {"noise_frames": 3}, "provenance": {}}, UNREADABLE),
        (LOGITS, {"format": 2, "config": {"dtype": "int8"}, "provenance": {}}, UNREADABLE),
        (LOGITS, {"format": 2, "config": [], "provenance": {}}, UNREADABLE),
    ],
)
def test_other_files_are_refused(tmp_path, arrays, metadata, message):
    file = tmp_path / "t.safetensors"
    refused(r"is no trace .*: check the path", load_trace, file)
    save_file(arrays, file, None if metadata is None else {"cascaded": json.dumps(metadata), "sha256": ""})
    for read in (read_header, load_trace):
        refused(message, read, file)


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    refused(
        r"cannot be written \(.*\), it needs 0\.0 MiB: make room",
        save_trace,
        made(),
        tmp_path / "file" / "t.safetensors",
    )


# --- the traces of a run


def fold_trace(number, **options):
    return made_trace(number, items=4, indices=np.arange(number - 1, 12, 3), split="validation", **options)


def made_folds(place, *numbers, of=3, trace=fold_trace):
    runs = [place / "cascaded-td" / f"fold{number}of{of}" / "0" for number in numbers]
    for number, run in zip(numbers, runs, strict=True):
        made_run(run, {"t": trace(number), f"only{number}": trace(number)}, fold=(number, of))
    return runs


def test_a_run_has_the_traces_of_its_current_weights(tmp_path):
    run = made_run(tmp_path / "0")
    save(run, 1, {"w": torch.arange(3.0)}, {}, {"step": 1})
    now, trace = weights_digest(run), made_trace()
    made_run(run, {"own": made_trace(weights=now), "old": made_trace(weights="f" * 64)})
    (found,), skipped = scan_traces(run)
    assert (found.name, found.files, found.images) == ("own", (run / "traces" / "own.safetensors",), 40)
    assert np.array_equal(found.load().logits, trace.logits)
    assert f"has weights ffffffffffff, the network has {now[:12]}: record it with --overwrite" in skipped["old"]


def test_other_files_among_the_traces_are_skipped_with_a_reason(tmp_path):
    run, marker = made_run(tmp_path / "0", {"t": made_trace()}), tmp_path / "marker"
    (run / "traces" / "evil.safetensors").write_bytes(evil_pickle(marker))
    assert [found.name for found in find_traces(run)] == ["t"]
    assert "is no trace" in scan_traces(run)[1]["evil"]
    assert not marker.exists()


def test_the_folds_of_a_cross_validation_are_joined(tmp_path):
    runs = made_folds(tmp_path, 1, 2, 3)
    assert group_folds(runs) == [tuple(runs)]
    (found,), skipped = scan_traces(runs)
    assert "only2.safetensors exists for 1 of 3 folds: record the other folds as well" in skipped["only2"]
    whole = found.load()
    assert whole.indices.tolist() == list(range(12))
    assert np.array_equal(whole.logits[:, 1], fold_trace(2).logits[:, 0])
    assert (found.provenance, found.images) == (whole.provenance, 12)


def test_incomplete_cross_validations_are_single_runs(tmp_path):
    runs = [*made_folds(tmp_path, 1, 2), *made_folds(tmp_path, 1, 2, of=2)]
    assert group_folds(runs) == [(runs[0],), (runs[1],), tuple(runs[2:])]


def test_traces_of_the_same_images_are_not_joined(tmp_path):
    runs = made_folds(tmp_path, 1, 2, of=2, trace=made_trace)
    traces, skipped = scan_traces(runs)
    assert traces == []
    assert "has the same images in all folds and cannot be joined: analyze one fold" in skipped["t"]
