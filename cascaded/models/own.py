"""Plain image classifiers by name: ours, and those that a function of the user's own code makes."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

from cascaded.errors import InputError, first_line, unknown
from cascaded.models.highway import Highway
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
    with _current_folder_on_path():
        function = _import(arch) if ":" in arch else PLAIN.get(arch)
        if function is None:
            raise unknown("architecture", arch, PLAIN)
        options = _options(function, arch, num_classes, shape, width)
        try:
            model = function(**options)
        except InputError:
            raise
        except Exception as error:  # of the user's own code
            given = ", ".join(f"{name}={value}" for name, value in options.items())
            raise InputError(f"{arch} failed when called with {given} ({_reason(error)}): correct it") from error
    if not isinstance(model, nn.Module):
        raise InputError(f"{arch} returned a {type(model).__name__}: return a torch.nn.Module")
    return model


@contextmanager
def _current_folder_on_path() -> Iterator[None]:
    """As for `python -m`: the script `cascaded` has its own folder on the path instead."""
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        importlib.invalidate_caches()  # files that were written a moment ago
        yield
    finally:
        sys.path.remove(here)


def _import(arch: str) -> Callable[..., Any]:
    """The function of `package.module:function`."""
    name, _, attribute = arch.partition(":")
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise InputError(f"--arch is {arch}, whose module needs {error.name}: install that") from error
        raise InputError(
            f"--arch is {arch}, and there is no module {error.name} in {os.getcwd()} or among installed packages: "
            "correct the name, or run this in the folder that contains it"
        ) from error
    except Exception as error:
        raise InputError(f"--arch is {arch}, whose module fails on import ({_reason(error)}): correct it") from error
    function = getattr(module, attribute, None)
    if not callable(function):
        known = [each for each, value in vars(module).items() if inspect.isfunction(value) and value.__module__ == name]
        raise unknown(f"function in {name} called", attribute, known, "write one that returns a torch.nn.Module")
    return function


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


def _reason(error: Exception) -> str:
    """What an error of the user's code is, and where it was raised."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(frame.filename)}:{frame.lineno}"
    return f"{place}, {type(error).__name__}: {first_line(error)}"
