"""What a user can put right."""


class InputError(ValueError):
    """Bad input, said in one sentence that names both sides and the way out. The command line prints it and exits 2."""


class MissingSplitError(InputError):
    """Data without the part that was asked for: a caller that can do without it may go on."""
