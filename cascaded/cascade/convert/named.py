"""Models by name: package.module:function."""

from __future__ import annotations

import sys
from importlib import import_module

from torch import nn

from cascaded.errors import InputError, first_line


def load_model(name: str) -> nn.Module:
    """The model that a function returns, given as `package.module:function`."""
    module_name, _, function_name = name.partition(":")
    if not module_name or not function_name.isidentifier():
        raise InputError(f"model is {name!r}: give package.module:function, a function that returns a torch module")
    if "" not in sys.path:
        sys.path.insert(0, "")  # a module in the present folder, as `python -m` finds it
    try:
        module = import_module(module_name)
    except ImportError as error:
        raise InputError(
            f"cannot import {module_name} ({first_line(error)}): run in its folder, or install it"
        ) from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise InputError(f"{module_name} has no function {function_name}: give the name of one that returns a module")
    model = function()
    if not isinstance(model, nn.Module):
        raise InputError(f"{name} returns a {type(model).__name__}: it must return a torch.nn.Module")
    return model
