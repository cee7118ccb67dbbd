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

    from cascaded.runtime.exits import Exits

CALIBRATION = 256
"""Images to calibrate with."""


def export(
    model: Annotated[Positional[str], tyro.conf.arg(metavar="NAME")],
    *,
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="FOLDER")],
    kernel: Annotated[str | None, DisallowNone, help_default("the network's own")] = None,
    int8: bool = False,
    data: Annotated[str | None, DisallowNone, help_default("the network's own")] = None,
    exits: Annotated[tuple[str, ...], help_default("after every block", "auto|[INT ...]")] = (),
) -> None:
    """Write a trained network as ONNX files, which cascaded.runtime.Runner runs with ONNX Runtime, without torch.

    The folder has one file per step or range of steps that are alike, for every schedule of the network; serial.onnx,
    one full pass; the weights, which they share; and config.json with input size, normalization, classes, and accuracy
    and operations per step. Needs the extra packages of: pip install 'cascaded[export]'

    Example: cascaded export cifar10-td0 -o exported

    Example: cascaded export runs/td0/0 -o exported --kernel ews:0.9

    Example: cascaded export cifar10-td0 -o exported --int8 --data cifar10-sample

    Example: cascaded export cifar10-shallow-deep -o exported --exits auto

    Args:
        model: A trained network: a name from `cascaded models`, a run folder, a saved network, or OWNER/NAME on the
            Hugging Face hub.
        out: Folder to write to; it must not exist yet.
        kernel: Delay kernel: osd, none, ews:ALPHA or taps:W0,W1,...
        int8: Compute in 8 bits, calibrated on up to 256 training images: faster, and slightly less exact.
        data: With --int8: data set to calibrate with, the images of its split `train`, else `validation`. With --exits
            auto: data set with the split `validation`.
        exits: Steps of the serial schedule after which an item may exit, besides the last one; auto: those that pay off
            on this machine, chosen on up to 5,000 validation images, with a threshold. Blocks between two of them are
            one call.
    """
    from cascaded.cascade.named import make_kernel
    from cascaded.hub.pretrained import load
    from cascaded.runtime.export import export

    choose = exits == ("auto",)
    if data is not None and not int8 and not choose:
        raise InputError(
            "--data is the data set that --int8 or --exits auto looks at: add one of them, or leave --data out"
        )
    steps = () if choose else _steps(exits)
    net, threshold = load(model), 0.9
    if choose and (chosen := _choose_exits(model, data)):
        steps, threshold = chosen.steps, chosen.threshold
    images = _training_images(model, data) if int8 else None
    config = export(net, out, kernel=make_kernel(kernel) if kernel else None, int8_images=images, exits=steps)
    size = sum(file.stat().st_size for file in out.iterdir())
    schedules = " and ".join(f"the {each} schedule" for each in config.schedules)
    console = wide_console()
    print_line(console, f"wrote {out}: {counted(len(config.files), 'file')} for {schedules}, {size / 1e6:.1f} MB")
    how = ', schedule="serial"' if choose and config.schedule != "serial" else ""
    print_line(
        console, f'next, in Python: cascaded.runtime.Runner("{out}"{how}).predict(images, threshold={threshold:g})'
    )


def _steps(exits: tuple[str, ...]) -> tuple[int, ...]:
    """The words of --exits as numbers."""
    if wrong := [each for each in exits if not each.isdecimal()]:
        raise InputError(f"--exits is {' '.join(exits)}, and {wrong[0]} is not a step: give numbers of steps, or auto")
    return tuple(map(int, exits))


def _choose_exits(model: str, data: str | None) -> Exits | None:
    """The exits that pay off, and why, on the console."""
    from cascaded.hub.locate import locate
    from cascaded.runtime.exits import choose_exits, describe_exits
    from cascaded.training.load import load_run

    found = choose_exits(load_run(locate(model)), data)
    print_line(wide_console(), describe_exits(found))
    return found


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
