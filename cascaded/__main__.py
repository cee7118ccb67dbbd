"""`python -m cascaded`, for where the console script is out of reach."""

from cascaded.cli.main import main

main()
