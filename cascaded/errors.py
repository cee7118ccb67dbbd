"""What a user can put right, and what a user should know."""


class InputError(ValueError):
    """Bad input, said in one sentence that names both sides and the way out. The command line prints it and exits 2."""


class MissingSplitError(InputError):
    """Data without the part that was asked for: a caller that can do without it may go on."""


class CascadedWarning(UserWarning):
    """Something unexpected that was dealt with. The command line prints it as one sentence, without a source line."""


def at_least(minimum: int, **values: int | None) -> None:
    """Check numbers by name; None is not checked."""
    for name, value in values.items():
        if value is not None and value < minimum:
            raise InputError(f"{name} is {value}: give at least {minimum}")
