"""Traces on disk: read by others as well, whole or not there, never unpickled."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from cascaded.errors import InputError
from cascaded.traces.config import Origin
from cascaded.traces.store import Form, Recording, load_trace, read_header, save_trace
from cascaded.traces.trace import Trace
from tests.pictures import evil_pickle

rng = np.random.default_rng(0)
ORIGIN = Origin(run='runs/"odd" <name>/0', data="cifar10", split="test")


def made(items=7, steps=5, classes=3, kind=np.float32, embeddings=True):
    more = {}
    if embeddings:
        more = {"embeddings": rng.normal(size=(items, 4)).astype(kind), "head": rng.normal(size=(classes, 4))}
        more["head"] = more["head"].astype(np.float32)
    logits = rng.normal(size=(steps, items, classes)).astype(kind)
    return Trace(logits, np.arange(items) % classes, np.arange(items)[::-1].copy(), ORIGIN, **more)


def arrays(trace):
    return {name: getattr(trace, name) for name in ("logits", "labels", "indices", "embeddings", "head")}


@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize("embeddings", [True, False])
def test_a_trace_comes_back_as_it_was_and_is_mapped(tmp_path, kind, embeddings):
    trace = made(kind=kind, embeddings=embeddings)
    save_trace(trace, tmp_path / "t.safetensors")
    back = load_trace(tmp_path / "t.safetensors")
    assert back.origin == ORIGIN
    for name, values in arrays(trace).items():
        assert (getattr(back, name) is None) if values is None else np.array_equal(getattr(back, name), values)
    assert back.logits.dtype == kind
    assert isinstance(back.logits, np.memmap)
    assert os.listdir(tmp_path) == ["t.safetensors"]


def test_the_library_of_the_format_reads_the_same(tmp_path):
    trace = made()
    save_trace(trace, tmp_path / "t.safetensors")
    theirs = load_file(tmp_path / "t.safetensors")
    assert all(np.array_equal(theirs[name], values) for name, values in arrays(trace).items())


def test_double_precision_is_kept_as_single(tmp_path):
    trace = made(kind=np.float64, embeddings=False)
    save_trace(trace, tmp_path / "t.safetensors")
    assert np.array_equal(load_trace(tmp_path / "t.safetensors").logits, trace.logits.astype(np.float32))


def test_a_header_is_read_without_the_values(tmp_path):
    save_trace(made(), tmp_path / "t.safetensors")
    header = read_header(tmp_path / "t.safetensors")
    assert (header.origin, header.steps, header.items, header.embeddings) == (ORIGIN, 5, 7, True)
    assert len(header.digest) == 64


def recording(file, trace, origin=ORIGIN):
    form = Form({name: (values.dtype, values.shape) for name, values in arrays(trace).items()})
    return Recording(file, form, origin)


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
    del first  # killed: what follows was neither written nor told
    second = recording(file, trace)
    assert second.done == (ends[until - 1] if until else 0)
    write(second, trace, second.done, trace.items)
    assert not file.exists()
    second.finish()
    assert np.array_equal(load_trace(file).logits, trace.logits)
    assert os.listdir(file.parent) == [file.name]


def test_what_was_kept_of_another_recording_is_not_gone_on_with(tmp_path):
    trace = made()
    first = recording(tmp_path / "t.safetensors", trace)
    write(first, trace, 0, 4)
    first.keep(4)
    other = recording(tmp_path / "t.safetensors", trace, replace(ORIGIN, weights="other"))
    assert other.done == 0
    assert recording(tmp_path / "t.safetensors", trace).done == 0


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
    with pytest.raises(InputError, match=r"t.safetensors is no trace \(.*\): it is truncated or something else"):
        load_trace(file)


@given(st.floats(0, 1, exclude_max=True), st.integers(0, 7))
def test_a_changed_bit_is_refused(tmp_path_factory, place, bit):
    file = tmp_path_factory.mktemp("store") / "t.safetensors"
    save_trace(made(), file)
    content = bytearray(file.read_bytes())
    header = 8 + int.from_bytes(content[:8], "little")
    content[header + int(place * (len(content) - header))] ^= 1 << bit
    file.write_bytes(content)
    with pytest.raises(InputError, match="is not what was recorded, its digest differs: it is damaged"):
        load_trace(file)


def test_a_pickle_is_refused_and_not_run(tmp_path):
    file, marker = tmp_path / "t.safetensors", tmp_path / "marker"
    file.write_bytes(evil_pickle(marker))
    with pytest.raises(InputError, match="is no trace"):
        load_trace(file)
    assert not marker.exists()


def test_other_files_are_refused(tmp_path):
    file = tmp_path / "t.safetensors"
    with pytest.raises(InputError, match=r"is no trace .*: check the path"):
        load_trace(file)
    save_file({"weight": np.zeros(3)}, file)
    with pytest.raises(InputError, match="is a safetensors file but no trace: give one that cascaded record wrote"):
        load_trace(file)
    about = {"cascaded": json.dumps({"format": 9, "origin": {}}), "sha256": ""}
    save_file({"logits": np.zeros((2, 1, 2), np.float32), "labels": np.zeros(1, np.int64)}, file, about)
    with pytest.raises(InputError, match="is a trace of format 9, this cascaded reads 1: update it"):
        read_header(file)
    save_file({"logits": np.zeros((2, 1, 2), np.int32)}, file, about)
    with pytest.raises(InputError, match="holds I32, a trace holds I64, F32, F16"):
        read_header(file)


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        InputError, match=r"cannot be written \(.*\), it needs 0\.0 MiB: make room, or choose another place"
    ):
        save_trace(made(), tmp_path / "file" / "t.safetensors")
