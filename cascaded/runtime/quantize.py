"""Compute an exported network in 8 bits: static quantization with the tools of ONNX Runtime."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cascaded.errors import InputError
from cascaded.runtime.exported import FULL_PASS, WEIGHTS, ExportConfig, StepFile
from cascaded.runtime.graph import import_onnx
from cascaded.runtime.runner import Runner

CHUNK = 16
"""Images that are computed at a time."""
STEPS = 70
"""Steps of a kernel that converges only in the limit."""
Feeds = Iterator[dict[str, np.ndarray]]


def quantize(folder: Path, config: ExportConfig, images: np.ndarray) -> None:
    """Replace the files of an export by ones that compute in 8 bits; their inputs and outputs stay single precision.

    The ranges of activations are those on the images. Batch norm is merged into convolutions, so that files no longer
    share their weights.

    Args:
        folder: The exported folder.
        config: Its content.
        images: Normalized images to calibrate with.
    """
    with tempfile.TemporaryDirectory() as place:
        out = Path(place)
        for schedule, steps in config.schedules.items():
            runner = Runner(folder, schedule="serial" if schedule == "serial" else "cascaded")
            for file in steps.files:
                last = file.last or max(steps.steps or STEPS, file.first)
                _quantize(folder / file.file, out / file.file, _feeds(runner, file, last, images))
        frames = ({"frame": images[start : start + CHUNK]} for start in range(0, len(images), CHUNK))
        _quantize(folder / FULL_PASS, out / FULL_PASS, frames)
        for file in out.iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
    (folder / WEIGHTS).unlink()


def _feeds(runner: Runner, file: StepFile, last: int, images: np.ndarray) -> Feeds:
    """What a file reads at all of its steps up to the last one."""
    new = "frame" in file.reads  # at every step
    for start in range(0, len(images), CHUNK):
        frame, state = images[start : start + CHUNK], None
        for step in range(1, last + 1):
            if file.computes(step):
                values = {"frame": frame, **(state.tensors if state else {})}
                yield {name: values[name] for name in file.reads}
            if step < last:
                _, state = runner.step(frame if new or step == 1 else None, state, normalized=True)


def _quantize(source: Path, target: Path, feeds: Feeds) -> None:
    """Quantize one file: activations to unsigned bytes, weights to signed ones, per channel."""
    tools, prepare = _import_tools()

    class Reader(tools.CalibrationDataReader):
        def get_next(self) -> dict[str, np.ndarray] | None:
            return next(feeds, None)

    onnx = import_onnx()
    onnx.save(onnx.load(source), target)  # with its weights
    prepare(str(target), str(target), skip_symbolic_shape=True)
    kinds = {"activation_type": tools.QuantType.QUInt8, "weight_type": tools.QuantType.QInt8, "per_channel": True}
    tools.quantize_static(str(target), str(target), Reader(), quant_format=tools.QuantFormat.QDQ, **kinds)


def _import_tools() -> tuple[Any, Any]:
    try:
        from onnxruntime import quantization  # pyright: ignore[reportMissingImports]
        from onnxruntime.quantization.shape_inference import (  # pyright: ignore[reportMissingImports]
            quant_pre_process,
        )
    except (ImportError, RuntimeError) as error:
        raise InputError(f"int8 needs ONNX Runtime ({error}): pip install 'cascaded[export]'") from error
    return quantization, quant_pre_process
