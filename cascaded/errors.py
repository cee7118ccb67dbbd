"""What a user can put right."""


class InputError(ValueError):
    """Bad input, said in one sentence that names both sides and the way out. The command line prints it and exits 2."""
