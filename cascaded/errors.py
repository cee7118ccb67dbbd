"""What a user can put right, and what a user should know."""


class InputError(ValueError):
    """Bad input, said in one sentence that names both sides and the way out. The command line prints it and exits 2."""


class MissingSplitError(InputError):
    """Data without the part that was asked for: a caller that can do without it may go on."""


class CascadedWarning(UserWarning):
    """Something unexpected that was dealt with. The command line prints it as one sentence, without a source line."""
