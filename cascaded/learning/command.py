"""`cascaded train`: one run, from nothing or from where it stopped."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import tyro

from cascaded.learning.method import MethodName
from cascaded.learning.options import Options


def train(
    options: Annotated[Options, tyro.conf.arg(name="")],
    *,
    model: MethodName = "cascaded-td",
    lam: str | None = None,
    seed: int = 0,
    out: Path = Path("runs/run"),
    resume: bool = False,
) -> None:
    """Train one of the paper's models. It can be killed at any moment: --resume goes on exactly where it was.

    Writes OUT/SEED/: spec.json, metrics.jsonl (a line an epoch) and the last two checkpoints.

    Several GPUs or machines: torchrun --nproc-per-node 4 -m cascaded train ... (the batch is shared out).

    Example: cascaded train --data cifar10 --model cascaded-td --lam 0.0 --recipe laptop --out runs/td0

    Args:
        options: Data, network, recipe.
        model: Which of the paper's models.
        lam: Lambda of a TD model: a number from 0 to 1, or several that it runs through over the epochs, as in 1:0.
        seed: Draws weights, order and augmentation; the run is kept in OUT/SEED.
        out: Where runs of this name are kept.
        resume: Go on with the run that is there, or begin it.
    """
    spec = options.spec(model, lam, seed)
    import torch

    from cascaded.learning.journal import three
    from cascaded.learning.processes import choose_device
    from cascaded.learning.training import StoppedError, Where
    from cascaded.learning.training import train as train_run

    if options.threads is not None:
        torch.set_num_threads(options.threads)
    if options.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what cuBLAS needs to be deterministic
        torch.use_deterministic_algorithms(True)
    where = Where(choose_device(options.device), options.checkpoint_seconds, options.tensorboard, options.start)
    folder = out / str(seed)
    try:
        told = train_run(spec, folder, where, resume=resume)
    except StoppedError as stopped:
        raise KeyboardInterrupt(f"{stopped}: the same command with --resume goes on") from stopped
    if told is None:
        return  # another process speaks
    if accuracy := told.get("test") or told.get("accuracy"):
        print(f"{folder}: {'test' if told.get('test') else 'validation'} accuracy {three(accuracy)}")
    print(f"wrote {folder}")
