"""`cascaded train`: one run, from nothing or from where it stopped."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro
from tyro.conf import DisallowNone
from tyro.constructors import PrimitiveConstructorSpec

from cascaded.errors import InputError
from cascaded.shell import help_default, program
from cascaded.training.config import Spec
from cascaded.training.method import MethodName
from cascaded.training.options import DEFAULT, Options

OUT = Path("runs/run")

FLAG_OR_RUN = PrimitiveConstructorSpec(
    nargs=(0, 1),
    metavar="[RUN]",
    instance_from_str=lambda words: Path(words[0]) if words else True,
    is_instance=lambda value: isinstance(value, (bool, Path)),
    str_from_instance=lambda value: [str(value)] if isinstance(value, Path) else [],
)


def train(
    options: Annotated[Options, tyro.conf.arg(name="")],
    *,
    model: Annotated[MethodName | None, DisallowNone, help_default(DEFAULT.model)] = None,
    lam: Annotated[str | None, DisallowNone, help_default("the model's own")] = None,
    seed: Annotated[int | None, DisallowNone, help_default("0")] = None,
    out: Annotated[Path | None, DisallowNone, help_default(str(OUT))] = None,
    resume: Annotated[bool | Path, FLAG_OR_RUN, help_default("no")] = False,
) -> None:
    """Train one of the paper's models. It can be killed at any moment: --resume RUN continues exactly where it was.

    Writes OUT/SEED/: spec.json, metrics.jsonl (a line per epoch) and the last two checkpoints.

    With few training images, the laptop recipe takes smaller batches and more epochs, and prints which.

    Several GPUs or machines: torchrun --nproc-per-node 4 -m cascaded train ... (the batch is shared out).

    Example: cascaded train --data cifar10 --model cascaded-td --lam 0.0 --recipe laptop --out runs/td0

    Example: cascaded train --resume runs/td0

    Args:
        options: Data, network, recipe.
        model: Which of the paper's models.
        lam: Lambda of a TD model: a number from 0 to 1, or several that it runs through over the epochs, as in 1:0.
        seed: Draws weights, order and augmentation; the run is kept in OUT/SEED.
        out: Where runs of this name are kept.
        resume: Continue a run with the options in its spec.json: the one in this folder, or without a folder the one
            in OUT, which is begun if there is none.
    """
    folder = _folder(resume, out, seed)
    spec, notes = _spec(options, model, lam, seed, folder, bool(resume))
    import torch

    from cascaded.training.distributed import choose_device
    from cascaded.training.loop import StoppedError, Where
    from cascaded.training.loop import train as train_run
    from cascaded.training.runs import resume_command

    if options.threads is not None:
        torch.set_num_threads(options.threads)
    if options.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what cuBLAS needs to be deterministic
        torch.use_deterministic_algorithms(True)
    where = Where(choose_device(options.device), options.checkpoint_seconds, options.tensorboard, options.start)
    try:
        metrics = train_run(spec, folder, where, resume=bool(resume), on_begin=lambda: _print(notes))
    except StoppedError as stopped:
        raise KeyboardInterrupt(f"{stopped}: resume it with {resume_command(folder)}") from stopped
    if metrics is not None:  # in the process that writes
        _conclude(folder, metrics)


def _leads() -> bool:
    """Whether this is the process that reads and writes the run's folder; it gives its spec to the others."""
    return os.environ.get("RANK", "0") == "0"


def _folder(resume: bool | Path, out: Path | None, seed: int | None) -> Path:
    """The folder of the run, new or to be resumed."""
    from cascaded.training.runs import run_to_resume

    if isinstance(resume, Path) and out is not None:
        raise InputError(f"--resume is {resume} and --out is {out}: give one of them")
    if isinstance(resume, Path):
        return run_to_resume(resume, seed) if _leads() else resume
    out = out or OUT
    if resume and seed is None and _leads() and list(out.glob("*/spec.json")):
        return run_to_resume(out)
    return out / str(seed or DEFAULT.seed)


def _spec(
    options: Options, model: str | None, lam: str | None, seed: int | None, folder: Path, resume: bool
) -> tuple[Spec, list[str]]:
    """What the run is, and what to print about it when it begins.

    A run that is resumed is what its own file says; options that are given must not differ.
    """
    from cascaded.training.runs import read_spec

    if not _leads():
        return options.spec(model, lam, seed), []
    if resume and (folder / "spec.json").exists():
        return options.spec(model, lam, seed, base=read_spec(folder)), []
    from cascaded.training.fit import fit

    return fit(options.spec(model, lam, seed), options)


def _print(notes: Sequence[str]) -> None:
    for line in notes:
        print(line, file=sys.stderr)


def _conclude(folder: Path, metrics: Mapping[str, Any]) -> None:
    """The accuracy, and the commands that continue from here."""
    from cascaded.training.log import three

    tested, validated = metrics.get("test"), metrics.get("accuracy")
    if accuracy := tested or validated:
        print(f"{folder}: {'test' if tested else 'validation'} accuracy {three(accuracy)}")
    print(f"wrote {folder}")
    split = "" if tested else " --split validation" if validated else " --split train"
    run = shlex.quote(str(folder))
    print(f"next: {program()} record {run}{split}")
    print(f"      {program()} analyse {run}")
    print(f"      {program()} report {run}")
