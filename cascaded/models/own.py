"""Plain image classifiers by name: ours, and those that a function of the user's own code makes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from torch import nn

from cascaded.errors import InputError, unknown
from cascaded.models.highway import Highway
from cascaded.models.imported import call_function, current_folder_on_path, import_function
from cascaded.models.vit import ViT

GRIDS = (4, 3, 5, 6, 7, 2, 1)
"""Patches per side of an image, the first that divides its size."""


def vit(num_classes: int, image_size: int, in_channels: int, width: int = 64) -> ViT:
    """A vision transformer of 12 layers, with 16 tokens if 4 divides the image size; arguments as for `ViT`."""
    grid = next(each for each in GRIDS if image_size % each == 0)
    return ViT(num_classes, image_size, image_size // grid, width=width, in_channels=in_channels)


def highway(num_classes: int, image_size: int, in_channels: int, width: int = 64) -> Highway:
    """A Highway network of 8 layers; arguments as for `ViT`."""
    return Highway(num_classes, in_channels * image_size**2, width=width)


PLAIN: dict[str, Callable[..., nn.Module]] = {"vit": vit, "highway": highway}


def make_model(arch: str, num_classes: int, shape: tuple[int, ...], width: int | None = None) -> nn.Module:
    """A plain model.

    Args:
        arch: A name in `PLAIN`, or `package.module:function`: the function is imported, with the current folder first
            on the path, and called with `num_classes=` and, if it has such arguments, `in_channels=` and `image_size=`.
        num_classes: Number of classes.
        shape: Channels, height and width of an image.
        width: Given to the function as `width=`; None for the function's own default.
    """
    with current_folder_on_path():
        function = import_function(arch) if ":" in arch else PLAIN.get(arch)
        if function is None:
            raise unknown("architecture", arch, PLAIN)
        return call_function(arch, function, _options(function, arch, num_classes, shape, width))


def _options(
    function: Callable[..., Any], arch: str, num_classes: int, shape: tuple[int, ...], width: int | None
) -> dict[str, int]:
    """Those of the arguments that a function has."""
    parameters = inspect.signature(function).parameters
    has_any = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    if "num_classes" not in parameters and not has_any:
        raise InputError(f"{arch} has no argument num_classes, which it is called with: add one")
    if width is not None and "width" not in parameters:
        raise InputError(
            f"width is {width}, {arch} has no argument width: leave --width out (width=None in Python), or add one"
        )
    channels, height, across = shape
    if "image_size" in parameters and height != across:
        raise InputError(
            f"images are {height} x {across} pixels, {arch} has one argument image_size: give --image-size {height}"
        )
    known = {"in_channels": channels, "image_size": height, "width": width}
    given = {name: value for name, value in known.items() if name in parameters and value is not None}
    return {"num_classes": num_classes, **given}
