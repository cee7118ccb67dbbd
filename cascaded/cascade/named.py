"""Kernels by name, for the command line, file names and traces."""

from __future__ import annotations

from cascaded.cascade.kernels import ExponentialSmoothing, Kernel, NoDelay, OneStepDelay, TappedDelay
from cascaded.errors import InputError

KNOWN = "osd (one-step delay), none, ews:0.9 (smoothing with alpha 0.9) or taps:0,0.5,0.5"


def make_kernel(name: str) -> Kernel:
    """A kernel by name: `osd`, `none`, `ews:0.9`, `taps:0,0.5,0.5`."""
    kind, _, parameter = name.partition(":")
    if not parameter and kind in ("osd", "none"):
        return OneStepDelay() if kind == "osd" else NoDelay()
    try:
        if kind == "ews":
            return ExponentialSmoothing(float(parameter))
        if kind == "taps":
            return TappedDelay([float(weight) for weight in parameter.split(",")])
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"kernel is {name!r}, {parameter!r} is not a number: give {KNOWN}") from error
    raise InputError(f"there is no kernel {name!r}: give {KNOWN}")
