"""Models that functions of the user's own code return, by name: `package.module:function`."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import nn

from cascaded.errors import InputError, first_line, unknown


@contextmanager
def current_folder_on_path() -> Iterator[None]:
    """As for `python -m`: the script `cascaded` has its own folder on the path instead."""
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        importlib.invalidate_caches()  # files that were written a moment ago
        yield
    finally:
        sys.path.remove(here)


def import_function(name: str) -> Callable[..., Any]:
    """The function of `package.module:function`."""
    place, _, attribute = name.partition(":")
    if not place or not attribute.isidentifier():
        raise InputError(f"{name!r} names no function: give package.module:function, which returns a torch.nn.Module")
    try:
        module = importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{place}.".startswith(f"{error.name}."):
            raise InputError(f"the module of {name} needs {error.name}: install that") from error
        raise InputError(
            f"{name} cannot be imported, there is no module {error.name} in {os.getcwd()} or among installed packages: "
            "correct the name, or run this in the folder that contains it"
        ) from error
    except Exception as error:
        raise InputError(f"the module of {name} fails on import ({_reason(error)}): correct it") from error
    function = getattr(module, attribute, None)
    if not callable(function):
        known = [
            each for each, value in vars(module).items() if inspect.isfunction(value) and value.__module__ == place
        ]
        raise unknown(f"function in {place} called", attribute, known, "write one that returns a torch.nn.Module")
    return function


def call_function(name: str, function: Callable[..., Any], options: Mapping[str, Any] | None = None) -> nn.Module:
    """The model that a function returns.

    Args:
        name: As the user gave it, for errors.
        function: From `import_function`.
        options: Arguments by name.
    """
    options = options or {}
    try:
        model = function(**options)
    except InputError:
        raise
    except Exception as error:  # of the user's own code
        given = ", ".join(f"{option}={value}" for option, value in options.items()) or "no arguments"
        raise InputError(f"{name} failed when called with {given} ({_reason(error)}): correct it") from error
    if not isinstance(model, nn.Module):
        raise InputError(f"{name} returned a {type(model).__name__}: return a torch.nn.Module")
    return model


def _reason(error: Exception) -> str:
    """What an error of the user's code is, and where it was raised."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(frame.filename)}:{frame.lineno}"
    return f"{place}, {type(error).__name__}: {first_line(error)}"
