"""Which runs a sweep has, and how far each is, read from their folders alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal

from cascaded.errors import InputError
from cascaded.training.config import Spec
from cascaded.training.method import CE, METHODS, TD, make_method, parse_lam
from cascaded.training.runs import check_spec, is_done, is_locked, last_metrics

State = Literal["waiting", "running", "elsewhere", "done", "failed"]


@dataclass(frozen=True)
class Job:
    """A run of a sweep."""

    model: str
    lam: str | None
    seed: int
    out: Path
    fold: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        """Model and lambda, and the fold if it has one: what the runs of several seeds have in common."""
        lam = "" if self.lam is None else f"-lam{'-'.join(f'{knot:g}' for knot in TD(parse_lam(self.lam)).knots)}"
        fold = "" if self.fold is None else f"/fold{self.fold[0]}of{self.fold[1]}"
        return f"{self.model}{lam}{fold}"

    @property
    def folder(self) -> Path:
        """Where the run is kept."""
        return self.out / self.name / str(self.seed)

    def arguments(self) -> list[str]:
        """What `cascaded train` is asked for this run."""
        lam = [] if self.lam is None else ["--lam", self.lam]
        lam += [] if self.fold is None else ["--fold", "/".join(map(str, self.fold))]
        return ["--model", self.model, *lam, "--seed", str(self.seed), "--out", str(self.out / self.name), "--resume"]

    def state(self, spec: Spec) -> State:
        """How the run stands before this sweep has touched it; what is there must be what is asked for."""
        if (self.folder / "spec.json").exists():
            check_spec(self.folder, spec)
        if is_locked(self.folder):
            return "elsewhere"
        return "done" if is_done(self.folder) else "waiting"

    def told(self) -> str:
        """How far the run is: `epoch 3, 71.2 % at the last step`."""
        last = last_metrics(self.folder)
        if last is None:
            return ""
        accuracy = last.get("test") or last["accuracy"]
        return f"epoch {last['epoch']}" + (f", {accuracy[-1]:.1%} at the last step" if accuracy else "")


def plan(
    models: Sequence[str], lams: Sequence[str], seeds: Sequence[int], out: Path, folds: int | None = None
) -> list[Job]:
    """Models x lambdas x folds, seed by seed; a model without a lambda is trained once a seed and fold."""
    if folds is not None and folds < 2:
        raise InputError(f"--folds is {folds}: give at least 2, each is held out once")
    for name, asked in {"models": models, "seeds": seeds}.items():
        if not asked:
            raise InputError(f"--{name} is empty: give at least one")
        if len(set(asked)) < len(asked):
            raise InputError(f"--{name} names the same one twice ({' '.join(map(str, asked))}): name each once")
    if min(seeds) < 0:
        raise InputError(f"--seeds has {min(seeds)}: give numbers of 0 or more")
    lambdas = {text: parse_lam(text) for text in lams}
    if len(set(lambdas.values())) < len(lams):
        raise InputError(f"--lam names the same lambda twice ({' '.join(lams)}): name each once")
    variants: list[tuple[str, str | None]] = []
    for model in models:
        make_method(model)
        without = not lams or isinstance(METHODS[model].loss, CE)
        variants += [(model, None)] if without else [(model, lam) for lam in lams]
    parts = [None] if folds is None else [(number, folds) for number in range(1, folds + 1)]
    return [Job(model, lam, seed, out, fold) for seed, (model, lam), fold in product(seeds, variants, parts)]
