"""Bad input is refused."""

import pytest

from cascaded.errors import InputError


def refused(message, do, *args, **options):
    """Calling `do` ends in an `InputError` whose message matches."""
    with pytest.raises(InputError, match=message):
        do(*args, **options)
