"""The runner: thresholds, deadlines, streams, and one sentence for every bad input."""

import json
import os
import shutil
import subprocess
import sys
from itertools import chain, repeat

import numpy as np
import pytest
import torch

import cascaded
from cascaded.errors import InputError
from cascaded.files import sha256, write_json
from cascaded.runtime import Runner
from cascaded.runtime.early_exit import early_exit
from tests.exports import SHAPE, images, inputs_of, tiny_net

pytest.importorskip("onnx", reason="exporting needs the extra `export`")
pytest.importorskip("onnxruntime", reason="running exported networks needs the extra `export`")

PIXELS = np.random.default_rng(0).integers(0, 256, (6, *SHAPE), dtype=np.uint8)
LAST = 4
"""The step at which the tiny network's output is final."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny exported network."""
    net, place = tiny_net("resnet"), tmp_path_factory.mktemp("runner") / "tiny"
    cascaded.export(net, place, inputs=inputs_of(net))
    return place


@pytest.fixture
def copied(folder, tmp_path):
    """The same, to be damaged."""
    return shutil.copytree(folder, tmp_path / "copy")


def confidences(runner, frames):
    """The highest class probability of each item at every step."""
    state, found = None, []
    for step in range(LAST):
        logits, state = runner.step(None if step else frames, state)
        found.append(torch.from_numpy(logits).softmax(dim=-1).amax(dim=-1).numpy())
    return np.stack(found)


@pytest.mark.parametrize("schedule", ["cascaded", "serial"])
def test_early_exit_is_that_of_the_eager_network(folder, schedule):
    runner, net = Runner(folder, schedule=schedule), tiny_net("resnet")
    frames = images(24)
    with torch.no_grad():
        first = net(frames, schedule=schedule)[0].softmax(dim=-1).amax(dim=-1).sort().values
    threshold = float(first[11:13].mean())
    expected = early_exit(net, frames, threshold, schedule=schedule)
    result = runner.predict(frames.numpy(), threshold, normalized=True)
    assert result.steps.tolist() == expected.steps.tolist()
    assert result.predictions.tolist() == expected.predictions.tolist()
    assert len(set(result.steps.tolist())) > 1
    assert result.seconds.max() <= result.total


def test_items_exit_at_the_first_step_above_the_threshold_and_leave_the_batch(folder, monkeypatch):
    runner, sizes = Runner(folder), []
    found = confidences(runner, PIXELS)
    threshold = float(np.sort(found[:-1].max(axis=0))[2:4].mean())  # three items never reach it before the last step
    run = runner._run
    monkeypatch.setattr(runner, "_run", lambda file, values: sizes.append(len(values["frame"])) or run(file, values))
    steps = runner.predict(PIXELS, threshold).steps
    above = found > threshold
    above[-1] = True
    assert steps.tolist() == (above.argmax(axis=0) + 1).tolist()
    assert sizes == [int((steps >= step).sum()) for step in range(1, LAST + 1)]


def test_without_a_threshold_and_a_deadline_one_full_pass_is_computed(folder):
    runner = Runner(folder)
    result = runner.predict(PIXELS)
    assert result.predictions.tolist() == runner.full_pass(PIXELS).argmax(axis=-1).tolist()
    assert result.steps.tolist() == [LAST] * 6
    assert runner.predict(PIXELS, steps=2).steps.tolist() == [2] * 6


def ticking(*seconds):
    """A clock that is read once at the start, once after every step, and once at the end."""
    times = chain(np.cumsum([0, *seconds]).tolist(), repeat(float(sum(seconds))))
    return lambda: next(times)


@pytest.mark.parametrize(
    ("durations", "deadline", "step"),
    [
        ((0.010, 0.010, 0.010, 0.010), 45, 4),  # all steps fit
        ((0.010, 0.010, 0.010, 0.010), 40, 4),
        ((0.010, 0.010, 0.010, 0.010), 39, 3),  # a fourth step would end at 40 ms
        ((0.010, 0.010, 0.010, 0.010), 5, 1),  # one step is always computed
        ((0.010, 0.030, 0.010, 0.010), 35, 2),  # the second was slower than the first: at most one step late
    ],
)
def test_a_step_is_started_only_if_it_ends_before_the_deadline_at_the_pace_of_the_last_one(
    folder, durations, deadline, step
):
    result = Runner(folder, clock=ticking(*durations)).predict(PIXELS, deadline_ms=deadline)
    assert result.steps.tolist() == [step] * 6
    assert result.seconds == pytest.approx([sum(durations[:step])] * 6)
    runner, state = Runner(folder), None
    for number in range(step):
        logits, state = runner.step(None if number else PIXELS, state)
    assert result.predictions.tolist() == logits.argmax(axis=-1).tolist()


def test_a_prediction_is_at_most_one_step_late_whatever_steps_take(folder):
    numbers = np.random.default_rng(1)
    for _ in range(30):
        durations, deadline = numbers.exponential(0.01, LAST), float(numbers.uniform(1, 60))
        result = Runner(folder, clock=ticking(*durations)).predict(PIXELS[:1], deadline_ms=deadline)
        before = float(result.seconds[0]) - durations[int(result.steps[0]) - 1]
        assert before <= deadline / 1000 or result.steps[0] == 1


def test_with_both_rules_items_exit_by_whichever_comes_first(folder):
    threshold = float(np.median(confidences(Runner(folder), PIXELS)[0]))
    runner = Runner(folder, clock=ticking(0.010, 0.010, 0.010, 0.010))
    steps = runner.predict(PIXELS, threshold, deadline_ms=25).steps.tolist()
    assert sorted(set(steps)) == [1, 2]


def test_a_stream_goes_on_from_a_state(folder):
    runner, generator = Runner(folder), torch.Generator().manual_seed(5)
    frames = [images(2, generator).numpy() for _ in range(5)]
    whole = list(runner.stream(frames, normalized=True))
    *_, (_, state) = runner.stream(frames[:3], normalized=True)
    rest = list(runner.stream(frames[3:], state, normalized=True))
    for (expected, _), (found, _) in zip(whole[3:], rest, strict=True):
        assert np.array_equal(expected, found)
    with torch.no_grad():
        eager = tiny_net("resnet")(torch.from_numpy(np.stack(frames)))
    np.testing.assert_allclose(np.stack([logits for logits, _ in whole]), eager, atol=1e-5)


def test_a_step_leaves_its_state_as_it_was(folder):
    runner = Runner(folder)
    _, state = runner.step(PIXELS)
    before = {name: each.copy() for name, each in state.tensors.items()}
    first, second = runner.step(None, state)[0], runner.step(None, state)[0]
    assert np.array_equal(first, second)
    assert all(np.array_equal(before[name], state.tensors[name]) for name in before)


def test_selected_items_continue_as_they_would_have(folder):
    runner = Runner(folder)
    _, state = runner.step(PIXELS)
    whole, _ = runner.step(None, state)
    for items in (np.array([True, False, True, False, False, True]), np.array([5, 1]), slice(2, 4)):
        some, _ = runner.step(None, state.select(items))
        np.testing.assert_allclose(some, whole[items], atol=1e-5)


def test_a_kernel_that_never_converges_needs_a_number_of_steps(tmp_path):
    net = tiny_net("densenet")
    cascaded.export(net, tmp_path / "out", inputs=inputs_of(net), kernel=cascaded.ExponentialSmoothing(0.5))
    runner = Runner(tmp_path / "out")
    assert runner.predict(PIXELS, 1.0, steps=9).steps.tolist() == [9] * 6
    with pytest.raises(InputError, match=r"ExponentialSmoothing\(alpha=0.5\) converges only in the limit: give steps"):
        runner.predict(PIXELS, 0.9)


def test_neither_the_runner_nor_a_prediction_imports_torch(folder):
    program = """
import sys
import numpy as np
from cascaded.runtime import Runner
assert "onnxruntime" not in sys.modules  # importing is fast
runner = Runner(sys.argv[1])
result = runner.predict(np.zeros((2, *runner.config.inputs.shape), np.uint8), 0.9, 50)
assert result.steps.min() >= 1
others = {"torch", "pandas", "matplotlib", "PIL", "tyro", "jaxtyping", "onnx"} & set(sys.modules)
sys.exit(f"imports {others}" if others else 0)
"""
    ended = subprocess.run([sys.executable, "-c", program, str(folder)], check=False, timeout=300)
    assert ended.returncode == 0


def test_onnx_runtime_writes_no_identifier_and_sends_no_reports(folder, tmp_path):
    """Its telemetry leaves `.ses` in the temporary folder and `deviceid` in the cache of whoever runs it."""
    program = "import sys; from cascaded.runtime import Runner; Runner(sys.argv[1])"
    places = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME"), str(tmp_path))
    given = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    subprocess.run([sys.executable, "-c", program, str(folder)], check=True, timeout=300, env={**given, **places})
    assert list(tmp_path.iterdir()) == []


# --- bad input


BAD_IMAGES = {
    "size": (np.zeros((2, 3, 8, 8), np.uint8), {}, r"images have shape \(2, 3, 8, 8\), .* 3 channels of 9 x 8"),
    "axes": (np.zeros(SHAPE, np.uint8), {}, r"images have shape \(3, 9, 8\), .*: give a batch, images\[None\]$"),
    "last": (
        np.zeros((2, 9, 8, 3), np.uint8),
        {},
        r"have shape \(2, 9, 8, 3\), .*: move the channels before height and",
    ),
    "none": (np.zeros((0, *SHAPE), np.uint8), {}, r"images have shape \(0, 3, 9, 8\), .*: give at least one$"),
    "tensor": (torch.zeros(2, *SHAPE), {}, r"images have type Tensor, .*: give an array, np\.asarray\(images\)$"),
    "integers": (np.zeros((2, *SHAPE), np.int64), {}, r"images are int64: give bytes \(uint8\)"),
    "bytes": (PIXELS, {"normalized": True}, "images are uint8"),
    "range": (np.full((2, *SHAPE), 7.0), {}, "floats from 7 to 7, .* pass normalized=True"),
    "nan": (np.full((2, *SHAPE), np.nan), {}, "floats from nan to nan"),
    "first": (None, {}, "the first step has no images to repeat"),
}


@pytest.mark.parametrize("case", BAD_IMAGES)
def test_bad_images_are_refused_in_one_sentence(folder, case):
    wrong, options, message = BAD_IMAGES[case]
    with pytest.raises(InputError, match=message):
        Runner(folder).step(wrong, **options)


def test_a_state_of_another_network_is_refused(folder, tmp_path):
    net = tiny_net("resnet")
    with torch.no_grad():
        net.readout.linear.bias.add_(1)  # the same shapes
    cascaded.export(net, tmp_path / "other", inputs=inputs_of(net))
    _, state = Runner(tmp_path / "other").step(PIXELS)
    runner = Runner(folder)
    for wrong in (state, Runner(folder, schedule="serial").step(PIXELS)[1], tuple(state)):
        with pytest.raises(InputError, match="state was made by another network or schedule"):
            runner.step(None, wrong)
    _, own = runner.step(PIXELS)
    with pytest.raises(InputError, match="there are 2 images, state has 6 items"):
        runner.step(PIXELS[:2], own)
    for tensors in ({}, {name: each[:2] for name, each in own.tensors.items()}):
        with pytest.raises(InputError, match=r"state does not have the tensors|could not compute a step"):
            runner.step(None, own._replace(tensors=tensors))


def test_rules_outside_their_range_are_refused(folder):
    runner = Runner(folder)
    for options, message in (
        ({"threshold": 1.5}, "threshold is 1.5: give a number from 0 to 1"),
        ({"threshold": float("nan")}, "threshold is nan"),
        ({"deadline_ms": 0}, "deadline_ms is 0: give a positive number"),
        ({"deadline_ms": float("nan")}, "deadline_ms is nan"),
        ({"steps": 0}, "steps is 0: give at least 1"),
    ):
        with pytest.raises(InputError, match=message):
            runner.predict(PIXELS, **options)
    with pytest.raises(InputError, match="there is no schedule of this network 'fast'"):
        Runner(folder, schedule="fast")
    with pytest.raises(InputError, match="threads is 0"):
        Runner(folder, threads=0)
    with pytest.raises(InputError, match="has no file for a new frame at step 2 of the serial schedule"):
        list(Runner(folder, schedule="serial").stream([PIXELS, PIXELS]))


def sealed(folder, **changes):
    """Change a configuration, and let its digests fit the files: a stranger can do that."""
    content = json.loads((folder / "config.json").read_text()) | changes
    content["files"] = {name: sha256(folder / name) for name in content["files"]}
    write_json(folder / "config.json", content)


def test_damaged_and_foreign_files_are_refused(copied, tmp_path):
    file = copied / "step-1.onnx"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    with pytest.raises(InputError, match=r"step-1.onnx is damaged, or does not belong to config.json: export"):
        Runner(copied)
    sealed(copied)
    with pytest.raises(InputError, match=r"step-1.onnx is not an ONNX file of this network"):
        Runner(copied)
    file.write_bytes((copied / "serial.onnx").read_bytes())
    sealed(copied)
    with pytest.raises(InputError, match=r"step-1.onnx has other inputs or outputs than config.json"):
        Runner(copied)
    file.unlink()
    with pytest.raises(InputError, match=r"step-1.onnx cannot be read"):
        Runner(copied)
    file.write_bytes(whole)
    (copied / "weights.bin").write_bytes((copied / "weights.bin").read_bytes()[:100])
    sealed(copied)
    with pytest.raises(InputError, match="is not an ONNX file of this network"):
        Runner(copied)


def test_a_configuration_that_does_not_fit_is_refused(copied, tmp_path):
    good = json.loads((copied / "config.json").read_text())

    def changed(**changes):
        write_json(copied / "config.json", good | changes)
        return Runner(copied)

    for changes, message in (
        ({"format": 7}, "is not that of an exported network"),
        ({"schedule": "fast"}, "is damaged"),
        ({"schedules": {}}, "it has no files of the cascaded schedule"),
        ({"files": {}}, "it has no digest of frame-2.onnx"),
        ({"files": good["files"] | {"../config.json": ""}}, "../config.json is not the name of a file"),
        ({"inputs": good["inputs"] | {"shape": [3, 8, 8]}}, "serial.onnx has other inputs or outputs"),
        ({"inputs": good["inputs"] | {"classes": ["one"]}}, "serial.onnx has other inputs or outputs"),
        ({"more": 1}, "unknown key more"),
    ):
        with pytest.raises(InputError, match=message):
            changed(**changes)
    (copied / "config.json").write_text("{")
    with pytest.raises(InputError, match="is not JSON"):
        Runner(copied)
    with pytest.raises(InputError, match="is not an exported network: give the folder of an export"):
        Runner(tmp_path)


def test_without_onnx_runtime_the_extra_is_named(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(InputError, match=r"needs ONNX Runtime .*: pip install 'cascaded\[export\]'"):
        Runner(folder)
