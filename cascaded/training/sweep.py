"""The runs of a sweep, and the progress of each, read from its folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Literal

from cascaded.errors import InputError
from cascaded.training.config import DEFAULT_EXECUTION, ExecutionConfig, RunConfig, train_args
from cascaded.training.method import CE, METHODS, TD, get_method, parse_lam
from cascaded.training.runs import check_config, has_config, is_done, is_locked, last_metrics, resolve_init

State = Literal["waiting", "running", "elsewhere", "done", "failed"]


@dataclass(frozen=True)
class Job:
    """A run of a sweep.

    Attributes:
        config: Its configuration; `init_from` may be a path.
        out: The folder of the sweep.
    """

    config: RunConfig
    out: Path

    @property
    def name(self) -> str:
        """Method and lambda, and the fold if it has one: what the runs of several seeds have in common."""
        config = self.config
        lam = "" if config.lam is None else f"-lam{'-'.join(f'{each:g}' for each in TD(config.lam).knots)}"
        fold = "" if config.fold is None else f"/fold{config.fold[0]}of{config.fold[1]}"
        return f"{config.method}{lam}{fold}"

    @property
    def folder(self) -> Path:
        """Where the run is kept."""
        return self.out / self.name / str(self.config.seed)

    @property
    def after(self) -> tuple[Job, ...]:
        """The runs that have to be finished before this one starts: none."""
        return ()

    def command(self, execution: ExecutionConfig = DEFAULT_EXECUTION) -> list[str]:
        """The words after `python -m` that train or resume this run."""
        return ["cascaded", "train", *self.arguments(execution)]

    def arguments(self, execution: ExecutionConfig = DEFAULT_EXECUTION) -> list[str]:
        """The words after `cascaded train` that train or resume this run."""
        words = train_args(self.config, execution)
        return [*words, "--out", str(self.out / self.name), "--resume"]

    def state(self) -> State:
        """The state of the run before this sweep has touched it; another run in its folder is refused."""
        if has_config(self.folder):
            check_config(self.folder, resolve_init(self.config)[0])
        if is_locked(self.folder):
            return "elsewhere"
        return "done" if is_done(self.folder) else "waiting"

    def progress(self) -> str:
        """The progress of the run: `epoch 3, 71.2 % at the last step`."""
        return progress_in(self.folder)


def progress_in(folder: Path) -> str:
    """The progress of the run in a folder: `epoch 3, 71.2 % at the last step`."""
    last = last_metrics(folder)
    if last is None:
        return ""
    accuracy = last.get("test") or last["accuracy"]
    return f"epoch {last['epoch']}" + (f", {accuracy[-1]:.1%} at the last step" if accuracy else "")


def plan(
    config: RunConfig,
    methods: Sequence[str],
    lams: Sequence[str],
    seeds: Sequence[int],
    out: Path,
    folds: int | None = None,
) -> list[Job]:
    """Methods x lambdas x folds for every seed; a method without a lambda is trained once per seed and fold.

    Args:
        config: What all runs have in common.
        methods: Training methods.
        lams: Lambdas of the TD methods, as on the command line; each method's own if there are none.
        seeds: The same for every method.
        out: The folder of the sweep.
        folds: Hold out each of so many folds of the training images once.
    """
    if folds is not None and folds < 2:
        raise InputError(f"--folds is {folds}: give at least 2, each is held out once")
    for name, values in {"methods": methods, "seeds": seeds}.items():
        if not values:
            raise InputError(f"--{name} is empty: give at least one")
        if len(set(values)) < len(values):
            raise InputError(f"--{name} has the same value twice ({' '.join(map(str, values))}): give each once")
    if min(seeds) < 0:
        raise InputError(f"--seeds has {min(seeds)}: give numbers of 0 or more")
    lambdas = [parse_lam(text) for text in lams]
    if len(set(lambdas)) < len(lams):
        raise InputError(f"--lam has the same value twice ({' '.join(lams)}): give each once")
    variants: list[RunConfig] = []
    for method in methods:
        get_method(method)
        own = [None] if not lams or isinstance(METHODS[method].loss, CE) else lambdas
        variants += [replace(config, method=method, lam=lam) for lam in own]
    parts = [config.fold] if folds is None else [(number, folds) for number in range(1, folds + 1)]
    return [Job(replace(each, seed=seed, fold=fold), out) for seed, each, fold in product(seeds, variants, parts)]
