"""Export a network as ONNX files, which run without torch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor

from cascaded.cascade.convert.network import ConvertedModel
from cascaded.cascade.inputs import Schedule, chosen_schedule
from cascaded.cascade.kernels import Kernel
from cascaded.cascade.network import Cascade
from cascaded.data.augment import normalize
from cascaded.errors import InputError
from cascaded.files import sha256, write_folder, write_json
from cascaded.hub.pretrained import Pretrained
from cascaded.runtime.cascade_files import CascadeFiles
from cascaded.runtime.converted.files import ConvertedFiles
from cascaded.runtime.exported import CONFIG, FULL_PASS, WEIGHTS, ExportConfig, Steps
from cascaded.runtime.graph import OPSET, Graph, Weights, import_onnx
from cascaded.runtime.quantize import quantize
from cascaded.training.inputs import Inputs, describe_shape
from cascaded.training.load import check_range
from cascaded.training.run_file import made_with


@torch.no_grad()
def export(
    net: Cascade | ConvertedModel | Pretrained,
    folder: Path | str,
    *,
    inputs: Inputs | None = None,
    kernel: Kernel | None = None,
    int8_images: Shaped[Tensor, "items channels height width"] | None = None,
    exits: Sequence[int] = (),
) -> ExportConfig:
    """Write a network as ONNX files, which `cascaded.runtime.Runner` runs without torch.

    The folder has one file per step or range of steps that are alike, for every schedule of the network, `serial.onnx`
    (one full pass), the weights, which they share, and `config.json`. It is complete or does not exist, whenever the
    process is killed.

    Args:
        net: A network in evaluation mode, such as one from `cascaded.load`, or an image model from `cascaded.convert`.
        folder: Where to write; a folder that does not exist or is empty.
        inputs: Input shape, normalization and class names; required unless the network comes from `cascaded.load`.
        kernel: Delay kernel; the network's own by default.
        int8_images: Images, bytes or floats from 0 to 1, to calibrate with: the files then compute in 8 bits. A few
            hundred training images are enough. Test accuracy per step, which is of single precision, is left out.
        exits: Steps of the serial schedule after which an item may exit, besides the last one; all by default. The
            blocks between two of them are one file: fewer calls, which take as long as a small block. The steps of the
            export are then these exits. `cascaded.runtime.exits.choose_exits` finds
            those that pay off.
    """
    folder = Path(os.path.expanduser(folder))
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists: give a new folder to export to")
    schedule, accuracy = None, ()
    if isinstance(net, Pretrained):
        inputs, schedule = inputs or net.inputs, net.schedule
        accuracy = net.accuracy if kernel in (None, net.net.kernel) and int8_images is None else ()
        net = net.net
    files = _files(net, inputs, kernel, exits, batched=int8_images is None)
    files.check()
    calibration = None if int8_images is None else _calibration(files, int8_images)
    exporter = Exporter(files, schedule or chosen_schedule(None, files.heads), accuracy, calibration)
    import_onnx()  # after the network is checked: installing it would not help one that cannot be exported
    return write_folder(folder, exporter.write)


def _files(
    net: object, inputs: Inputs | None, kernel: Kernel | None, exits: Sequence[int], batched: bool
) -> CascadeFiles | ConvertedFiles:
    """Writes the files of a network."""
    if not isinstance(net, Cascade | ConvertedModel):
        raise InputError(
            f"a {type(net).__name__} cannot be exported: give a Cascade, a model from cascaded.convert, or a "
            "Pretrained from cascaded.load"
        )
    if inputs is None:
        raise InputError(
            f"a {type(net).__name__} does not know its input size, normalization and classes, which an exported "
            "network needs: give inputs=cascaded.Inputs(shape, mean, std, classes)"
        )
    if isinstance(net, Cascade):
        return CascadeFiles(net, kernel or net.kernel, inputs, _check_exits(exits, net.serial_steps))
    if exits:
        raise InputError("a converted model has an output after every step: leave out exits")
    return ConvertedFiles(net, kernel or net.kernel, inputs, batched)


def _check_exits(exits: Sequence[int], last: int) -> tuple[int, ...]:
    """The steps with an output, in their order, up to the last step."""
    if outside := sorted(each for each in exits if not 1 <= each <= last):
        raise InputError(f"exit {outside[0]} is not a step of the serial schedule: give steps from 1 to {last}")
    return tuple(sorted({*exits, last})) if exits else ()


def _calibration(files: CascadeFiles | ConvertedFiles, images: Tensor) -> np.ndarray:
    """Images to calibrate with, checked and normalized."""
    shape = files.inputs.shape
    if tuple(images.shape[1:]) != shape or not len(images):
        raise InputError(
            f"int8_images have shape {tuple(images.shape)}, the network takes images of {describe_shape(shape)}: "
            "resize them to that shape"
        )
    check_range(images, "give them as they were before that")
    return normalize(images.cpu(), files.inputs.mean, files.inputs.std).numpy()


@dataclass(frozen=True)
class Exporter:
    """Writes the files of one network."""

    files: CascadeFiles | ConvertedFiles
    schedule: Schedule
    accuracy: tuple[float, ...]
    calibration: np.ndarray | None = None

    def write(self, folder: Path) -> ExportConfig:
        """Write all files into an empty folder."""
        weights = Weights(folder / WEIGHTS)
        schedules = {schedule: self._steps(folder, weights, schedule) for schedule in self.files.schedules}
        graph = Graph(weights)
        self.files.write_full_pass(graph)
        graph.save(folder / FULL_PASS)
        digests = _digests(folder)
        about = (self.files.inputs, str(self.files.kernel), self.files.heads, self.schedule)
        config = ExportConfig(*about, dict(schedules), digests, OPSET, made_with())
        write_json(folder / CONFIG, config.to_json())
        if self.calibration is not None:
            quantize(folder, config, self.calibration)
            config = replace(config, files=_digests(folder), precision="int8")
            write_json(folder / CONFIG, config.to_json())
        return config

    def _steps(self, folder: Path, weights: Weights, schedule: Schedule) -> Steps:
        """Write the files of a schedule."""
        files = list(self.files.write_steps(schedule, folder, weights))
        files.sort(key=lambda each: ("frame" in each.reads, each.first))
        bounded = schedule == "serial" or self.files.kernel.memory < float("inf")
        operations = self.files.operations(schedule) if bounded else []
        accuracy = self.accuracy if schedule == self.schedule else ()
        exits = self.files.exits if schedule == "serial" else ()
        if exits and accuracy:
            accuracy = [accuracy[each - 1] for each in exits]
        return Steps(len(operations or exits) or None, tuple(files), tuple(accuracy), tuple(operations), exits)


def _digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file but the configuration."""
    return {file.name: sha256(file) for file in sorted(folder.iterdir()) if file.name != CONFIG}
