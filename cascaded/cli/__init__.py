"""The command line: one module per command. Nothing in the library imports from here."""
