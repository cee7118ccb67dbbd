"""Errors that a user can fix, warnings, and checks of numbers."""

from collections.abc import Collection
from difflib import get_close_matches


class InputError(ValueError):
    """Bad input: one sentence that names both sides and the fix. The command line prints it and exits with code 2."""


class MissingSplitError(InputError):
    """Data without the requested split; a caller that does not need it may continue."""


class CascadedWarning(UserWarning):
    """Something unexpected that was handled. The command line prints it as one sentence, without a source line."""


def first_line(error: BaseException) -> str:
    """The reason that an error of another library gives, in one line."""
    return str(error).strip().split("\n")[0] or type(error).__name__


def unknown(what: str, name: str, known: Collection[str], otherwise: str = "") -> InputError:
    """The error for a name that does not exist. It suggests the nearest known name; if none is near, `otherwise`."""
    near = get_close_matches(name, known, n=1)
    fix = f"did you mean {near[0]}?" if near else otherwise or f"give one of {', '.join(known)}"
    return InputError(f"there is no {what} {name!r}: {fix}")


def at_least(minimum: int, **values: int | None) -> None:
    """Check numbers by name; None is not checked."""
    for name, value in values.items():
        if value is not None and value < minimum:
            raise InputError(f"{name} is {value}: give at least {minimum}")


def between(low: float, high: float, **values: float) -> None:
    """Check numbers by name."""
    for name, value in values.items():
        if not low <= value <= high:
            raise InputError(f"{name} is {value}: give a number from {low} to {high}")
