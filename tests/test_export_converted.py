"""Exported converted models compute what eager ones compute: outputs and every tensor of the state, at every step."""

import copy
import functools
import sys
from itertools import product

import numpy as np
import pytest
import torch
from torch import nn

import cascaded
from cascaded.cli import main as cli
from cascaded.errors import InputError
from cascaded.models.highway import Highway
from cascaded.models.unet import UNet
from cascaded.models.vit import ViT
from cascaded.runtime import Runner
from cascaded.runtime.converted.files import ConvertedFiles
from cascaded.training.inputs import Inputs
from tests import plain_models as plain
from tests.architectures import ARCHITECTURES
from tests.made_networks import made, pixels
from tests.test_export import KERNELS, assert_close

MODELS = {
    "vit": lambda: ViT(5, 8, 4, depth=3, width=8, heads=2),
    "highway": lambda: Highway(5, 3 * 64, depth=3, width=8),
    "unet": lambda: UNet(5, 3, depth=2, width=4, norm="batch"),
    "resnet": lambda: plain.resnet(plain.PostActivation),
    "densenet": plain.DenseNet,
}
SHAPE = (3, 8, 8)
FROM_OTHER_PACKAGES = ("vit", "dinov2", "convnext", "swin", "segformer", "monai-unet-2d")


def images(items, seed=2):
    return torch.randn(items, *SHAPE, generator=torch.Generator().manual_seed(seed))


def converted(model, example=None, **options):
    """A converted model whose batch norms have other statistics at every step."""
    generator = torch.Generator().manual_seed(1)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(generator=generator)
            module.running_var.uniform_(0.5, 2, generator=generator)
    net = cascaded.convert(model.eval(), images(2) if example is None else example, **options)
    for rows in net.statistics.children():
        rows.mean.normal_(generator=generator)
        rows.var.uniform_(0.5, 2, generator=generator)
    return net


@functools.cache
def shared(name, start="empty"):
    """A converted model that tests do not change."""
    torch.manual_seed(0)
    return converted(MODELS[name](), start=start)


def inputs_for(net, shape=SHAPE):
    classes = net(torch.zeros(1, *shape), steps=1).shape[2]
    return Inputs(shape, (0.0,) * shape[0], (1.0,) * shape[0], tuple(map(str, range(classes))))


@torch.no_grad()
def assert_same_steps(net, files, runner, frames, **options):
    """Step both through the same frames, and compare everything that they return."""
    state = found = None
    for frame in frames:
        logits, state = net.step(frame, state, **options)
        result, found = runner.step(None if frame is None else frame.numpy(), found, normalized=True)
        assert_close(result, logits)
        assert (found.step, found.batch) == (state.step, state.batch)
        if "schedule" not in options:  # of the serial schedule, files remember what later ones read
            assert found.held == state.held
            expected = files.lines.tensors(state)
            assert found.tensors.keys() == expected.keys()
            for name, tensor in expected.items():
                assert_close(found.tensors[name], tensor)


def assert_exported(net, folder, kernel, shape=SHAPE):
    """Still images, a video, items that leave, the serial schedule and a full pass."""
    inputs = inputs_for(net, shape)
    cascaded.export(net, folder, inputs=inputs, kernel=kernel)
    files, new = ConvertedFiles(net, kernel, inputs), torch.Generator().manual_seed(3)

    def drawn(items):
        return torch.randn(items, *shape, generator=new)

    runner = Runner(folder)
    assert_same_steps(net, files, runner, [drawn(3), *[None] * 14], kernel=kernel)
    video = [drawn(2), drawn(2), None, drawn(2), None, None, None, None, drawn(2), None]
    assert_same_steps(net, files, runner, video, kernel=kernel)
    serial, last = Runner(folder, schedule="serial"), net.serial_steps + 2
    assert_same_steps(net, files, serial, [drawn(3), *[None] * last], schedule="serial")
    with torch.no_grad():
        frames = drawn(4)
        assert_close(runner.full_pass(frames.numpy(), normalized=True), net.final_logits(frames))


WITH_TRANSFORMER = ("one step", "smoothing", "late taps")
"""Kernels that the transformer is exported with in every run of the tests: the others are long tests, as it has more
operations than the Highway network, and no other computation of kernels."""


@pytest.mark.parametrize(
    ("name", "start", "kernel"),
    [
        *(pytest.param("highway", "empty", kernel) for kernel in KERNELS),
        *(pytest.param("vit", "rest", kernel) for kernel in WITH_TRANSFORMER),
        *(
            pytest.param("vit", "rest", each, marks=pytest.mark.long)
            for each in KERNELS
            if each not in WITH_TRANSFORMER
        ),
    ],
)
def test_steps_equal_eager_ones_for_every_kernel(name, start, kernel, tmp_path):
    assert_exported(shared(name, start), tmp_path / "out", KERNELS[kernel])


BATCH_NORMS = {
    ("unet", "one step", "empty"),
    ("unet", "late taps", "rest"),
    ("resnet", "smoothing", "empty"),
    ("resnet", "one step", "rest"),
    ("densenet", "late taps", "empty"),
    ("densenet", "smoothing", "rest"),
}
"""Every kernel and every model from both starts; other combinations are long tests."""


@pytest.mark.parametrize(
    ("name", "kernel", "start"),
    [
        pytest.param(*case, marks=[] if case in BATCH_NORMS else pytest.mark.long)
        for case in product(("unet", "resnet", "densenet"), ("one step", "smoothing", "late taps"), ("empty", "rest"))
    ],
)
def test_batch_norms_use_the_statistics_of_each_step(name, kernel, start, tmp_path):
    assert_exported(shared(name, start), tmp_path / "out", KERNELS[kernel])


def test_whole_layers_are_exported(tmp_path):
    net = converted(MODELS["vit"](), joins=r"layers\.\d+")
    assert_exported(net, tmp_path / "out", cascaded.OneStepDelay())


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=pytest.mark.long if each in ("dinov2", "swin") else []) for each in FROM_OTHER_PACKAGES],
)
def test_models_of_other_packages_are_exported(name, tmp_path):
    architecture = ARCHITECTURES[name]
    if reason := architecture.missing():
        pytest.skip(reason)
    model, inputs = architecture.make()
    (example,) = inputs.values() if isinstance(inputs, dict) else inputs
    net = converted(model, example, output=architecture.output)
    assert_exported(net, tmp_path / "out", cascaded.OneStepDelay(), tuple(example.shape[1:]))


def test_items_leave_a_batch_of_an_exported_model(tmp_path):
    net = shared("vit")
    cascaded.export(net, tmp_path / "out", inputs=inputs_for(net))
    runner, items = Runner(tmp_path / "out"), np.array([2, 0])
    _, state = runner.step(images(3).numpy(), normalized=True)
    result = runner.step(None, state.select(items))[0]
    np.testing.assert_allclose(result, runner.step(None, state)[0][items], atol=1e-6)


def products_of(net, folder):
    """How many products every file of the cascaded schedule computes, and its configuration."""
    import onnx

    config, found = cascaded.export(net, folder, inputs=inputs_for(net)), {}
    for file in config.schedules["cascaded"].files:
        nodes = onnx.load(folder / file.file, load_external_data=False).graph.node
        found[file.file] = sum(node.op_type in ("MatMul", "Gemm", "Conv") for node in nodes)
    return found, config


def test_what_is_final_is_not_computed_again(tmp_path, monkeypatch):
    net = shared("vit")
    monkeypatch.setattr(net, "batched", False)
    products, config = products_of(net, tmp_path / "out")
    attention, mlp, head = 4, 2, 1
    layers = [0, attention, mlp] * 3
    assert products["step-1.onnx"] == 1 + head  # the patches and the head
    assert products["frame-2.onnx"] == 1 + 3 * (attention + mlp) + head
    assert products["step-2.onnx"] == 3 * (attention + mlp) + head
    assert products["step-7.onnx"] == layers[-1] + head
    assert products["step-8.onnx"] == 0
    assert config.schedules["cascaded"].steps == net.settle_steps == 7


def test_blocks_that_are_alike_are_one_computation_with_stacked_weights(tmp_path, monkeypatch):
    net = shared("vit")
    products, config = products_of(net, tmp_path / "out")
    attention, mlp, head = 4, 2, 1
    assert products["frame-2.onnx"] == 1 + attention + mlp + head
    assert products["step-2.onnx"] == attention + mlp + head
    files = {each.file: each for each in config.schedules["cascaded"].files}
    assert files["step-2.onnx"].reads == {"stack.0": (3, "batch", 4, 8), "stack.1": (3, "batch", 4, 8)}
    size = (tmp_path / "out" / "weights.bin").stat().st_size
    assert size < 1.2 * 4 * sum(each.numel() for each in net.parameters())
    monkeypatch.setattr(net, "batched", False)
    cascaded.export(net, tmp_path / "apart", inputs=inputs_for(net))
    runners, states = [Runner(tmp_path / each) for each in ("out", "apart")], [None, None]
    for step in range(8):
        pairs = [
            runner.step(None if step else images(2).numpy(), state, normalized=True)
            for runner, state in zip(runners, states, strict=True)
        ]
        states = [state for _, state in pairs]
        np.testing.assert_allclose(pairs[0][0], pairs[1][0], rtol=1e-5, atol=1e-5)


def test_a_saved_transformer_is_exported_from_the_command_line(tmp_path, monkeypatch, capsys):
    net = made("cascaded-td", arch="vit", width=16, joins=r"layers\.\d+", accuracy=[0.1] * 13)
    net.save_pretrained(tmp_path / "saved")
    monkeypatch.setattr(sys, "argv", ["cascaded", "export", str(tmp_path / "saved"), "-o", str(tmp_path / "out")])
    cli.main()
    assert f"wrote {tmp_path / 'out'}: " in capsys.readouterr().out
    runner, state = Runner(tmp_path / "out"), None
    with torch.no_grad():
        for step, expected in enumerate(net(pixels())):
            logits, state = runner.step(None if step else pixels().numpy(), state)
            assert_close(logits, expected)
    assert runner.config.schedules["cascaded"].accuracy == (0.1,) * 13


def test_a_model_with_an_output_per_pixel_has_steps_and_no_predictions(tmp_path):
    net = shared("unet")
    cascaded.export(net, tmp_path / "out", inputs=inputs_for(net))
    runner = Runner(tmp_path / "out")
    assert runner.step(images(1).numpy(), normalized=True)[0].shape == (1, 5, 8, 8)
    with pytest.raises(InputError, match="one class per image: use Runner"):
        runner.predict(images(1).numpy(), normalized=True)
    pytest.importorskip("fastapi", reason="the server needs the extra `serve`")
    from cascaded.runtime.server import Service

    with pytest.raises(InputError, match="one class per image: use Runner"):
        Service(runner)


class Sorting(nn.Module):
    """A branch that sorts its features."""

    def __init__(self):
        super().__init__()
        self.stem, self.layer = nn.Linear(192, 5), nn.Linear(5, 5)

    def forward(self, x):
        z = self.stem(x.flatten(1))
        return z + self.layer(z).sort(dim=-1).values


def refused():
    vit, unet = shared("vit"), shared("unet")
    tokens = cascaded.convert(*ARCHITECTURES["our-gpt"].make())
    other = Inputs((3, 16, 16), (0.0,) * 3, (1.0,) * 3, tuple("abcde"))
    few = Inputs(SHAPE, (0.0,) * 3, (1.0,) * 3, ("a", "b"))
    return {
        "training": (copy.deepcopy(vit).train(), {}, r"in training mode, .*: call net.eval\(\) first"),
        "inputs": (vit, {"inputs": None}, "a ConvertedModel does not know its input size"),
        "shape": (vit, {"inputs": other}, "the model was converted for"),
        "classes": (vit, {"inputs": few}, "inputs name 2 classes: give one name per logit"),
        "exits": (vit, {"exits": (2,)}, "a converted model has an output after every step: leave out exits"),
        "text": (tokens, {}, "GPT takes other inputs than one batch of images"),
        "operation": (converted(Sorting()), {}, "contains the operation sort, which cannot be exported"),
        "statistics": (unet, {"kernel": cascaded.NoDelay()}, "has statistics for . steps, but with NoDelay"),
    }


def test_what_cannot_be_exported_is_refused_and_leaves_no_file(tmp_path):
    cases = refused()
    inputs = inputs_for(cases["inputs"][0])
    for net, options, message in cases.values():
        with pytest.raises(InputError, match=message):
            cascaded.export(net, tmp_path / "out", **{"inputs": inputs, **options})
        assert list(tmp_path.iterdir()) == []
