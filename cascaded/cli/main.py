"""The command line: finds the command, and prints errors.

Each command is a function in a module of its own, which is imported when the command is called, and imports torch when
it runs, so that `--help` is fast.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from cascaded import __version__
from cascaded.errors import CascadedWarning, InputError, unknown
from cascaded.shell import program

COMMANDS = {
    "demo": "evaluate trained networks on photographs, train a small one, and write a report",
    "predict": "run a trained network on your own images and show its prediction at every step",
    "train": "train a network; interrupt and resume it at any time",
    "sweep": "train several methods, lambdas, seeds or folds, on this machine or on a Ray cluster",
    "record": "run trained networks on a data set and save their outputs at every step",
    "analyze": "compute the paper's measurements from recorded outputs",
    "report": "write an HTML page and figure files about some runs",
    "reproduce": "reproduce the paper's tables, figures and claims",
    "latency": "measure how much time early exits save on this machine",
    "convert": "convert a model of your own: its skip connections and the cost of every step",
    "models": "list, save and share trained networks",
    "export": "write a trained network as ONNX files that run without torch",
    "serve": "answer requests for predictions over HTTP with an exported network",
    "live": "show in the browser how the prediction for a picture or a camera changes over steps and under noise",
    "data": "list, show and check data sets",
    "bench": "measure time, memory and operations, beside the published implementation",
}
"""Commands and what they do; the function of a command has its name, in a module of its name in `cascaded.cli`."""
ALIASES = {"analyse": "analyze"}

ABOUT = """usage: cascaded COMMAND [OPTIONS]

Anytime prediction with cascaded networks: a prediction after every step, and better ones the longer they run.

commands:
{commands}

`cascaded COMMAND --help` lists the options of a command, `cascaded --version` prints the version.
Example: cascaded train --data digits --epochs 5 --out runs/first
"""


def main() -> None:
    """Run a command; bad input ends in one sentence and exit code 2, a bug in its traceback."""
    try:
        with _plain_warnings():
            run(sys.argv[1:])
    except InputError as error:
        if os.environ.get("RANK", "0") == "0":  # several processes with the same error print it once
            print(f"cascaded: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt as stopped:
        print(f"cascaded: {str(stopped) or 'interrupted'}", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader has closed the pipe, as `| head` does
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
    """Find the command and call it with the rest of the line."""
    if not arguments:
        raise InputError("no command given: give one of " + ", ".join(COMMANDS) + ", or cascaded --help")
    name, *rest = arguments
    if name in ("-h", "--help"):
        width = max(map(len, COMMANDS))
        print(ABOUT.format(commands="\n".join(f"  {each:{width}}  {what}" for each, what in COMMANDS.items())))
    elif name == "--version":
        print(f"cascaded {__version__}")
    elif (command := ALIASES.get(name, name)) in COMMANDS:
        from cascaded.cli.usage import run_command

        module = import_module(f"cascaded.cli.{command}")
        function = module.prepare(rest) if hasattr(module, "prepare") else getattr(module, command)
        run_command(function, command, rest)
    else:
        from cascaded.cli.usage import RENAMED_COMMANDS

        if name in RENAMED_COMMANDS:
            raise InputError(f"the command {name} is called {RENAMED_COMMANDS[name]}: see {program()} --help")
        raise unknown("command", name, COMMANDS, f"see {program()} --help")
