"""Exported networks that compute in 8 bits: close to those in single precision, at every step."""

import numpy as np
import pytest
import torch

import cascaded
from cascaded.cascade.inputs import Schedule
from cascaded.errors import InputError
from cascaded.runtime import Runner
from tests.exports import SHAPE, inputs_of, tiny_net
from tests.test_export_converted import MODELS, converted, inputs_for

pytest.importorskip("onnx", reason="exporting needs the extra `export`")
pytest.importorskip("onnxruntime", reason="running exported networks needs the extra `export`")


def pixels(items, seed=3):
    return torch.rand(items, *SHAPE, generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def test_every_step_of_still_images_and_of_a_video_is_close_to_single_precision(tmp_path):
    net, frames = tiny_net("bottleneck", steps=3), pixels(3).numpy()
    inputs = inputs_of(net)
    cascaded.export(net, tmp_path / "32", inputs=inputs)
    config = cascaded.export(net, tmp_path / "8", inputs=inputs, int8_images=torch.cat([pixels(3), pixels(15, seed=4)]))
    assert config.precision == "int8"
    assert not (tmp_path / "8" / "weights.bin").exists()
    video = [frames, None, frames[::-1].copy(), None, None]
    still: list[tuple[Schedule, list[np.ndarray | None]]] = [
        ("serial", [frames, *[None] * 3]),
        ("cascaded", [frames, *[None] * 4]),
    ]
    for schedule, given in [*still, ("cascaded", video)]:
        one, other = (Runner(tmp_path / name, schedule=schedule) for name in ("32", "8"))
        for (expected, _), (found, _) in zip(one.stream(given), other.stream(given), strict=True):
            scale = np.abs(expected).max()
            np.testing.assert_allclose(found, expected, atol=0.1 * scale)
    assert other.predict(frames, threshold=0.5).steps.max() <= other.last_step()


@pytest.mark.parametrize("name", [pytest.param("vit", marks=pytest.mark.long), "densenet"])
@torch.no_grad()
def test_a_converted_model_is_close_to_single_precision(name, tmp_path):
    torch.manual_seed(0)
    net = converted(MODELS[name]())
    inputs = inputs_for(net)
    images = torch.rand(24, *inputs.shape, generator=torch.Generator().manual_seed(3))
    cascaded.export(net, tmp_path / "32", inputs=inputs)
    config = cascaded.export(net, tmp_path / "8", inputs=inputs, int8_images=images)
    assert config.precision == "int8"
    for schedule in ("cascaded", "serial"):
        one, other = (Runner(tmp_path / name, schedule=schedule) for name in ("32", "8"))
        given = [images[:3].numpy(), *[None] * 6]
        for (expected, _), (found, _) in zip(one.stream(given), other.stream(given), strict=True):
            difference = np.abs(found - expected).max()
            assert 0 < difference < 0.05 * np.abs(expected).max()


def test_bad_images_are_refused(tmp_path):
    net = tiny_net()
    for images, message in (
        (
            torch.zeros(2, 3, 8, 8),
            r"int8_images have shape \(2, 3, 8, 8\), the network takes images of 3 channels of 9",
        ),
        (pixels(0), r"shape \(0, 3, 9, 8\)"),
        (pixels(2) - 1, "from 0 to 1"),
    ):
        with pytest.raises(InputError, match=message):
            cascaded.export(net, tmp_path / "out", inputs=inputs_of(net), int8_images=images)
    assert list(tmp_path.iterdir()) == []
