"""The command line: which command, and what happens when something is wrong.

Each command is a function in a module of its own that is imported when it is called, and imports torch when it runs, so
that `--help` answers at once.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module

from cascaded import __version__
from cascaded.errors import CascadedWarning, InputError

COMMANDS = {
    "demo": ("cascaded.cli.demo", "train eight small networks and see what they do, in five minutes"),
    "predict": ("cascaded.cli.predict", "a trained network on your own pictures: its answer at every step"),
    "train": ("cascaded.cli.train", "train one of the paper's models; kill it and resume as you like"),
    "record": ("cascaded.cli.record", "run trained networks and store their logits at every step"),
    "analyse": ("cascaded.cli.analyze", "everything the paper measures, from what was recorded"),
    "reproduce": ("cascaded.cli.reproduce", "the paper's tables and figures, and its claims, from nothing"),
    "report": ("cascaded.cli.report", "one page about some runs, and every figure as a file"),
    "latency": ("cascaded.cli.latency", "measure the latency of early exit on this machine"),
    "models": ("cascaded.cli.models", "trained networks to use at once, and your own to be kept or shared"),
    "sweep": ("cascaded.cli.sweep", "train models x lambdas x seeds, side by side or on a cluster"),
    "crossval": (
        "cascaded.cli.crossval",
        "a network a fold, recorded on the images it has not seen",
    ),
    "data": ("cascaded.cli.data", "what data there is, how it looks, and whether it is sound"),
    "bench": ("cascaded.cli.bench", "time, memory and operations of a cascade, beside the published way"),
}

ABOUT = """usage: cascaded COMMAND [OPTIONS]

Anytime prediction with cascaded networks: an answer at once, and a better one at every step.

commands:
{commands}

`cascaded COMMAND --help` tells more about each, `cascaded --version` which version this is.
Example: cascaded train --data digits --epochs 5 --out runs/first
"""


def main() -> None:
    """Run a command; bad input ends in one sentence and exit code 2, a bug in its traceback."""
    try:
        with _plain_warnings():
            run(sys.argv[1:])
    except InputError as error:
        if os.environ.get("RANK", "0") == "0":  # of several processes that stumble over the same, one speaks
            print(f"cascaded: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt as stopped:
        print(f"cascaded: {str(stopped) or 'interrupted'}", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # whoever reads has had enough, as `| head` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Print our own warnings as one sentence on stderr, others as Python does."""
    with warnings.catch_warnings():
        python = warnings.showwarning

        def show(message, category, filename, lineno, file=None, line=None) -> None:
            if issubclass(category, CascadedWarning):
                print(f"cascaded: warning: {message}", file=sys.stderr)
            else:
                python(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield


def run(arguments: list[str]) -> None:
    """Find the command and hand it the rest of the line."""
    if not arguments:
        raise InputError("no command given: say one of " + ", ".join(COMMANDS) + ", or cascaded --help")
    name, *rest = arguments
    if name in ("-h", "--help"):
        width = max(map(len, COMMANDS))
        print(ABOUT.format(commands="\n".join(f"  {each:{width}}  {told}" for each, (_, told) in COMMANDS.items())))
    elif name == "--version":
        print(f"cascaded {__version__}")
    elif name in COMMANDS:
        from cascaded.cli.usage import run_command

        module, _ = COMMANDS[name]
        run_command(getattr(import_module(module), name), name, rest)
    else:
        near = get_close_matches(name, COMMANDS, n=1)
        raise InputError(f"there is no command {name!r}: " + (f"say {near[0]}?" if near else "see cascaded --help"))
