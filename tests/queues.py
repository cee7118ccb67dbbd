"""Tiny queues on embedded digits, whose processes are forked, as those of sweeps: new ones import torch for seconds."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
import torch
import torch._dynamo  # otherwise every process would import it with its first optimizer, for seconds

from cascaded.cli import main as cli
from cascaded.paper import queue, worker
from cascaded.paper.experiments import COARSE, EXPERIMENTS, FINE, TITLES, Experiment, Network
from cascaded.paper.reproduce import Reproduction
from cascaded.paper.scales import SCALES, SMOKE, Scale, Stage
from cascaded.results.tasks import Settings
from cascaded.training import engines
from cascaded.training.runs import WITH_PARENT
from tests.forked import code_of, is_going

TD, CE = Network("cascaded-td", 0.0, "digits"), Network("cascaded-ce", data="digits")
NOISY, FOLDED = replace(TD, noise="occlusion"), replace(CE, folds=2)
PRECISE = Experiment("precise", (TD, CE, NOISY), (COARSE,))
TYPICAL = Experiment("typical", (FOLDED,), (replace(FINE, split="validation"),), ("prototypicality",), ("rho",))
TINY = replace(
    SMOKE,
    recipe=replace(SMOKE.recipe, width=2, epochs=2, max_images=32),
    stages=(Stage((TD, CE)), Stage((NOISY, FOLDED))),
    max_images=20,
    fine_steps=12,
    validation_images=20,
    claim_draws=300,
)


def with_epochs(epochs: int) -> Scale:
    """The scale with longer trainings."""
    return replace(TINY, recipe=replace(TINY.recipe, epochs=epochs))


def works(out: Path, scale: Scale = TINY) -> list[Reproduction]:
    """Both experiments in a folder."""
    return [Reproduction(each, scale, out) for each in (PRECISE, TYPICAL)]


def patch(patched: pytest.MonkeyPatch, scale: Scale = TINY) -> None:
    """Have `cascaded reproduce` know these experiments alone, and fork the processes of networks."""
    for name in reversed(list(EXPERIMENTS)):  # what was deleted last is put back first: the order stays
        patched.delitem(EXPERIMENTS, name)
    for experiment in (PRECISE, TYPICAL):
        patched.setitem(EXPERIMENTS, experiment.name, experiment)
        patched.setitem(TITLES, experiment.name, "An experiment on digits")
    patched.setitem(SCALES, "smoke", scale)
    fork(patched)


def fork(patched: pytest.MonkeyPatch) -> None:
    """Fork the processes of networks, in queues and in sweeps."""
    patched.setattr(engines, "_process", Forked)
    patched.setattr(engines, "POLL_SECONDS", 0.02)
    patched.setattr(worker, "PARENT_SECONDS", 0.02)


def draw_little(patched: pytest.MonkeyPatch) -> None:
    """A tenth of the bootstrap draws, which take most of the time of an analysis."""
    for each in (queue, worker):
        patched.setattr(each, "Settings", partial(Settings, draws=20))


class Forked:
    """What the engine uses of `subprocess.Popen`; in the process group of the queue, so that both can be killed."""

    def __init__(self, folder: Path, command: list[str], threads: int, more: dict[str, str]):
        folder.mkdir(parents=True, exist_ok=True)
        parent = os.getpid()
        self.process = os.fork()
        if self.process == 0:
            module = cli if command[0] == "cascaded" else worker
            _work(folder, parent, [*command[1:], "--threads", str(threads)], module)

    def poll(self) -> int | None:
        return None if is_going(self.process) else code_of(self.process)

    def terminate(self) -> None:
        os.kill(self.process, signal.SIGTERM)

    def wait(self) -> int:
        return code_of(self.process)


def _work(folder: Path, parent: int, words: list[str], module: ModuleType) -> None:
    """The body of a module's `main`, with its output in the log."""
    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.stdout = sys.stderr = (folder / "log.txt").open("a", buffering=1)
        os.environ[WITH_PARENT] = str(parent)
        sys.argv = [module.__name__, *words]
        with torch.enable_grad():
            module.main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    finally:
        os._exit(code)


def folder_of(out: Path, network: Network, seed: int = 0) -> Path:
    """The folder of a network's run, without its folds."""
    return out / "runs" / network.part / network.name / str(seed)
