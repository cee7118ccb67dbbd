"""`cascaded crossval`: every training image judged by a network that has not seen it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import DisallowNone

from cascaded.cli.sweep import sweep
from cascaded.errors import InputError
from cascaded.shell import help_default, program
from cascaded.traces.config import RecordingConfig
from cascaded.training.method import MethodName
from cascaded.training.options import Options
from cascaded.training.sweep import plan


def crossval(
    options: Annotated[Options, tyro.conf.arg(name="")],
    *,
    model: MethodName = "cascaded-td",
    lam: Annotated[str | None, DisallowNone, help_default("the model's own")] = None,
    seed: int = 0,
    folds: int = 10,
    kernel: str = "ews:0.9",
    steps: Annotated[int | None, DisallowNone, help_default("until it has settled; 70 where it never does")] = None,
    half: bool = False,
    out: Path = Path("runs/crossval"),
    jobs: Annotated[int | None, DisallowNone, help_default("as many as cores allow")] = None,
) -> None:
    """Train one network per fold, each on the other folds, and record it on the fold that it has not seen.

    The traces of all folds hold every training image once: `cascaded analyse OUT` joins them, and correlates latency
    with C-scores and centrality. The same command again goes on where it was.

    Example: cascaded crossval --data cifar10 --model cascaded-td --lam 0 --out runs/crossval

    Args:
        options: Data, network, recipe; the same for all folds.
        model: Which of the paper's models.
        lam: Lambda of a TD model.
        seed: Draws weights, order and augmentation.
        folds: How many parts the training images are divided into.
        kernel: How results are delayed while recording; ews:0.9 gives fine latencies.
        steps: Number of steps to record.
        half: Keep half precision, in half the space.
        out: Where runs and traces are kept.
        jobs: Runs at a time on this machine.
    """
    dtype = "float16" if half else "float32"
    config = RecordingConfig(split="validation", kernel=kernel, steps=steps, embeddings=True, dtype=dtype)
    from cascaded.traces.protocols import check_config
    from cascaded.traces.record import record

    check_config(config)
    lams = () if lam is None else (lam,)
    sweep(options, models=(model,), lam=lams, seeds=(seed,), folds=folds, out=out, jobs=jobs)
    from cascaded.training.distributed import choose_device
    from cascaded.training.load import load_run
    from cascaded.training.runs import is_done

    runs = plan((model,), lams, (seed,), out, folds)
    if going := [job.folder for job in runs if not is_done(job.folder)]:
        raise InputError(
            f"{len(going)} of {folds} folds are not trained to the end, the first in {going[0]}, another process is at "
            "it: wait for it, then the same command records them"
        )
    for job in runs:
        run = load_run(job.folder, choose_device(options.device))
        for file, new in record(run, config).items():
            print(f"wrote {file}" if new else f"there already: {file}")
    print(f"next: {program()} analyse {shlex.quote(str(out))}")
