"""Exported networks compute what eager ones compute: logits and every tensor of the state, at every step."""

import copy
import json
import os
import sys
from itertools import product

import numpy as np
import pytest
import torch
from torch import nn

import cascaded
from cascaded.cascade.kernels import Kernel
from cascaded.errors import InputError
from cascaded.runtime import Runner
from cascaded.runtime import export as exporting
from cascaded.runtime.exported import read_export
from cascaded.runtime.steps import tensors_of
from tests.exports import SHAPE, images, inputs_of, tiny_net
from tests.forked import code_of, forked

pytest.importorskip("onnx", reason="exporting needs the extra `export`")
pytest.importorskip("onnxruntime", reason="running exported networks needs the extra `export`")

KERNELS: dict[str, Kernel] = {
    "one step": cascaded.OneStepDelay(),
    "none": cascaded.NoDelay(),
    "smoothing": cascaded.ExponentialSmoothing(0.7),
    "taps": cascaded.TappedDelay((0.5, 0.3, 0.2)),
    "scaled": cascaded.TappedDelay((0.5,)),
    "late taps": cascaded.TappedDelay((0, 0.6, 0.0, 0.4)),
    "two steps": cascaded.TappedDelay((0, 0, 1)),
}
NETWORKS = ("resnet", "bottleneck", "densenet")


@pytest.fixture
def exported(tmp_path):
    """`exported(net, schedule="serial", kernel=kernel)`: a runner of the exported network."""

    def make(net, schedule=None, **options):
        folder = tmp_path / "exported"
        if not folder.exists():
            cascaded.export(net, folder, inputs=inputs_of(net), **options)
        return Runner(folder, schedule=schedule)

    return make


@torch.no_grad()
def assert_same_steps(net, runner, frames, **options):
    """Step both through the same frames, and compare everything that they return."""
    state = found = None
    for frame in frames:
        logits, state = net.step(frame, state, **options)
        result, found = runner.step(None if frame is None else frame.numpy(), found, normalized=True)
        assert_close(result, logits)
        assert_close(found.frame, state.frame)
        assert (found.step, found.held) == (int(state.step), int(state.held))
        expected = tensors_of(state)
        assert found.tensors.keys() == expected.keys()
        for name, tensor in expected.items():
            assert_close(found.tensors[name], tensor)


def assert_close(found, expected):
    torch.testing.assert_close(torch.from_numpy(found), expected.float(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "kernel", "heads"),
    [
        pytest.param(kind, kernel, heads, marks=[] if place % len(NETWORKS) == number else pytest.mark.long)
        for place, (kernel, heads) in enumerate(product(KERNELS, ("shared", "per_step")))
        for number, kind in enumerate(NETWORKS)
    ],
)  # every kernel with both kinds of heads, of one network; with the others they are long tests
def test_cascaded_steps_equal_eager_ones(exported, kind, kernel, heads):
    net, kernel = tiny_net(kind, heads), KERNELS[kernel]
    runner = exported(net, kernel=kernel)
    still = [images(3), *[None] * 9]
    assert_same_steps(net, runner, still, kernel=kernel)
    new = torch.Generator().manual_seed(3)
    video = [images(2, new), images(2, new), None, images(2, new), None, None, None, None, images(2, new), None]
    assert_same_steps(net, runner, video, kernel=kernel)


@pytest.mark.parametrize("heads", ["shared", "per_step", "shallow_deep"])
@pytest.mark.parametrize("kind", NETWORKS)
def test_serial_steps_equal_eager_ones(exported, kind, heads):
    net = tiny_net(kind, heads)
    runner = exported(net, "serial")
    assert_same_steps(net, runner, [images(3), *[None] * (len(net.blocks) + 2)], schedule="serial")
    with torch.no_grad():
        assert_close(runner.full_pass(images(4).numpy(), normalized=True), net.final_logits(images(4)))


@pytest.mark.parametrize("affine", ["shared", "per_step"])
@pytest.mark.parametrize("steps", [1, 2, 12])
def test_steps_that_norms_have_not_seen_or_saw_alone_are_computed_alike(exported, affine, steps):
    net = tiny_net("resnet", steps=steps, norm=cascaded.Norm(affine=affine))
    assert_same_steps(net, exported(net), [images(3), *[None] * 13])


def test_a_network_without_statistics_per_step_needs_one_file_for_all_new_frames(exported):
    net = tiny_net("resnet")
    for norm in net.modules():
        if isinstance(norm, cascaded.TimeBatchNorm):
            norm.keep_final_statistics()
    runner = exported(net)
    files = {each.file: (each.first, each.last) for each in runner.config.schedules["cascaded"].files}
    assert files == {
        "step-1.onnx": (1, 1),
        "frame-2.onnx": (2, None),
        "step-3.onnx": (3, 3),
        "step-4.onnx": (4, 4),
        "step-5.onnx": (5, None),
    }
    assert_same_steps(net, runner, [images(3), *[None] * 7])


def test_blocks_whose_input_is_final_are_not_in_the_files_of_later_steps(exported):
    net = tiny_net("resnet")
    runner = exported(net)
    files = {each.first: each for each in runner.config.schedules["cascaded"].files if "frame" not in each.reads}
    assert {step: sorted(file.reads) for step, file in files.items()} == {
        3: ["seen.2", "seen.3"],
        4: ["seen.3"],
        5: ["features"],
    }
    import onnx

    convolutions = {
        step: sum(
            node.op_type == "Conv" for node in onnx.load(runner.folder / file.file, load_external_data=False).graph.node
        )
        for step, file in files.items()
    }
    assert convolutions == {3: 2 * 2 + 1, 4: 2, 5: 0}  # two per branch, one on a skip path


def test_a_pretrained_network_brings_its_inputs_and_accuracy(tmp_path):
    net = cascaded.load("cifar10-shallow-deep")
    config = cascaded.export(net, tmp_path / "out")
    assert config == read_export(tmp_path / "out")
    assert (config.inputs, config.schedule, set(config.schedules)) == (net.inputs, "serial", {"cascaded", "serial"})
    steps = config.schedules["serial"]
    assert steps.accuracy == net.accuracy
    assert list(steps.operations) == net.net.operations(32, 32, "serial")
    assert config.schedules["cascaded"].accuracy == ()  # it was measured under the other schedule
    pixels = np.random.default_rng(0).integers(0, 256, (3, 3, 32, 32), dtype=np.uint8)
    runner, state = Runner(tmp_path / "out"), None
    with torch.no_grad():
        for step, expected in enumerate(net(torch.from_numpy(pixels))):
            logits, state = runner.step(None if step else pixels, state)
            assert_close(logits, expected)
    floats = runner.step(pixels / np.float32(255))[0]
    np.testing.assert_allclose(floats, runner.step(pixels)[0], atol=1e-5)


def test_weights_are_stored_once(exported, tmp_path):
    net = tiny_net("resnet")
    exported(net)
    parameters = sum(each.numel() for each in net.parameters()) * 4
    statistics = sum(each.numel() for each in net.buffers()) * 4
    assert (tmp_path / "exported" / "weights.bin").stat().st_size < 2 * (parameters + statistics)


def test_other_layers_are_exported_too(exported):
    def branch(inputs, width):
        layers = [nn.Conv2d(inputs, width, 3, padding=1), nn.GroupNorm(2, width), nn.SiLU()]
        return cascaded.Layers(*layers, nn.Conv2d(width, width, (1, 3), padding=(0, 1), groups=2), nn.Tanh())

    blocks = [
        cascaded.ResidualBlock(nn.Conv2d(4, 6, 1), branch(4, 6), 6),
        cascaded.ResidualBlock(nn.Identity(), branch(6, 6), 6),
    ]
    stem = cascaded.Layers(nn.Conv2d(3, 4, 3, padding=1), nn.AvgPool2d(3, 2, padding=1), nn.Dropout(), nn.Sigmoid())
    options = {"num_classes": 5, "heads": "shared", "kernel": cascaded.OneStepDelay(), "in_channels": 3}
    net = cascaded.Cascade(stem, blocks, stem_channels=4, **options).eval()
    for norm in (each for each in net.modules() if isinstance(each, nn.GroupNorm)):
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
    assert_same_steps(net, exported(net), [images(3), None, None, None, images(3)])
    net.blocks[1].branch.append(nn.PReLU())
    with pytest.raises(InputError, match="contains a PReLU, which cannot be exported: use some of AvgPool2d, Conv2d"):
        cascaded.export(net, "nowhere", inputs=inputs_of(net))


class Late(cascaded.ResidualBlock):
    pass


class Triangle(Kernel):
    lag, memory, kept = 1, 0, 0

    def spread(self, film, trail):
        return film, None


def refused():
    net = tiny_net("resnet")
    other = copy.deepcopy(net)
    other.blocks[0].__class__ = Late
    padded = copy.deepcopy(net)
    padded.stem[0] = nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect")
    few = cascaded.Inputs(SHAPE, (0.0,) * 3, (1.0,) * 3, ("a", "b"))
    return {
        "training": (copy.deepcopy(net).train(), {}, r"in training mode, .*: call net.eval\(\) first"),
        "block": (other, {}, "contains a Late, which cannot be exported"),
        "padding": (padded, {}, "a convolution with padding .* which cannot be exported"),
        "kernel": (net, {"kernel": Triangle()}, "the kernel is a Triangle, which cannot be exported"),
        "inputs": (net, {"inputs": None}, "does not know its input size"),
        "classes": (net, {"inputs": few}, "2 classes, the network has 3 input channels and 5 classes"),
        "module": (nn.Linear(2, 2), {"inputs": few}, "a Linear cannot be exported"),
    }


@pytest.mark.parametrize("case", refused())
def test_what_cannot_be_exported_is_refused_and_leaves_no_file(case, tmp_path):
    net, options, message = refused()[case]
    with pytest.raises(InputError, match=message):
        cascaded.export(net, tmp_path / "out", **{"inputs": inputs_of(tiny_net()), **options})
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_not_overwritten(tmp_path):
    (tmp_path / "mine").write_text("important")
    net = tiny_net("resnet")
    for place in (tmp_path, tmp_path / "mine"):
        with pytest.raises(InputError, match="exists: give a new folder"):
            cascaded.export(net, place, inputs=inputs_of(net))
    (tmp_path / "empty").mkdir()
    cascaded.export(net, tmp_path / "empty", inputs=inputs_of(net))
    Runner(tmp_path / "empty")


def test_an_interrupted_export_leaves_no_folder(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    net = tiny_net("resnet")
    with monkeypatch.context() as patched:
        patched.setattr(exporting, "write_json", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cascaded.export(net, tmp_path / "out", inputs=inputs_of(net))
    assert list(tmp_path.iterdir()) == []


def test_a_killed_export_leaves_nothing_that_a_later_one_keeps(tmp_path):
    net, out = tiny_net("resnet"), tmp_path / "out"

    def interrupted():
        exporting.write_json = lambda *_: os._exit(9)
        cascaded.export(net, out, inputs=inputs_of(net))

    assert code_of(forked(interrupted)) == 9
    assert not out.exists()
    assert len(list(tmp_path.iterdir())) == 1  # the unfinished folder
    cascaded.export(net, out, inputs=inputs_of(net))
    assert list(tmp_path.iterdir()) == [out]


def test_without_onnx_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    net = tiny_net("resnet")
    with pytest.raises(InputError, match=r"needs onnx .*: pip install 'cascaded\[export\]'"):
        cascaded.export(net, tmp_path / "out", inputs=inputs_of(net))


def test_the_configuration_is_plain_json(tmp_path):
    net = tiny_net("resnet", "per_step")
    cascaded.export(net, tmp_path / "out", inputs=inputs_of(net))
    content = json.loads((tmp_path / "out" / "config.json").read_text())
    assert content["format"] == "cascaded export 1"
    assert content["inputs"]["shape"] == list(SHAPE)
    assert (content["kernel"], content["opset"]) == ("OneStepDelay()", 17)
    assert all(
        shape[0] == "batch" for each in content["schedules"]["serial"]["files"] for shape in each["reads"].values()
    )
