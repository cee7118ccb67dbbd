"""`cascaded train`: one run, from nothing or from where it stopped."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import tyro
from tyro.conf import DisallowNone, Fixed, Suppress
from tyro.constructors import PrimitiveConstructorSpec

from cascaded.cli.usage import value_of
from cascaded.errors import InputError
from cascaded.shell import help_default, program
from cascaded.training.config import (
    DEFAULT_EXECUTION,
    FITTED,
    RECIPES,
    ExecutionConfig,
    RecipeName,
    RunConfig,
    recipe_for,
)
from cascaded.training.runs import CONFIG, has_config, read_config, resolve_init, resume_command, run_to_resume

OUT = Path("runs/run")

FLAG_OR_RUN = PrimitiveConstructorSpec(
    nargs=(0, 1),
    metavar="[RUN]",
    instance_from_str=lambda words: Path(words[0]) if words else True,
    is_instance=lambda value: isinstance(value, (bool, Path)),
    str_from_instance=lambda value: [str(value)] if isinstance(value, Path) else [],
)


def train(
    config: Annotated[RunConfig, tyro.conf.arg(name="")] = RECIPES["laptop"],
    execution: Annotated[ExecutionConfig, tyro.conf.arg(name="")] = DEFAULT_EXECUTION,
    *,
    recipe: RecipeName = "laptop",
    out: Annotated[Path | None, DisallowNone, help_default(str(OUT))] = None,
    resume: Annotated[bool | Path, FLAG_OR_RUN, help_default("no")] = False,
    given: Annotated[tuple[str, ...], Fixed, Suppress] = (),
    resumed: Annotated[Path | None, Fixed, Suppress] = None,
) -> None:
    """Train one network. It can be killed at any moment: --resume RUN continues exactly where it was.

    Writes OUT/SEED/: config.json, metrics.jsonl (one line per epoch) and the last two checkpoints.

    With few training images, the laptop recipe uses smaller batches and more epochs, and prints which.

    Several GPUs or machines: torchrun --nproc-per-node 4 -m cascaded train ... (each batch is divided between them).

    Example: cascaded train --data cifar10 --method cascaded-td --lam 0 --recipe laptop --out runs/td0

    Example: cascaded train --resume runs/td0

    Args:
        config: Configuration of the run.
        execution: How it is computed.
        recipe: laptop: a narrow network within the hour on two cores; strong: a wider one in hours, in two phases (see
            docs/training.md); paper: the paper's training, for a GPU. Other options override its values.
        out: The folder of runs of this name; the run is kept in OUT/SEED.
        resume: Resume a run with the configuration in its folder: the run in this folder or, without a folder, the
            one in OUT, which is started if there is none.
        given: Options that are not chosen from the number of images.
        resumed: The run that is resumed.
    """
    folder = resumed or (resume if isinstance(resume, Path) else (out or OUT) / str(config.seed))
    config, start = resolve_init(config)
    notes: list[str] = []
    if _is_main() and resumed is None:
        from cascaded.training.fit import fit

        config, notes = fit(config, given if recipe == "laptop" else FITTED)
    import torch

    from cascaded.training.distributed import be_deterministic
    from cascaded.training.loop import StoppedError
    from cascaded.training.loop import train as train_run

    if execution.threads is not None:
        torch.set_num_threads(execution.threads)
    if execution.deterministic:
        be_deterministic()
    try:
        metrics = train_run(
            config, folder, execution, init_from=start, resume=bool(resume), on_begin=lambda: print_notes(notes)
        )
    except StoppedError as stopped:
        raise KeyboardInterrupt(f"{stopped}: resume it with {resume_command(folder)}") from stopped
    if metrics is not None:  # in the process that writes
        _conclude(folder, metrics)


def prepare(words: Sequence[str]) -> Callable[..., None]:
    """The command with the defaults that its words name: those of a recipe, or of the run that is resumed."""
    resumed, recipe = _resumed(words), value_of(words, "--recipe")
    if resumed is not None and recipe is not None:
        raise InputError(f"--recipe is {recipe}, and a run that is resumed has its own: leave --recipe out")
    config = read_config(resumed) if resumed is not None else recipe_for(recipe, value_of(words, "--arch"))
    return partial(train, config=config, resumed=resumed, given=given_in(words))


def given_in(words: Sequence[str]) -> tuple[str, ...]:
    """Which of the values that can be chosen from the number of images are on a command line."""
    return tuple(name for name in FITTED if value_of(words, f"--{name.replace('_', '-')}") is not None)


def _resumed(words: Sequence[str]) -> Path | None:
    """The run that a command line resumes, if there is one; other processes get its configuration from the main one."""
    place, out, seed = (value_of(words, option) for option in ("--resume", "--out", "--seed"))
    if place is None or not _is_main():
        return None
    if place and out:
        raise InputError(f"--resume is {place} and --out is {out}: give one of them")
    number = int(seed) if seed and seed.isdecimal() else None
    if place:
        return run_to_resume(Path(place), number)
    folder = Path(out or OUT)
    if number is None and list(folder.glob(f"*/{CONFIG}")):
        return run_to_resume(folder)
    folder /= str(number or 0)
    return folder if has_config(folder) else None


def _is_main() -> bool:
    """Whether this is the process that reads and writes the run's folder."""
    return os.environ.get("RANK", "0") == "0"


def print_notes(notes: Sequence[str]) -> None:
    """Print lines on stderr."""
    for line in notes:
        print(line, file=sys.stderr)


def _conclude(folder: Path, metrics: Mapping[str, Any]) -> None:
    """The accuracy, and the commands that continue from here."""
    from cascaded.training.log import summarize

    tested, validated = metrics.get("test"), metrics.get("accuracy")
    if accuracy := tested or validated:
        print(f"{folder}: {'test' if tested else 'validation'} accuracy {summarize(accuracy)}")
    print(f"wrote {folder}")
    split = "" if tested else " --split validation" if validated else " --split train"
    run = shlex.quote(str(folder))
    print(f"next: {program()} record {run}{split}")
    print(f"      {program()} analyze {run}")
    print(f"      {program()} report {run}")
