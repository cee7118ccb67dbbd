"""Errors in command lines: one sentence that names the option, the given value and the expected one."""

from __future__ import annotations

import inspect
import io
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from difflib import get_close_matches
from functools import partial
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import Annotated, Any

import tyro
from tyro.conf import Positional

from cascaded.errors import InputError
from cascaded.shell import program

try:  # an interface that tyro may change; without it, tyro prints the error in a box of several lines
    from tyro import _errors as tyro_errors
except ImportError:
    tyro_errors = None

RENAMED_COMMANDS = {"clock": "latency", "crossval": "sweep --folds 10"}
RENAMED = """
again: overwrite; as-is: no-train; batch: batch-size; batches: batch-sizes; data-limit: scale smoke; decay:
weight-decay; draw: figure; failing: unsettled-fraction; fine: kernel ews:0.9; half: dtype float16; held-out:
val-fraction; image: image-column; jobs: num-workers; label: label-column; limit: max-images; model: method, methods,
arch; models: methods, arch; network: arch; no-draw: no-figure; noisy: noise-frames; out: csv; rate: lr; schedule:
lr-schedule; size: image-size; start: init-from; states: activations; stop: threshold
"""
RENAMED_OPTIONS = {old: new for old, _, new in (" ".join(each.split()).partition(": ") for each in RENAMED.split(";"))}
"""Options of version 0.1 and their new names, of which a command has one."""
Runs = Annotated[Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN...", help_behavior_hint="(required)")]
"""Folders of runs, of which a command needs at least one."""
KINDS = {"INT": "a whole number", "FLOAT": "a number", "PATH": "a path", "STR": "a word"}


def run_command(function: Callable[..., Any], name: str, words: Sequence[str]) -> None:
    """Call a command with the words of a command line; a wrong command line is an `InputError`."""
    written: Any = function.func if isinstance(function, partial) else function
    written.__doc__ = join_lines(written.__doc__ or "")
    helps = {"-h", "--help"} & {*takewhile(lambda word: word != "--", words)}
    with parse_errors(lambda event: explain(event, function, name, words)), wrapped() if helps else nullcontext():
        tyro.cli(function, prog=f"cascaded {name}", args=words)


def join_lines(doc: str) -> str:
    """A docstring with one line per paragraph and per argument: tyro would keep many of its line breaks."""
    lines: list[str] = []
    for line in inspect.cleandoc(doc).splitlines():
        if line.strip() and lines and lines[-1].strip() and not re.match(r" {4}\w+:", line):
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
    return "\n".join(lines)


class _Copy(io.StringIO):
    """Text that is printed later, with what tyro looks up of the stream that it is printed to."""

    encoding: Any = None

    def __init__(self, stream: Any):
        super().__init__()
        self.encoding, self.isatty = getattr(stream, "encoding", None), stream.isatty


@contextmanager
def wrapped() -> Iterator[None]:
    """Wrap long lines that tyro prints as they are, those above the frames; examples stay whole, to be pasted."""
    width, out = shutil.get_terminal_size().columns, _Copy(sys.stdout)
    try:
        with redirect_stdout(out):
            yield
    finally:
        for line in out.getvalue().splitlines():
            whole = len(line) <= width or "\x1b" in line or line.startswith(("Example:", "usage:"))
            print(line if whole else textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False))


def check_given(values: Sequence[object], what: str, command: str) -> None:
    """That something is given; an example of the command shows how."""
    if not values:
        raise InputError(f"no {what} is given: add one, as in {program()} {command}")


def check_folder(out: Path) -> None:
    """That --out is not a file."""
    if out.exists() and not out.is_dir():
        raise InputError(f"--out is {out}, which is a file: give a folder")


def value_of(words: Sequence[str], option: str) -> str | None:
    """The value of an option on a command line; empty if it has none, None if the option is not there."""
    for word, after in zip_longest(words, words[1:]):
        name, equals, value = word.partition("=")
        if word == "--":
            return None
        if name.replace("_", "-") == option:
            return value if equals else "" if after is None or after.startswith("-") else after
    return None


@contextmanager
def parse_errors(sentence_of: Callable[[Any], str | None]) -> Iterator[None]:
    """Raise the errors that tyro would print, if there is a sentence for them."""

    def handle(event: Any) -> None:
        with suppress(AttributeError):  # a field that another version of tyro does not have
            if sentence := sentence_of(event):
                raise InputError(sentence)

    hook = getattr(tyro_errors, "on_parse_error", None)
    with hook(handle) if hook else nullcontext():
        yield


def explain(event: Any, function: Callable[..., Any], name: str, words: Sequence[str]) -> str | None:
    """The error in a command line, in one sentence; None for other errors of tyro."""
    assert tyro_errors is not None
    see = f"see {program()} {name} --help"
    match event:
        case tyro_errors.UnrecognizedArgs():
            return _unknown(function, name, words) or f"unexpected argument {event.tokens[0]!r}: leave it out, or {see}"
        case tyro_errors.MissingArgs():
            option = event.missing_arguments[0].arg
            return _unknown(function, name, words) or f"{option.display_name()} is missing: give {_expected(option)}"
        case tyro_errors.BadValue(reason="too_few_values"):
            option = event.argument.display_name()
            return _unknown(function, name, words) or f"{option} has no value: give {_expected(event.argument)}; {see}"
        case tyro_errors.InvalidChoice():
            return f"{event.argument.display_name()} is {event.value!r}: give one of {', '.join(event.choices)}"
        case tyro_errors.InstantiationFailure():
            option = event.argument
            if option is None:
                return f"{event.message.splitlines()[0].rstrip('.')}: {see}"
            given = _given(option, words)
            wrong = f"{option.display_name()} is {given!r}"
            return _own_sentence(option, given) or f"{wrong}: give {_expected(option)}; {see}"
    return None


def _own_sentence(option: Any, given: str) -> str | None:
    """Why an option refuses a value, if it is written in a way of its own, as `--lam 1:0` is."""
    try:
        option.lowered.instance_from_str([given])
    except InputError as error:
        return str(error)
    except (ValueError, TypeError):  # of a plain type
        return None
    return None


def _unknown(function: Callable[..., Any], name: str, words: Sequence[str]) -> str | None:
    """A sentence about the first unknown option, with its new name or the nearest known one."""
    known = _options(function, name)
    for word in takewhile(lambda word: word != "--", words):
        option = word.partition("=")[0].replace("_", "-")
        if option in known or not re.match(r"--?[a-zA-Z]", option):
            continue
        for new in RENAMED_OPTIONS.get(option.removeprefix("--"), "").split(", "):
            if f"--{new.split(' ')[0]}" in known:
                return f"{option} is called --{new}"
        near = [each for each in known if each.startswith(option)] or get_close_matches(option, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"see {program()} {name} --help"
        return f"there is no option {option} of cascaded {name}: {hint}"
    return None


def _options(function: Callable[..., Any], name: str) -> list[str]:
    """The options of a command, as its help lists them."""
    out = io.StringIO()
    with redirect_stdout(out), suppress(SystemExit):
        tyro.cli(function, prog=f"cascaded {name}", args=["--help"])
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    starts = re.findall(r"^. (-.*?)(?:  .*)?$", plain, flags=re.MULTILINE)  # one border and one space before them
    return [option for start in starts for option in re.findall(r"(?<!\S)--?[a-zA-Z][\w-]*", start)]


def _given(option: Any, words: Sequence[str]) -> str:
    """The value of an option on a command line, or its values."""
    for place in range(len(words) - 1, -1, -1):
        flag, equals, value = words[place].partition("=")
        if flag.replace("_", "-") in option.lowered.name_or_flags:
            values = [value] if equals else takewhile(lambda word: not word.startswith("--"), words[place + 1 :])
            return " ".join(values) if option.lowered.nargs == "*" else next(iter(values), "")
    return ""


def _expected(option: Any) -> str:
    """What an option expects, in words: `{None}|INT` is a whole number."""
    choices, metavar = option.lowered.choices, option.lowered.metavar.replace("{None}|", "")
    if choices:
        return f"one of {', '.join(choices)}"
    kinds = [words for kind, words in KINDS.items() if re.search(rf"\b{kind}\b", metavar)]
    if len(kinds) != 1:
        return metavar
    return f"{kinds[0].removeprefix('a ')}s" if option.lowered.nargs == "*" else kinds[0]
