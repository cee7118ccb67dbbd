"""`cascaded export`: a trained network as ONNX files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from tyro.conf import DisallowNone, Positional

from cascaded.errors import InputError, MissingSplitError
from cascaded.progress import counted, print_line, wide_console
from cascaded.shell import help_default

if TYPE_CHECKING:
    from torch import Tensor

CALIBRATION = 256
"""Images to calibrate with."""


def export(
    model: Annotated[Positional[str], tyro.conf.arg(metavar="NAME")],
    *,
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="FOLDER")],
    kernel: Annotated[str | None, DisallowNone, help_default("the network's own")] = None,
    int8: bool = False,
    data: Annotated[str | None, DisallowNone, help_default("the network's own")] = None,
) -> None:
    """Write a trained network as ONNX files, which cascaded.runtime.Runner runs with ONNX Runtime, without torch.

    The folder has one file per step or range of steps that are alike, for every schedule of the network; serial.onnx,
    one full pass; the weights, which they share; and config.json with input size, normalization, classes, and accuracy
    and operations per step. Needs the extra packages of: pip install 'cascaded[export]'

    Example: cascaded export cifar10-td0 -o exported

    Example: cascaded export runs/td0/0 -o exported --kernel ews:0.9

    Example: cascaded export cifar10-td0 -o exported --int8 --data cifar10-sample

    Args:
        model: A trained network: a name from `cascaded models`, a run folder, a saved network, or OWNER/NAME on the
            Hugging Face hub.
        out: Folder to write to; it must not exist yet.
        kernel: Delay kernel: osd, none, ews:ALPHA or taps:W0,W1,...
        int8: Compute in 8 bits, calibrated on up to 256 training images: faster, and slightly less exact.
        data: With --int8: data set to calibrate with, the images of its split `train`, else `validation`.
    """
    from cascaded.cascade.named import make_kernel
    from cascaded.hub.pretrained import load
    from cascaded.runtime.export import export

    if data is not None and not int8:
        raise InputError("--data is the data set that --int8 calibrates with: add --int8, or leave --data out")
    net = load(model)
    images = _training_images(model, data) if int8 else None
    config = export(net, out, kernel=make_kernel(kernel) if kernel else None, int8_images=images)
    size = sum(file.stat().st_size for file in out.iterdir())
    schedules = " and ".join(f"the {each} schedule" for each in config.schedules)
    console = wide_console()
    print_line(console, f"wrote {out}: {counted(len(config.files), 'file')} for {schedules}, {size / 1e6:.1f} MB")
    print_line(console, f'next, in Python: cascaded.runtime.Runner("{out}").predict(images, threshold=0.9)')


def _training_images(model: str, data: str | None) -> Tensor:
    """Some images to calibrate with, the same number per class."""
    from cascaded.hub.locate import locate
    from cascaded.traces.select import limit_images, select_images
    from cascaded.training.load import load_run

    run = load_run(locate(model))
    try:
        images, items = select_images(run, data, "train")
    except MissingSplitError:
        images, items = select_images(run, data, "validation")
    return images.images[limit_images(images, items, CALIBRATION)]
